"""The one place that names the admin skin: django-unfold where it is installed, Django's own admin otherwise.

Settings decide by leaving `unfold` in INSTALLED_APPS or not (`SUBAGENTS_ADMIN=stock`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.apps import apps

IS_UNFOLD = apps.is_installed("unfold")

if TYPE_CHECKING or not IS_UNFOLD:
    from django.contrib.admin import ModelAdmin, action, display
    from django.contrib.admin.views.main import ChangeList
else:
    from unfold.admin import ModelAdmin
    from unfold.decorators import action, display
    from unfold.views import ChangeList

__all__ = ["IS_UNFOLD", "ChangeList", "ModelAdmin", "action", "display"]

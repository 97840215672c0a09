from __future__ import annotations

from typing import Any

from django.apps import AppConfig
from django.conf import settings
from django.core.checks import CheckMessage, register
from django.utils.translation import gettext_lazy as _

from subagents import sealing


class SubagentsConfig(AppConfig):
    name = "subagents"
    verbose_name = _("Configure")
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        register(_check)
        sealing.configure(settings.FIELD_KEY)


def _check(**kwargs: Any) -> list[CheckMessage]:
    # Loaded when checks run: most processes never run them.
    from subagents.checks import check_subagents

    return check_subagents(**kwargs)

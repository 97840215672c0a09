from __future__ import annotations

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class SiteConfig(AppConfig):
    name = "deerflow_site"
    verbose_name = _("Site")
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from deerflow_site import checks, login  # noqa: F401 - they register themselves

from __future__ import annotations

from functools import partial
from typing import Any

from django.apps import AppConfig
from django.db.backends.signals import connection_created
from django.utils.translation import gettext_lazy as _


class SiteConfig(AppConfig):
    name = "deerflow_site"
    verbose_name = _("Site")
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from deerflow_site import checks, login  # noqa: F401 - they register themselves

        connection_created.connect(_read_any_text, dispatch_uid="read_any_text")


def _read_any_text(connection: Any, **_kwargs: Any) -> None:
    """Show what is no UTF-8 with U+FFFD: SQLite stores any bytes, and one such text would hide its whole table."""
    if connection.vendor == "sqlite":
        connection.connection.text_factory = partial(str, encoding="utf-8", errors="replace")

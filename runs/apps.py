from __future__ import annotations

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class RunsConfig(AppConfig):
    name = "runs"
    verbose_name = _("Operate")
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from runs.usage import RunsOfSubagents
        from subagents import usage

        usage.register(RunsOfSubagents())

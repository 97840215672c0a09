"""Start web server and workers, for real use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.core.management.base import BaseCommand, CommandError
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _

from deerflow_site import setup_link, startup
from deerflow_site.translations import compile_translations

if TYPE_CHECKING:
    from argparse import ArgumentParser


def worker_count(text: str) -> int:
    number = int(text)
    if not 1 <= number <= 64:
        raise ValueError
    return number


class Command(BaseCommand):
    help = "Check config.yaml, migrate, then run the web server and the workers until Ctrl-C or SIGTERM."
    requires_system_checks: list[str] = []  # config.yaml is reported here, whole, and only once

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: this machine only)")
        parser.add_argument("--port", type=int, default=8000, help="0 takes a free one (default 8000)")
        parser.add_argument(
            "--workers", type=worker_count, default=None, help="worker processes (default: runs.workers)"
        )

    def handle(self, *_args: Any, host: str, port: int, workers: int | None, **_options: Any) -> None:
        if not 0 <= port <= 65_535:
            raise CommandError(_("--port: expected 0 to 65535, got %(port)d") % {"port": port})
        address = startup.listen(host, port)
        compile_translations()
        configured_workers, report = startup.check_config()
        if report:
            self.stderr.write(report)
        startup.migrate()
        self.prepare(address)
        startup.hand_over(address, workers=workers or configured_workers)

    def prepare(self, address: startup.Address) -> None:
        """What happens between the migration and the start; `demo` adds its sample data here."""
        token = setup_link.make_link(timezone.now())
        if token is None:
            return
        link = address.url.rstrip("/") + reverse("setup", args=[token])
        self.stdout.write(_("Nobody has an account yet. Within one hour, choose name and password here:"))
        self.stdout.write(f"  {link}")

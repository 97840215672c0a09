"""`up` with sample data: everything to look at, no key needed."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.utils.translation import gettext as _

from deerflow_site.demo import seed
from deerflow_site.management.commands import up

if TYPE_CHECKING:
    from deerflow_site import startup


class Command(up.Command):
    help = "Start the product with sample data and a demo model: no key needed. Keeps its data between starts."

    def handle(self, *args: Any, **options: Any) -> None:
        config_file = seed.config_copy()
        if config_file != settings.CONFIG_FILE and "DEER_FLOW_CONFIG" not in os.environ:
            # Settings are read once per process, so the same command starts again with the demonstration's file.
            os.environ["DEER_FLOW_CONFIG"] = str(config_file)
            os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])
        super().handle(*args, **options)

    def prepare(self, address: startup.Address) -> None:
        password = seed.make_administrator()
        if password is not None:
            self.stdout.write(_("Preparing sample data …"))
        os.environ["DEMO_PACE"] = "0"
        seed.add_samples()
        del os.environ["DEMO_PACE"]
        self.stdout.write(_("Configuration: %(file)s") % {"file": settings.CONFIG_FILE})
        if password is not None:
            self.stdout.write(
                _("Log in as %(name)s with the password %(password)s")
                % {
                    "name": seed.ADMIN_NAME,
                    "password": password,
                }
            )
            self.stdout.write(
                _("It is shown this once. To set another: manage.py changepassword %(name)s")
                % {"name": seed.ADMIN_NAME}
            )
        else:
            self.stdout.write(
                _("Forgotten the password? manage.py changepassword %(name)s") % {"name": seed.ADMIN_NAME}
            )

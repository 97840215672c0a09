"""`manage.py check`: settings that are each fine and wrong together."""

from __future__ import annotations

import stat
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, Warning, register
from django.utils.translation import gettext as _

_POLLS_PER_LEASE = 4


@register()
def check_leases(**_kwargs: Any) -> list[CheckMessage]:
    """A lease must outlive several looks at the queue, or a busy worker loses runs it still executes."""
    problems: list[CheckMessage] = []
    queue = settings.Q_CLUSTER
    shortest = _POLLS_PER_LEASE * float(queue["poll"])
    if shortest > settings.LEASE_SECONDS:
        problems.append(
            Error(
                _("LEASE_SECONDS is %(lease)s, but the queue is looked at only every %(poll)s s.")
                % {"lease": settings.LEASE_SECONDS, "poll": queue["poll"]},
                hint=_("Set LEASE_SECONDS to at least %(seconds)s.") % {"seconds": shortest},
                id="deerflow.E001",
            )
        )
    timeout, retry = queue.get("timeout"), queue.get("retry") or 0
    if not timeout or retry <= timeout:
        problems.append(
            Error(
                _("Q_CLUSTER: retry (%(retry)s) must exceed timeout (%(timeout)s), or a long task is started twice.")
                % {"retry": retry, "timeout": timeout},
                id="deerflow.E002",
            )
        )
    if not settings.USE_TZ:
        problems.append(
            Error(_("USE_TZ is off: leases need times that mean the same moment everywhere."), id="deerflow.E004")
        )
    return problems


@register(Tags.security)
def check_exposure(**_kwargs: Any) -> list[CheckMessage]:
    problems: list[CheckMessage] = []
    local = {"127.0.0.1", "localhost", "[::1]", "testserver"}
    public = [host for host in settings.ALLOWED_HOSTS if host not in local]
    if settings.DEBUG and public:
        problems.append(
            Error(
                _("DEBUG is on while ALLOWED_HOSTS names %(hosts)s: error pages would show settings and source.")
                % {"hosts": ", ".join(public)},
                hint=_("Unset DEBUG."),
                id="deerflow.E003",
            )
        )
    if settings.DEER_FLOW_HOME.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        problems.append(
            Warning(
                _("Other users of this machine may enter %(folder)s, where secrets are kept.")
                % {"folder": settings.DEER_FLOW_HOME},
                hint=f"chmod 700 {settings.DEER_FLOW_HOME}",
                id="deerflow.W001",
            )
        )
    return problems


@register(Tags.security, deploy=True)
def check_deployment(**_kwargs: Any) -> list[CheckMessage]:
    problems: list[CheckMessage] = []
    if "*" in settings.ALLOWED_HOSTS:
        problems.append(
            Warning(
                _("ALLOWED_HOSTS accepts every name: a forged Host header reaches links and sockets."),
                id="deerflow.W002",
            )
        )
    if not settings.BEHIND_TLS:
        problems.append(
            Warning(
                _("BEHIND_TLS is off: session cookies travel over plain HTTP."),
                hint=_("Put a proxy that speaks TLS in front and set BEHIND_TLS=true."),
                id="deerflow.W003",
            )
        )
    return problems

"""What `up` and `demo` do before the first request: look at the configuration, migrate, hand over to the supervisor."""

from __future__ import annotations

import json
import os
import socket
import sys
from dataclasses import dataclass

from django.conf import settings
from django.core.management import CommandError, call_command
from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor
from django.urls import reverse
from django.utils.translation import gettext as _

from deerflow_site.locks import deployment_lock

_BACKLOG = 2048
_WEB_STREAMS_SECONDS = 2  # how long open streams may hold the web server's stop
_STOP_SECONDS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """Where the web server listens. The socket is bound once, early: a taken port stops the start at once."""

    host: str
    port: int
    listener: socket.socket

    @property
    def probe(self) -> str:
        """`host:port` for this machine's own look at /healthz."""
        return f"{self._local_host}:{self.port}"

    @property
    def url(self) -> str:
        return f"http://{self._local_host}:{self.port}/"

    @property
    def _local_host(self) -> str:
        if self.host in {"0.0.0.0", "::"}:
            return "127.0.0.1" if self.host == "0.0.0.0" else "[::1]"
        return f"[{self.host}]" if ":" in self.host else self.host


def listen(host: str, port: int) -> Address:
    """Bind and listen; port 0 takes a free one. Raises CommandError when the address cannot be had."""
    try:
        family, _type, _protocol, _name, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.create_server((str(address[0]), port), family=family, backlog=_BACKLOG)
    except (OSError, ValueError) as fault:  # ValueError: a name that cannot be a host
        reason = getattr(fault, "strerror", None) or str(fault)
        raise CommandError(
            _("Cannot listen on %(host)s port %(port)d: %(reason)s. Choose another with --port.")
            % {"host": host, "port": port, "reason": reason}
        ) from fault
    # uvicorn takes the descriptor for a Unix socket and leaves Nagle's delay on: 40 ms a request. Accepted sockets
    # inherit what the listener has.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    listener.set_inheritable(True)
    return Address(host=host, port=listener.getsockname()[1], listener=listener)


def check_config() -> tuple[int, str]:
    """The number of workers config.yaml asks for, and a report to print ("" when there is nothing to say).

    Raises CommandError with the whole report when the file is refused and no earlier good one is kept.
    """
    from subagents import configuration

    result = configuration.look(settings.CONFIG_FILE, None, fresh=True).result
    report = "\n".join(str(problem) for problem in result.problems)
    if result.config is not None:
        return result.config.runs.workers, report
    if not _good_config_kept():
        raise CommandError(_("The configuration is refused:") + f"\n{report}")
    return settings.Q_CLUSTER["workers"], (
        _("The configuration is refused; the last good one stays in use:") + f"\n{report}"
    )


def migrate() -> bool:
    """Bring the database up to date, one process at a time. True when there was something to do."""
    with deployment_lock("migrate"):
        executor = MigrationExecutor(connection)
        if not executor.migration_plan(executor.loader.graph.leaf_nodes()):
            return False
        call_command("migrate", interactive=False, verbosity=0)
    return True


def hand_over(address: Address, *, workers: int) -> None:
    """Become the supervisor of the web server and the workers: same process id, no Django left in it. No return."""
    listener_fd = address.listener.fileno()
    web = [
        *(sys.executable, "-m", "uvicorn", "deerflow_site.asgi:application", "--fd", str(listener_fd)),
        *("--loop", "uvloop", "--http", "httptools", "--lifespan", "on", "--no-access-log"),
        *("--log-level", "warning", "--timeout-graceful-shutdown", str(_WEB_STREAMS_SECONDS)),
    ]
    # The checks ran before, here: a second time they would only repeat their warnings.
    cluster = [sys.executable, str(settings.BASE_DIR / "manage.py"), "qcluster", "--skip-checks"]
    children = [
        {"name": _("The web server"), "argv": web, "keep_fds": [listener_fd]},
        {"name": _("The workers"), "argv": cluster},
    ]
    arguments = [
        *(sys.executable, "-m", "deerflow_site.supervisor", "--stop-seconds", str(_STOP_SECONDS)),
        *("--probe", address.probe, "--url", address.url.rstrip("/") + reverse("home")),
    ]
    for child in children:
        arguments += ["--child", json.dumps(child)]
    os.environ["RUN_WORKERS"] = str(workers)
    if settings.CONFIG_FILE_NAMED:
        os.environ["DEER_FLOW_CONFIG"] = str(settings.CONFIG_FILE)
    connection.close()
    sys.stdout.flush()
    os.chdir(settings.BASE_DIR)
    os.execv(sys.executable, arguments)


def _good_config_kept() -> bool:
    from subagents.models import ConfigSnapshot

    try:
        return ConfigSnapshot.objects.exists()
    except DatabaseError:
        return False  # before the first migration

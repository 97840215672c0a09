"""The ASGI application: pages and API, sockets, the LangGraph wire, and the relay that feeds live views.

Neither importing this module nor serving pages imports langchain or a provider: that belongs to the workers.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Awaitable, Callable
from typing import Any

from runs.worker.parent_watch import die_with_parent

die_with_parent(only_if_supervised=True)
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "deerflow_site.settings")

from django.core.asgi import get_asgi_application  # noqa: E402

_pages = get_asgi_application()  # sets Django up, which the imports below need

from channels.auth import AuthMiddlewareStack  # noqa: E402
from channels.routing import URLRouter  # noqa: E402
from channels.security.websocket import AllowedHostsOriginValidator  # noqa: E402
from django.conf import settings  # noqa: E402
from django.core.handlers.asgi import ASGIHandler  # noqa: E402
from django.core.signals import request_finished  # noqa: E402
from django.db import connections  # noqa: E402

from runs.agent_protocol.access import close_database  # noqa: E402
from runs.agent_protocol.asgi import application as _agent_protocol  # noqa: E402
from runs.relay import relay  # noqa: E402
from runs.routing import websocket_urlpatterns  # noqa: E402

# WhiteNoise hands files over as plain iterators; Django reads them in a thread and says so at each first file.
warnings.filterwarnings("ignore", "StreamingHttpResponse must consume synchronous iterators", Warning)


def _let_go(**_signal: Any) -> None:
    """Each request has a thread of its own, so nobody else can use the connection that it would leave open."""
    connections.close_all()


request_finished.connect(_let_go, sender=ASGIHandler, dispatch_uid="asgi-connections")

type_scope = dict[str, Any]
type_receive = Callable[[], Awaitable[dict[str, Any]]]
type_send = Callable[[Any], Awaitable[None]]

_AGENT_PROTOCOL_PREFIXES = ("/langgraph/", "/ap/")
_NO_ROUTE = 4404
_sockets = AllowedHostsOriginValidator(AuthMiddlewareStack(URLRouter(websocket_urlpatterns)))


async def application(scope: type_scope, receive: type_receive, send: type_send) -> None:
    if scope["type"] == "lifespan":
        await _lifespan(receive, send)
    elif scope["type"] == "websocket":
        await _socket(scope, receive, send)
    elif _path(scope).startswith(_AGENT_PROTOCOL_PREFIXES):
        await _agent_protocol(_below_prefix(scope), receive, send)
    else:
        await _pages(scope, receive, send)


async def _lifespan(receive: type_receive, send: type_send) -> None:
    while True:
        message = await receive()
        if message["type"] == "lifespan.startup":
            await relay().start()
            await send({"type": "lifespan.startup.complete"})
        else:
            await relay().stop()
            await close_database()
            await send({"type": "lifespan.shutdown.complete"})
            return


async def _socket(scope: type_scope, receive: type_receive, send: type_send) -> None:
    # The router takes the path without the sub-path under which a proxy serves us, as Django does.
    routed = {**scope, "path_remaining": _path(scope)}
    try:
        await _sockets(routed, receive, send)
    except ValueError as fault:  # the router's only way to say that no route matches
        if "No route found" not in str(fault):
            raise
        await send({"type": "websocket.close", "code": _NO_ROUTE})


def _below_prefix(scope: type_scope) -> type_scope:
    """The scope as it would be at the root of its host, for applications that know nothing of our sub-path."""
    path = _path(scope)
    return scope if path == scope["path"] else {**scope, "path": path, "root_path": ""}


def _path(scope: type_scope) -> str:
    prefix = settings.FORCE_SCRIPT_NAME or scope.get("root_path", "")
    return str(scope["path"]).removeprefix(prefix.rstrip("/"))

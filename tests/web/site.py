"""The pages, sockets and relay as one ASGI application, without what other parts of the site mount beside them."""

from __future__ import annotations

from typing import Any

from django.core.asgi import get_asgi_application

_pages = get_asgi_application()  # sets Django up, which the imports below need

from channels.auth import AuthMiddlewareStack  # noqa: E402
from channels.routing import URLRouter  # noqa: E402
from channels.security.websocket import AllowedHostsOriginValidator  # noqa: E402

from runs.relay import relay  # noqa: E402
from runs.routing import websocket_urlpatterns  # noqa: E402

_sockets = AllowedHostsOriginValidator(AuthMiddlewareStack(URLRouter(websocket_urlpatterns)))


async def application(scope: Any, receive: Any, send: Any) -> None:
    if scope["type"] != "lifespan":
        await (_sockets if scope["type"] == "websocket" else _pages)(scope, receive, send)
        return
    while True:
        message = await receive()
        if message["type"] == "lifespan.startup":
            await relay().start()
            await send({"type": "lifespan.startup.complete"})
        else:
            await relay().stop()
            await send({"type": "lifespan.shutdown.complete"})
            return

"""The mount: routes, host check, errors."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from django.conf import settings
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.routing import Mount, Route

from runs.agent_protocol import views
from runs.agent_protocol.errors import Refused, refusal_of
from runs.agent_protocol.shapes import json_response
from runs.errors import DatabaseLost, RunsError

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

logger = logging.getLogger(__name__)
PREFIX = "/langgraph"
_RUNS = "/threads/{thread_id}/runs"
_RUN = _RUNS + "/{run_id}"

Endpoint = Callable[["Request"], Awaitable["Response"]]


def _guarded(endpoint: Endpoint) -> Endpoint:
    """Answer every failure in the wire's own shape; what nobody expected is logged and says nothing of its inside."""

    async def guarded(request: Request) -> Response:
        try:
            return await endpoint(request)
        except Refused as refused:
            return refused.response()
        except DatabaseLost:
            return Refused(503, "database_lost", "the database connection was lost; try again").response()
        except RunsError as fault:
            known = refusal_of(fault)
            if known is not None:
                return known.response()
            logger.exception("%s %s failed", request.method, request.url.path)
        except Exception:
            logger.exception("%s %s failed", request.method, request.url.path)
        return Refused(500, "internal", "an error of our own").response()

    return guarded


def _route(path: str, endpoint: Endpoint, method: str) -> Route:
    return Route(path, _guarded(endpoint), methods=[method])


async def _no_such_path(request: Request, _fault: Exception) -> Response:
    return json_response(
        {"detail": "Not Found", "code": "not_found", "message": "Not Found", "metadata": {}}, status=404
    )


async def _no_such_method(request: Request, _fault: Exception) -> Response:
    return Refused(405, "method_not_allowed", "Method Not Allowed").response()


routes = [
    _route("/ok", views.ok, "GET"),
    _route("/threads", views.create_thread, "POST"),
    _route("/threads/{thread_id}", views.get_thread, "GET"),
    _route(_RUNS, views.create_run, "POST"),
    _route(_RUNS, views.get_runs, "GET"),
    _route(_RUNS + "/wait", views.wait_run, "POST"),
    _route(_RUNS + "/stream", views.stream_run, "POST"),
    _route(_RUN, views.get_run, "GET"),
    _route(_RUN + "/cancel", views.cancel_run, "POST"),
    _route(_RUN + "/join", views.join_run, "GET"),
    _route(_RUN + "/stream", views.join_stream, "GET"),
]
# Starlette takes "*.example.org" where Django's setting says ".example.org".
_hosts = [f"*{host}" if host.startswith(".") else host for host in settings.ALLOWED_HOSTS]
application = Starlette(
    routes=[Mount(PREFIX, routes=routes)],
    middleware=[Middleware(TrustedHostMiddleware, allowed_hosts=_hosts, www_redirect=False)],
    exception_handlers={404: _no_such_path, 405: _no_such_method},
)

"""The mount: routes, host check, errors in the wire's shape."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from django.conf import settings
from django.http.request import split_domain_port, validate_host
from starlette.requests import ClientDisconnect, Request
from starlette.routing import Route, Router

from runs.agent_protocol import (
    assistant_views,
    cancelling,
    ops,
    stateless,
    states,
    store_views,
    thread_stream,
    threads,
    views,
)
from runs.agent_protocol.access import IN_PROCESS
from runs.agent_protocol.ap import store as ap_store
from runs.agent_protocol.ap import threads as ap_threads
from runs.agent_protocol.ap import views as ap_views
from runs.agent_protocol.errors import Refused, refusal_of
from runs.errors import RunsError
from runs.group_commit import NO_DATABASE

if TYPE_CHECKING:
    from starlette.responses import Response
    from starlette.types import Receive, Scope, Send

    from runs.graphs.acting import Acting

logger = logging.getLogger(__name__)
PREFIX = "/langgraph"
AP_PREFIX = "/ap"
_ASSISTANT = "/assistants/{assistant_id}"
_THREAD = "/threads/{thread_id}"
_RUNS = _THREAD + "/runs"
_RUN = _RUNS + "/{run_id}"

Endpoint = Callable[[Request], Awaitable["Response"]]


class Resource:
    """The endpoints of one path, by method. Answers every failure in the wire's own shape.

    What nobody expected is logged and says nothing of its inside.
    """

    def __init__(self, **endpoints: Endpoint) -> None:
        self._endpoints = endpoints
        self._allowed = ", ".join(sorted(endpoints))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        endpoint = self._endpoints.get(scope["method"])
        if endpoint is None:
            refused = Refused(405, "method_not_allowed", f"this path takes {self._allowed}")
            await refused.response(headers={"Allow": self._allowed})(scope, receive, send)
            return
        request = Request(scope, receive)
        try:
            response = await _answer(endpoint, request)
        except ClientDisconnect:
            return  # it left before its request was whole: there is nobody to answer
        await response(scope, receive, send)


async def _answer(endpoint: Endpoint, request: Request) -> Response:
    try:
        return await endpoint(request)
    except ClientDisconnect:
        raise
    except Refused as refused:
        return refused.response()
    except NO_DATABASE:
        return Refused(503, "database_lost", "the database connection was lost; try again").response()
    except RunsError as fault:
        known = refusal_of(fault)
        if known is not None:
            return known.response()
        logger.exception("%s %s failed", request.method, request.url.path)
    except Exception:
        logger.exception("%s %s failed", request.method, request.url.path)
    return Refused(500, "internal", "an error of our own").response()


async def _no_such_path(scope: Scope, receive: Receive, send: Send) -> None:
    await Refused(404, "not_found", "Not Found").response()(scope, receive, send)


def _resource(path: str, **endpoints: Endpoint) -> Route:
    return Route(PREFIX + path, Resource(**endpoints))


def _plain(path: str, **endpoints: Endpoint) -> Route:
    return Route(AP_PREFIX + path, Resource(**endpoints))


_AP_RUN = "/runs/{run_id}"
_AGENT_PROTOCOL = [
    _plain("/ok", GET=views.ok),
    _plain("/agents/search", POST=ap_threads.search_agents),
    _plain("/agents/{agent_id}", GET=ap_threads.get_agent),
    _plain("/agents/{agent_id}/schemas", GET=ap_threads.get_schemas),
    _plain("/threads", POST=ap_threads.create_thread),
    _plain("/threads/search", POST=ap_threads.search_threads),
    _plain(_THREAD, GET=ap_threads.get_thread, PATCH=ap_threads.patch_thread, DELETE=threads.delete_thread),
    _plain(_THREAD + "/copy", POST=ap_threads.copy_thread),
    _plain(_THREAD + "/history", GET=ap_threads.get_history),
    _plain("/runs", POST=ap_views.create_run),
    _plain("/runs/search", POST=ap_views.search_runs),
    _plain("/runs/wait", POST=ap_views.create_and_wait),
    _plain("/runs/stream", POST=ap_views.create_and_stream),
    _plain(_AP_RUN, GET=ap_views.get_run, DELETE=ap_views.delete_run),
    _plain(_AP_RUN + "/cancel", POST=ap_views.cancel_run),
    _plain(_AP_RUN + "/wait", GET=ap_views.wait_run),
    _plain(_AP_RUN + "/stream", GET=ap_views.stream_run),
    _plain("/store/items", GET=ap_store.get_item, PUT=store_views.put_item, DELETE=store_views.delete_item),
    _plain("/store/items/search", POST=store_views.search_items),
    _plain("/store/namespaces", POST=ap_store.list_namespaces),
]


# Redirects of paths with a slash too many would not know the sub-path a proxy may serve us under.
_router = Router(
    [
        _resource("/ok", GET=views.ok),
        _resource("/info", GET=ops.get_info),
        _resource("/metrics", GET=ops.get_metrics),
        _resource("/store/items", GET=store_views.get_item, PUT=store_views.put_item, DELETE=store_views.delete_item),
        _resource("/store/items/search", POST=store_views.search_items),
        _resource("/store/namespaces", POST=store_views.list_namespaces),
        _resource("/assistants", POST=assistant_views.create_assistant),
        _resource("/assistants/search", POST=assistant_views.search_assistants),
        _resource("/assistants/count", POST=assistant_views.count_assistants),
        _resource(
            _ASSISTANT,
            GET=assistant_views.get_assistant,
            PATCH=assistant_views.update_assistant,
            DELETE=assistant_views.delete_assistant,
        ),
        _resource(_ASSISTANT + "/graph", GET=assistant_views.get_graph),
        _resource(_ASSISTANT + "/schemas", GET=assistant_views.get_schemas),
        _resource(_ASSISTANT + "/subgraphs", GET=assistant_views.get_subgraphs),
        _resource(_ASSISTANT + "/subgraphs/{namespace}", GET=assistant_views.get_subgraphs),
        _resource(_ASSISTANT + "/versions", POST=assistant_views.get_versions),
        _resource(_ASSISTANT + "/latest", POST=assistant_views.set_latest),
        _resource("/runs", POST=stateless.create_run),
        _resource("/runs/batch", POST=stateless.create_batch),
        _resource("/runs/wait", POST=stateless.wait_run),
        _resource("/runs/stream", POST=stateless.stream_run),
        _resource("/runs/cancel", POST=cancelling.cancel_many),
        _resource("/runs/{run_id}", GET=stateless.get_run),
        _resource("/runs/{run_id}/join", GET=stateless.join_run),
        _resource("/runs/{run_id}/stream", GET=stateless.join_stream),
        _resource("/threads", POST=threads.create_thread),
        _resource("/threads/search", POST=threads.search_threads),
        _resource("/threads/count", POST=threads.count_threads),
        _resource("/threads/prune", POST=threads.prune_threads),
        _resource(_THREAD, GET=threads.get_thread, PATCH=threads.update_thread, DELETE=threads.delete_thread),
        _resource(_THREAD + "/stream", GET=thread_stream.join_thread_stream),
        _resource(_THREAD + "/copy", POST=threads.copy_thread),
        _resource(_THREAD + "/state", GET=states.get_state, POST=states.update_state),
        _resource(_THREAD + "/state/checkpoint", POST=states.post_state_checkpoint),
        _resource(_THREAD + "/state/{checkpoint_id}", GET=states.get_state),
        _resource(_THREAD + "/history", GET=states.get_history, POST=states.get_history),
        _resource(_RUNS, GET=views.get_runs, POST=views.create_run),
        _resource(_RUNS + "/wait", POST=views.wait_run),
        _resource(_RUNS + "/stream", POST=views.stream_run),
        _resource(_RUN, GET=views.get_run, DELETE=views.delete_run),
        _resource(_RUN + "/cancel", POST=cancelling.cancel_run),
        _resource(_RUN + "/join", GET=views.join_run),
        _resource(_RUN + "/stream", GET=views.join_stream),
        *_AGENT_PROTOCOL,
    ],
    redirect_slashes=False,
    default=_no_such_path,
)


async def application(scope: Scope, receive: Receive, send: Send) -> None:
    if not _host_is_allowed(scope):
        await Refused(400, "unknown_host", "this server does not answer for that host").response()(scope, receive, send)
        return
    await _router(scope, receive, send)


async def answer_in_process(acting: Acting | None, scope: Scope, receive: Receive, send: Send) -> None:
    """Answer a request that never left this process, on behalf of whoever `acting` says; of nobody: without a key.

    The SDK's own path, host and `root_path` say nothing here.
    """
    inside = {**scope, "path": PREFIX + scope["path"], "root_path": "", IN_PROCESS: acting}
    await _router(inside, receive, send)


def _host_is_allowed(scope: Scope) -> bool:
    """By Django's own rule, so that pages and wire accept the same names."""
    named = next((value for name, value in scope["headers"] if name == b"host"), b"")
    domain, _port = split_domain_port(named.decode("latin-1"))
    return bool(domain) and validate_host(domain, settings.ALLOWED_HOSTS)

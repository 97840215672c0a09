"""Who asks: an API key on each request, looked up at that moment. The database thread all requests share."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeVar

from access import keys
from runs.agent_protocol.errors import Refused
from runs.group_commit import GroupCommit

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.requests import Request

    from access.keys import Caller, Scope

Result = TypeVar("Result")
_databases: dict[asyncio.AbstractEventLoop, GroupCommit] = {}


def database() -> GroupCommit:
    """The database thread of the running event loop."""
    loop = asyncio.get_running_loop()
    if loop not in _databases:
        _databases[loop] = GroupCommit("wire-db")
    return _databases[loop]


async def close_database() -> None:
    """End the database thread of the running event loop, its connection with it."""
    known = _databases.pop(asyncio.get_running_loop(), None)
    if known is not None:
        await known.close()


async def caller_of(request: Request, scope: Scope) -> Caller:
    """Whom the request's key speaks for. Raises Refused 401 without a valid one, 403 when it may not do this."""
    return await asked(request, scope, lambda caller: caller)


async def asked(request: Request, scope: Scope, work: Callable[[Caller], Result]) -> Result:
    """What `work` says to the caller of the request, on the database thread, in one hop with looking up the key."""
    return await database().call(_allowed, _key_in(request), scope, work)


def _key_in(request: Request) -> str:
    text = request.headers.get("x-api-key", "")
    if not text:
        kind, _, value = request.headers.get("authorization", "").partition(" ")
        text = value.strip() if kind.lower() == "bearer" else ""
    if not text:
        raise Refused(401, "no_key", "an API key is required: send it as x-api-key or as a bearer token")
    return text


def _allowed(key: str, scope: Scope, work: Callable[[Caller], Result]) -> Result:
    caller = keys.authenticate(key)
    if caller is None:
        raise Refused(401, "bad_key", "the API key is not valid")
    if not caller.may(scope):
        raise Refused(403, "scope_missing", f"the API key lacks the scope {scope.value}")
    return work(caller)

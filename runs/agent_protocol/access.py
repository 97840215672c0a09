"""Who asks: an API key on each request, looked up at that moment. The database thread all requests share."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, TypeVar

from access import keys
from runs.agent_protocol.errors import Refused
from runs.graphs.acting import Acting
from runs.group_commit import NO_DATABASE, GroupCommit

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from starlette.requests import Request

    from access.keys import Caller, Scope

Result = TypeVar("Result")
IN_PROCESS = "deerflow.acting"  # a key of the scope, which no server fills from a request
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
    return await database().ask(_answers, (key_in(request), scope, work))


def key_in(request: Request) -> str | Acting:
    """The request's key, or on whose behalf a graph of this very process asks: only `answer_in_process` says that."""
    if isinstance(said := request.scope.get(IN_PROCESS), Acting):
        return said
    text = request.headers.get("x-api-key", "")
    if not text:
        kind, _, value = request.headers.get("authorization", "").partition(" ")
        text = value.strip() if kind.lower() == "bearer" else ""
    if not text:
        raise Refused(401, "no_key", "an API key is required: send it as x-api-key or as a bearer token")
    return text


def callers_of(wanted: Sequence[tuple[str | Acting, Scope]]) -> list[Caller | Refused]:
    """Whom the keys of requests that came together speak for, and which of them may not do what they want.

    Each key is looked up once, after all these requests have come.
    """
    known = keys.authenticate_all({key for key, _scope in wanted if isinstance(key, str)})
    return [
        _allowed(keys.in_process(key.owner_id, key.run_id) if isinstance(key, Acting) else known.get(key), scope)
        for key, scope in wanted
    ]


def _allowed(caller: Caller | None, scope: Scope) -> Caller | Refused:
    if caller is None:
        return Refused(401, "bad_key", "the API key is not valid")
    return caller if caller.may(scope) else Refused(403, "scope_missing", f"the API key lacks the scope {scope.value}")


def _answers(asked: Sequence[tuple[str | Acting, Scope, Callable[[Caller], Any]]]) -> list[Any]:
    callers = callers_of([(key, scope) for key, scope, _work in asked])
    return [_answer(caller, work) for caller, (_key, _scope, work) in zip(callers, asked, strict=True)]


def _answer(caller: Caller | Refused, work: Callable[[Caller], Any]) -> Any:
    if isinstance(caller, Refused):
        return caller
    try:
        return work(caller)
    except NO_DATABASE:
        raise  # as it would be for those that come after it
    except Exception as fault:  # noqa: BLE001 - raised to the request it belongs to
        return fault

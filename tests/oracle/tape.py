"""What a server answered, step by step, in a form that two servers can be compared in."""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

from langgraph_sdk.errors import APIStatusError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable

    import httpx

ANSWER_SECONDS: Final = 20
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.I)
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)?")
_HASH = re.compile(r"\b[0-9a-f]{32}\b")
_HEADERS = ("location", "content-location")


@dataclass(slots=True)
class Tape:
    """One run of the script: {step: {"http": [...], "answer" | "error": …}}, in order."""

    steps: dict[str, dict[str, Any]] = field(default_factory=dict)
    _heard: list[str] = field(default_factory=list)

    async def hear(self, response: httpx.Response) -> None:
        """To be hooked into the client: method, status and the headers that say where a run is."""
        headers = {name: plain(response.headers[name]) for name in _HEADERS if name in response.headers}
        request = response.request
        self._heard.append(f"{request.method} {response.status_code} {headers or ''}".rstrip())

    async def note(self, step: str, asking: Awaitable[Any]) -> Any:
        """Keep what came of one call; gives the answer itself, or None when it was refused."""
        self._heard.clear()
        answer: Any = None
        try:
            answer = await asyncio.wait_for(asking, ANSWER_SECONDS)
        except TimeoutError:
            self._keep(step, {"error": "no answer"})
        except APIStatusError as refused:
            body = _json_of(refused.response)
            shape = sorted(body) if isinstance(body, dict) else type(body).__name__
            detail = body.get("detail") if isinstance(body, dict) else None
            self._keep(step, {"error": type(refused).__name__, "detail": type(detail).__name__, "body": shape})
        else:
            self._keep(step, {"answer": plain(answer)})
        return answer

    async def note_stream(self, step: str, parts: AsyncIterator[Any]) -> list[Any]:
        self._heard.clear()
        async with asyncio.timeout(ANSWER_SECONDS):
            found = [part async for part in parts]
        by_name: dict[str, list[Any]] = {}
        for part in found:
            by_name.setdefault(part.event, []).append(plain(part.data))
        order = " ".join(name for name, _same in groupby(part.event for part in found))
        self._keep(step, {"order": order, "events": by_name})
        return found

    def _keep(self, step: str, what: dict[str, Any]) -> None:
        assert step not in self.steps, step
        self.steps[step] = {"http": list(self._heard), **what}


def _json_of(response: httpx.Response) -> Any:
    try:
        return response.json()
    except ValueError:
        return response.text


def plain(value: Any) -> Any:
    """The value with ids, times and hashes replaced by what they are."""
    if isinstance(value, dict):
        return {plain(str(key)): plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    if isinstance(value, str):
        return _HASH.sub("<hash>", _TIME.sub("<time>", _UUID.sub("<uuid>", value)))
    return value


def flat(value: Any, path: str = "") -> dict[str, Any]:
    """{path: leaf} of nested values; empty containers are leaves."""
    if isinstance(value, dict) and value:
        return {p: leaf for key, one in value.items() for p, leaf in flat(one, f"{path}/{key}").items()}
    if isinstance(value, list) and value:
        return {p: leaf for number, one in enumerate(value) for p, leaf in flat(one, f"{path}/{number}").items()}
    return {path: value}

"""The LangGraph SDK without a URL, inside a worker: what a graph asks of "its own server" it asks of this platform.

The SDK keeps such transports in a list until somebody gives them an application; a client that is made later would
wait for ever. So the list is one that gives ours to each transport as it comes. The acting user is the owner of the
run whose task makes the request: a context variable says so, nothing in the request can.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from runs.agent_protocol.asgi import answer_in_process
from runs.graphs.acting import acting

if TYPE_CHECKING:
    from collections.abc import Iterable


async def _application(scope: Any, receive: Any, send: Any) -> None:
    await answer_in_process(acting(), scope, receive, send)


class _Connected(list[Any]):
    """Transports of the SDK's clients without a URL, each connected with this platform."""

    def __init__(self, waiting: Iterable[Any]) -> None:
        super().__init__()
        for transport in waiting:
            self.append(transport)

    def append(self, transport: Any) -> None:
        transport.app = _application
        super().append(transport)


def connect() -> None:
    """Make the SDK's clients without a URL talk to this platform. Needs the agent stack: for workers."""
    from langgraph_sdk._async import client
    from langgraph_sdk._shared import utilities

    if not isinstance(utilities._registered_transports, _Connected):
        connected = _Connected(utilities._registered_transports)
        utilities._registered_transports = connected
        client._registered_transports = connected

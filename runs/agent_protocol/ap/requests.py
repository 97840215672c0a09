"""What a program asks for in the Agent Protocol's words, as the request that the LangGraph wire would have had."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from runs.agent_protocol.run_request import run_request
from runs.errors import BadInput
from runs.services import LEAD_AGENT

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from runs.agent_protocol.run_request import RunRequest


def wanted_run(body: Mapping[str, Any]) -> tuple[RunRequest, str]:
    """A checked run request, and where its messages stood. Raises BadInput with the field as this protocol calls it."""
    said, messages_path = _input(body)
    own_words = {
        **{name: value for name, value in body.items() if name not in {"agent_id", "messages", "command"}},
        "assistant_id": LEAD_AGENT if body.get("agent_id") is None else body["agent_id"],
        "input": {"messages": said},
        # Other than on the LangGraph wire: this protocol's own default.
        "on_disconnect": body.get("on_disconnect") or "cancel",
    }
    with named_here(messages_path):
        return run_request(own_words), messages_path


@contextmanager
def named_here(messages_path: str) -> Iterator[None]:
    """A fault within names its field as this protocol calls it."""
    try:
        yield
    except BadInput as fault:
        field = "agent_id" if fault.field == "assistant_id" else fault.field
        raise BadInput(field.replace("input.messages", messages_path, 1), fault.message) from None


def _input(body: Mapping[str, Any]) -> tuple[Any, str]:
    """What is said, and where it stood: `messages`, a text, or an input object's own messages."""
    if body.get("messages") is not None:
        return body["messages"], "messages"
    given = body.get("input")
    if isinstance(given, dict):
        return given.get("messages"), "input.messages"
    if given is None or isinstance(given, str):
        return given, "input"
    raise BadInput("input", "expected text, or an object with messages")

"""The part of a run request that only graphs understand. Facts: the reference server's recorded answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from runs.agent_protocol.bodies import an_object
from runs.agent_protocol.messages import wire_messages
from runs.graphs.asking import graph_options

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from runs.transcript import WireMessage


def graph_request(body: Mapping[str, Any], modes: Sequence[str]) -> tuple[list[WireMessage], dict[str, Any]]:
    """The messages and what is asked of the graph: see runs.graphs.asking. Raises BadInput with the field's path."""
    config = an_object(body, "config")
    messages, given = _input(body.get("input"))
    command = an_object(body, "command")
    written = an_object(body, "checkpoint")
    asked = {
        "input": given,
        "go_on": body.get("input") is None and not command,
        "command": command or None,
        "checkpoint_id": written.get("checkpoint_id") or body.get("checkpoint_id"),
        "interrupt_before": body.get("interrupt_before"),
        "interrupt_after": body.get("interrupt_after"),
        "configurable": config.get("configurable"),
        "context": body.get("context"),
        "recursion_limit": config.get("recursion_limit"),
        "tags": config.get("tags"),
        "stream_subgraphs": body.get("stream_subgraphs") is True,
        "stream_mode": list(modes),
    }
    return messages, graph_options(asked)


def _input(value: Any) -> tuple[list[WireMessage], Any]:
    """Messages enter the transcript, the other keys go to the state; a graph without messages takes any JSON."""
    if not isinstance(value, dict) or "messages" not in value:
        return [], value
    messages = value["messages"]
    if messages in ([], None):
        return [], {name: one for name, one in value.items() if name != "messages"}
    return wire_messages(messages), {name: one for name, one in value.items() if name != "messages"} or None

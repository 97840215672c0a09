"""What a program asks for when it creates a run, checked field by field."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from runs.agent_protocol.bodies import a_choice, a_number, an_id, an_object, some_metadata
from runs.agent_protocol.errors import Refused
from runs.agent_protocol.graph_request import graph_request
from runs.agent_protocol.messages import wire_messages
from runs.errors import BadInput
from runs.options import OF_THE_SERVER, clean_options
from runs.services import MultitaskStrategy

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from uuid import UUID

    from runs.transcript import WireMessage

GRAPH_MODES = ("tasks", "checkpoints", "debug", "events")  # stored only for a run of a graph that asks for them
STREAM_MODES = ("values", "updates", "messages", "messages-tuple", "custom", *GRAPH_MODES)
DEFAULT_MODES = ("values",)
# They stop a graph between its nodes; an agent has none that a program knows.
_OF_GRAPHS = ("interrupt_before", "interrupt_after")
_OF_GRAPHS_IN_COMMAND = ("resume", "goto")
MAX_DELAY_SECONDS = 30 * 24 * 3600
_URL_LENGTH = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest:
    assistant: str  # as it was written; see `assistants.agent_of`
    messages: list[WireMessage]
    not_for_agents: BadInput | None  # what only a graph can do; then there are no messages
    for_graphs: Callable[[], tuple[list[WireMessage], dict[str, Any]]]  # messages, and what is asked of the graph
    checkpoint: UUID | None  # where it begins
    options: dict[str, Any]
    options_path: str  # where they stood in the body
    metadata: dict[str, Any]
    multitask: MultitaskStrategy
    create_thread: bool
    modes: tuple[str, ...]
    cancel_on_disconnect: bool
    delay_seconds: float
    webhook: str
    keep: bool  # the thread that a run without one is given

    @property
    def noted(self) -> dict[str, Any]:
        """What later requests need to know of this one; what is as usual is left out."""
        noted: dict[str, Any] = {}
        if self.modes != DEFAULT_MODES:
            noted["stream_mode"] = list(self.modes)
        if self.multitask != MultitaskStrategy.ENQUEUE:
            noted["multitask_strategy"] = self.multitask.value
        return noted


def run_request(body: Mapping[str, Any]) -> RunRequest:
    """Check a run request. Raises BadInput with the field's path."""
    a_choice(body, "durability", ("sync", "async", "exit"), "async")
    metadata = {name: value for name, value in some_metadata(body).items() if name not in OF_THE_SERVER}
    options, options_path = _options(body)
    modes = stream_modes(body.get("stream_mode"))
    messages, not_for_agents = _messages_or_fault(body)
    strategies = [strategy.value for strategy in MultitaskStrategy]
    return RunRequest(
        assistant=_assistant(body.get("assistant_id")),
        messages=messages,
        not_for_agents=not_for_agents,
        for_graphs=partial(graph_request, body, [mode for mode in modes if mode in GRAPH_MODES]),
        checkpoint=_checkpoint(body),
        options=options,
        options_path=options_path,
        metadata=metadata,
        multitask=MultitaskStrategy(a_choice(body, "multitask_strategy", strategies, MultitaskStrategy.ENQUEUE)),
        create_thread=a_choice(body, "if_not_exists", ("reject", "create"), "reject") == "create",
        modes=modes or DEFAULT_MODES,
        cancel_on_disconnect=a_choice(body, "on_disconnect", ("continue", "cancel"), "continue") == "cancel",
        delay_seconds=a_number(body, "after_seconds", most=MAX_DELAY_SECONDS),
        webhook=_url(body.get("webhook")),
        keep=a_choice(body, "on_completion", ("delete", "keep"), "delete") == "keep",
    )


def stream_modes(value: Any) -> tuple[str, ...]:
    """The wanted modes in the order of STREAM_MODES; () when none is named. `custom` never occurs for agents."""
    wanted = [value] if isinstance(value, str) else [] if value is None else value
    if not isinstance(wanted, list):
        raise BadInput("stream_mode", "expected a mode or a list of modes")
    for mode in wanted:
        if mode != "" and mode not in STREAM_MODES:
            raise BadInput("stream_mode", f"this server streams {', '.join(STREAM_MODES)}")
    return tuple(mode for mode in STREAM_MODES if mode in wanted)


def _messages_or_fault(body: Mapping[str, Any]) -> tuple[list[WireMessage], BadInput | None]:
    try:
        return _messages(body), None
    except BadInput as fault:
        return [], fault


def _messages(body: Mapping[str, Any]) -> list[WireMessage]:
    """What an agent is told: the input's messages, or those of a command that only updates the state."""
    for field in _OF_GRAPHS:
        if body.get(field):
            raise BadInput(field, "an agent has no nodes to stop at; this is for graphs")
    if for_graphs := set(GRAPH_MODES).intersection(stream_modes(body.get("stream_mode"))):
        modes = ", ".join(mode for mode in STREAM_MODES if mode not in GRAPH_MODES)
        raise BadInput("stream_mode", f"an agent streams {modes}; {', '.join(sorted(for_graphs))} is for graphs")
    command = an_object(body, "command")
    for field in _OF_GRAPHS_IN_COMMAND:
        if command.get(field) is not None:
            raise BadInput(f"command.{field}", "an agent has nothing to resume and no nodes to go to; send a message")
    if command:
        update = an_object(command, "update", path="command.update")
        return wire_messages(update.get("messages"), "command.update.messages")
    if body.get("input") is None:
        raise BadInput("input", "an agent goes on from a message; without input only graphs go on")
    return wire_messages(an_object(body, "input").get("messages"))


def _checkpoint(body: Mapping[str, Any]) -> UUID | None:
    written = an_object(body, "checkpoint")
    if written.get("checkpoint_ns"):
        raise BadInput("checkpoint.checkpoint_ns", "an agent has no subgraphs")
    if written.get("checkpoint_id") is not None:
        return an_id(written["checkpoint_id"], "checkpoint.checkpoint_id")
    return None if body.get("checkpoint_id") is None else an_id(body["checkpoint_id"], "checkpoint_id")


def _url(value: Any) -> str:
    """The URL as it was written; whether it may be reached is another question."""
    if value is None or value == "":
        return ""
    if not isinstance(value, str) or len(value) > _URL_LENGTH:
        raise BadInput("webhook", f"expected a URL of at most {_URL_LENGTH:,} characters")
    return value


def _options(body: Mapping[str, Any]) -> tuple[dict[str, Any], str]:
    context = an_object(body, "context")
    configurable = an_object(an_object(body, "config"), "configurable", path="config.configurable")
    if context and configurable:
        raise Refused(400, "invalid", "give either context or config.configurable, not both")
    options = context or configurable
    path = "context" if context else "config.configurable"
    clean_options(options, path=path)
    return options, path


def _assistant(value: Any) -> str:
    if value is None:
        raise BadInput("assistant_id", "this field is required")
    if not isinstance(value, str) or not value.strip():
        raise BadInput("assistant_id", "expected a graph name or a UUID")
    return value

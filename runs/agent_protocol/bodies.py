"""Reading requests: JSON bodies, ids in paths, and the fields of a run request. Bad input names its field."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import UUID

import orjson

from engine.text import clean_json
from runs.agent_protocol.errors import Refused
from runs.agent_protocol.shapes import assistant_id
from runs.errors import BadInput
from runs.models import new_id
from runs.services import LEAD_AGENT, MAX_TEXT_LENGTH, MultitaskStrategy
from runs.transcript import WireMessage, text_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from starlette.requests import Request

MAX_BODY_BYTES = 8 << 20
STREAM_MODES = frozenset({"values", "updates", "messages", "messages-tuple", "custom"})
_TYPES = {"user": "human", "human": "human", "assistant": "ai", "ai": "ai", "system": "system", "tool": "tool"}
_KEPT_FIELDS = ("id", "name", "tool_calls", "tool_call_id", "status")
# Options that would change what happens, and that this server does not have: refused rather than ignored.
_UNSUPPORTED = (
    "command",
    "checkpoint",
    "checkpoint_id",
    "interrupt_before",
    "interrupt_after",
    "after_seconds",
    "webhook",
)


async def json_body(request: Request) -> dict[str, Any]:
    """The request's JSON object; {} for an empty body."""
    raw = bytearray()
    async for piece in request.stream():
        raw += piece
        if len(raw) > MAX_BODY_BYTES:
            raise Refused(413, "too_large", f"the body has more than {MAX_BODY_BYTES:,} bytes")
    if not raw.strip():
        return {}
    try:
        body = orjson.loads(bytes(raw))
    except orjson.JSONDecodeError as fault:
        raise Refused(422, "invalid_json", f"the body is not JSON: {fault}") from None
    if not isinstance(body, dict):
        raise Refused(422, "invalid", "the body must be a JSON object")
    return clean_json(body)  # type: ignore[no-any-return]


def path_id(request: Request, name: str) -> UUID:
    return an_id(request.path_params[name], name)


def an_id(value: Any, field: str) -> UUID:
    if isinstance(value, str):
        try:
            return UUID(value)
        except ValueError:
            pass
    raise BadInput(field, "expected a UUID")


def an_object(body: Mapping[str, Any], field: str) -> dict[str, Any]:
    value = body.get(field)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise BadInput(field, "expected an object")
    return value


def a_choice(body: Mapping[str, Any], field: str, choices: Sequence[str], default: str) -> str:
    value = body.get(field)
    if value is None:
        return default
    if value not in choices:
        raise BadInput(field, f"expected one of {', '.join(choices)}")
    return str(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest:
    """What a program asks for when it creates a run."""

    agent: str
    messages: list[WireMessage]
    options: dict[str, Any]
    multitask: MultitaskStrategy
    create_thread: bool
    modes: tuple[str, ...]
    cancel_on_disconnect: bool


def run_request(body: Mapping[str, Any]) -> RunRequest:
    """Check a run request. Raises BadInput with the field's path, Refused for an unknown assistant."""
    for field in _UNSUPPORTED:
        if body.get(field) not in (None, [], {}):
            raise BadInput(field, "this server does not support it yet")
    a_choice(body, "on_completion", ("keep",), "keep")
    context, configurable = an_object(body, "context"), an_object(an_object(body, "config"), "configurable")
    if context and configurable:
        raise Refused(400, "invalid", "give either context or config.configurable, not both")
    strategies = tuple(MultitaskStrategy)
    return RunRequest(
        agent=_agent(body.get("assistant_id")),
        messages=_messages(an_object(body, "input").get("messages")),
        options=context or configurable,
        multitask=MultitaskStrategy(a_choice(body, "multitask_strategy", strategies, MultitaskStrategy.ENQUEUE)),
        create_thread=a_choice(body, "if_not_exists", ("reject", "create"), "reject") == "create",
        modes=stream_modes(body.get("stream_mode")),
        cancel_on_disconnect=a_choice(body, "on_disconnect", ("continue", "cancel"), "continue") == "cancel",
    )


def stream_modes(value: Any) -> tuple[str, ...]:
    """The wanted modes, without repetitions; `values` when none is named. `custom` is accepted and never occurs."""
    wanted = [value] if isinstance(value, str) else value if isinstance(value, list) else []
    if value is not None and not isinstance(value, str | list):
        raise BadInput("stream_mode", "expected a mode or a list of modes")
    modes = tuple(dict.fromkeys(mode for mode in wanted if mode != ""))
    for mode in modes:
        if mode not in STREAM_MODES:
            raise BadInput("stream_mode", f"this server streams {', '.join(sorted(STREAM_MODES))}")
    return modes or ("values",)


def _agent(value: Any) -> str:
    if value is None:
        raise BadInput("assistant_id", "this field is required")
    if not isinstance(value, str):
        raise BadInput("assistant_id", "expected a graph name or a UUID")
    if value in {LEAD_AGENT, assistant_id(LEAD_AGENT)}:
        return LEAD_AGENT
    try:
        UUID(value)
    except ValueError:
        raise BadInput("assistant_id", f"there is no graph of this name; graphs are: {LEAD_AGENT}") from None
    raise Refused(404, "not_found", f"no assistant {value}")


def _messages(value: Any) -> list[WireMessage]:
    if not isinstance(value, list) or not value:
        raise BadInput("input.messages", "expected a list with at least one message")
    messages = [_message(one, f"input.messages[{place}]") for place, one in enumerate(value)]
    if not text_of(messages[-1]).strip():
        raise BadInput(f"input.messages[{len(messages) - 1}].content", "the message is empty")
    return messages


def _message(value: Any, path: str) -> WireMessage:
    if isinstance(value, str):
        value = {"role": "user", "content": value}
    if not isinstance(value, dict):
        raise BadInput(path, "expected a message object")
    kind = _TYPES.get(str(value.get("type") or value.get("role")))
    if kind is None:
        raise BadInput(f"{path}.role", f"expected one of {', '.join(_TYPES)}")
    content = value.get("content")
    if not isinstance(content, str | list):
        raise BadInput(f"{path}.content", "expected text or a list of content blocks")
    size = len(content) if isinstance(content, str) else len(orjson.dumps(content))
    if size > MAX_TEXT_LENGTH:
        raise BadInput(
            f"{path}.content", f"the message has {size:,} characters; at most {MAX_TEXT_LENGTH:,} are allowed"
        )
    kept = {field: value[field] for field in _KEPT_FIELDS if value.get(field) is not None}
    return {"id": str(new_id()), **kept, "type": kind, "content": content}

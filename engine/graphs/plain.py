"""Values of a graph's state as JSON: messages as the wire writes them, models and dataclasses as objects."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Set
from datetime import date, datetime, time
from enum import Enum
from typing import Any, Final
from uuid import UUID

from langchain_core.messages import BaseMessage
from pydantic import BaseModel

from engine.text import clean, clean_json
from engine.wire import WireError, to_wire

MAX_DEPTH: Final = 40


def plain(value: Any, depth: int = 0) -> Any:
    """The value as JSON can say it; what it cannot say becomes its text. Nothing a node returns makes this raise."""
    if value is None or isinstance(value, bool | int | float | str):
        return clean_json(value)
    if depth >= MAX_DEPTH:
        return "…"
    if isinstance(value, BaseMessage):
        return _message(value)
    inner = _inside(value)
    if isinstance(inner, Mapping):
        return {_key(name): plain(one, depth + 1) for name, one in inner.items()}
    if isinstance(inner, list | tuple | Set):
        return [plain(one, depth + 1) for one in inner]
    return clean_json(inner) if isinstance(inner, str) else _text(inner)


def _inside(value: Any) -> Any:
    """What a container of any kind holds, or the text of a value that has one of its own."""
    if isinstance(value, Mapping | list | Set):
        return value
    if isinstance(value, tuple):
        return value._asdict() if hasattr(value, "_asdict") else value
    if isinstance(value, BaseModel):
        return {name: getattr(value, name, None) for name in type(value).model_fields}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {one.name: getattr(value, one.name, None) for one in dataclasses.fields(value)}
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, Enum):
        return value.value if isinstance(value.value, str) else value.name
    return str(value) if isinstance(value, UUID) else value


def _message(value: BaseMessage) -> Any:
    try:
        return to_wire(value)
    except WireError:
        return {"type": clean(str(value.type)), "id": value.id, "content": clean_json(value.content)}


def _key(name: Any) -> str:
    return clean(name) if isinstance(name, str) else _text(name)


def _text(value: Any) -> str:
    try:
        return clean(str(value))
    except Exception:  # noqa: BLE001 - a `__str__` that somebody wrote
        return f"<{type(value).__name__}>"

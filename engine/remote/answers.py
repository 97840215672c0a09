"""What a server's answers mean: LangGraph's vocabulary read into one observation of a task. Nothing is trusted."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from engine.text import clean, shorten

if TYPE_CHECKING:
    from collections.abc import Mapping

_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_:-]{0,199}")
_LONGEST_ERROR: Final = 1_000
NO_OUTPUT: Final = "(completed with no output messages)"


class TaskStatus(StrEnum):
    """A task as its supervisor sees it: the statuses of runs, and one for a thread that waits for an answer."""

    PENDING = "pending"
    RUNNING = "running"
    WAITING = "waiting"
    SUCCESS = "success"
    ERROR = "error"
    TIMEOUT = "timeout"
    INTERRUPTED = "interrupted"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """One look at a task. `result` of a success, `error` of a failure, `asks` of one that waits; otherwise empty."""

    thread_id: str
    run_id: str
    status: TaskStatus
    result: str = ""
    error: str = ""
    asks: str = ""


def usable_id(value: object) -> str | None:
    """An id of the server as it may stand in an address; None for anything else."""
    return value if isinstance(value, str) and _ID.fullmatch(value) else None


def run_status(run: Mapping[str, Any]) -> TaskStatus | None:
    """The status of a run; None for a word that no server of this protocol says."""
    try:
        status = TaskStatus(str(run.get("status")))
    except ValueError:
        return None
    return None if status is TaskStatus.WAITING else status


def result_of(thread: Mapping[str, Any]) -> str:
    """What the task came to: the text of the last message. Pictures and files are named, not carried."""
    values = thread.get("values")
    messages = values.get("messages") if isinstance(values, dict) else None
    if not isinstance(messages, list) or not messages:
        return NO_OUTPUT
    last = messages[-1]
    return clean(_text_of(last.get("content", "") if isinstance(last, dict) else last))


def error_of(said: object) -> str:
    """The reason of a failed run or thread, whatever shape it has; "" when none is given."""
    if isinstance(said, dict):
        said = next((said[key] for key in ("message", "detail", "error") if isinstance(said.get(key), str)), said)
    if said in (None, "", {}, []):
        return ""
    text = said if isinstance(said, str) else json.dumps(said, ensure_ascii=False, default=str)
    return shorten(clean(text), _LONGEST_ERROR)


def asks_of(thread: Mapping[str, Any]) -> str:
    """What a thread that waits asks for, as far as it says."""
    interrupts = thread.get("interrupts")
    groups = interrupts.values() if isinstance(interrupts, dict) else ()
    asked = [one.get("value") for group in groups if isinstance(group, list) for one in group if isinstance(one, dict)]
    texts = [one if isinstance(one, str) else json.dumps(one, ensure_ascii=False, default=str) for one in asked]
    return shorten(clean("\n".join(texts)), _LONGEST_ERROR)


def _text_of(content: object) -> str:
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(filter(None, (_block(one) for one in content)))
    return "" if content is None else json.dumps(content, ensure_ascii=False, default=str)


def _block(block: object) -> str:
    if isinstance(block, str):
        return block
    if not isinstance(block, dict):
        return ""
    if isinstance(block.get("text"), str):
        return str(block["text"])
    kind = block.get("type")
    return f"[{shorten(kind, 40)}]" if isinstance(kind, str) and kind != "text" else ""

"""What a run asks of its graph, besides messages: kept in the run's options under "graph", checked at the edge.

{"input": the state's other keys, or any JSON for a graph without messages; "go_on": true for `input: null`;
"command": {"resume", "update", "goto"}; "checkpoint_id": where to begin; "interrupt_before" and "interrupt_after":
names or "*"; "configurable", "context": objects; "recursion_limit": 1–10,000; "tags": texts; "stream_subgraphs": bool;
"stream_mode": modes to keep besides those that always are; "update": {"values", "as_node"}: only the state is written}
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from runs.errors import BadInput

OPTION: Final = "graph"
MAX_RECURSION: Final = 10_000
_OBJECTS: Final = ("command", "configurable", "context", "update")
_SWITCHES: Final = ("go_on", "stream_subgraphs")
_NAMES: Final = ("interrupt_before", "interrupt_after")
# Ours, whatever a client puts there.
OF_THE_SERVER: Final = frozenset(
    {"thread_id", "run_id", "checkpoint_ns", "checkpoint_id", "checkpoint_map", "assistant_id", "graph_id"}
)


def graph_options(asked: Mapping[str, Any], *, path: str = "") -> dict[str, Any]:
    """The known ones of these, checked. Raises BadInput with the field's path; what says nothing is left out."""
    at = f"{path}." if path else ""
    given = {name: asked[name] for name in _OBJECTS if asked.get(name) is not None}
    cleaned: dict[str, Any] = {name: _object(value, at + name) for name, value in given.items()}
    for name in _SWITCHES:
        if asked.get(name):
            if asked[name] is not True:
                raise BadInput(at + name, "expected true or false")
            cleaned[name] = True
    cleaned |= {name: _names(asked[name], at + name) for name in _NAMES if asked.get(name) not in (None, [])}
    cleaned |= _rest(asked, at)
    if "configurable" in cleaned:
        own = {key: value for key, value in cleaned["configurable"].items() if _is_theirs(key)}
        cleaned["configurable"] = own
    return cleaned


def _is_theirs(key: str) -> bool:
    return key not in OF_THE_SERVER and not key.startswith("__")


def _rest(asked: Mapping[str, Any], at: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if asked.get("input") is not None:
        found["input"] = asked["input"]
    if asked.get("checkpoint_id") is not None:
        if not isinstance(asked["checkpoint_id"], str) or len(asked["checkpoint_id"]) > 64:
            raise BadInput(f"{at}checkpoint_id", "expected a checkpoint's id")
        found["checkpoint_id"] = asked["checkpoint_id"]
    limit = asked.get("recursion_limit")
    if limit is not None:
        if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= MAX_RECURSION:
            raise BadInput(f"{at}recursion_limit", f"expected a whole number from 1 to {MAX_RECURSION:,}")
        found["recursion_limit"] = limit
    for name in ("tags", "stream_mode"):
        if asked.get(name):
            found[name] = _texts(asked[name], at + name)
    return found


def _object(value: Any, path: str) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise BadInput(path, "expected an object")
    return dict(value)


def _names(value: Any, path: str) -> Any:
    if value == "*" or value == ["*"]:
        return "*"
    return _texts(value, path)


def _texts(value: Any, path: str) -> list[str]:
    if isinstance(value, str):
        value = [value]
    if not isinstance(value, list) or not all(isinstance(one, str) and one for one in value):
        raise BadInput(path, "expected a list of names")
    return value

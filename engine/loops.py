"""Whether an agent goes round in circles, told from its tool calls alone. Pure: nothing here knows a message."""

from __future__ import annotations

import hashlib
import json
from collections import Counter, deque
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from engine.limits import LoopLimit

# The arguments that say what a call does; others (a description, a timeout) do not make it another call.
_SALIENT: Final = ("path", "url", "query", "command", "pattern", "glob", "cmd")
_WHOLE: Final = frozenset({"write_file", "str_replace"})  # what they write is what they do
_READS: Final = frozenset({"read_file"})
LINES_PER_BUCKET: Final = 200  # reads of the same 200 lines are the same read


class LoopKind(StrEnum):
    IDENTICAL = "identical"  # the same set of calls again
    FREQUENT = "frequent"  # one tool again and again, with any arguments


@dataclass(frozen=True, slots=True, kw_only=True)
class Repetition:
    """A threshold that was reached. `stops`: it ends the run, else it is to be warned about."""

    kind: LoopKind
    tool: str
    count: int
    limit: int  # the hard limit, at which the run ends
    stops: bool
    layer: str  # path of the setting that says the limit


@dataclass(slots=True)
class LoopTracker:
    """The last tool calls of one run. The same calls noted in the same order always give the same answers."""

    _sets: deque[str] = field(default_factory=deque)
    _calls: deque[str] = field(default_factory=deque)
    _warned_sets: set[str] = field(default_factory=set)
    _warned_tools: set[str] = field(default_factory=set)

    def note(self, calls: Sequence[tuple[str, object]], limit: LoopLimit) -> list[Repetition]:
        """Take in the calls of one reply, (tool, arguments), and say which thresholds they reach.

        Both rules are always evaluated. A warning is given once, and again only after what it was about had
        become rare. Source: product.md §5.2; reference deerflow-subagents.md §6.2.
        """
        if not calls:
            return []
        return [*self._note_set(calls, limit), *self._note_tools(calls, limit)]

    def _note_set(self, calls: Sequence[tuple[str, object]], limit: LoopLimit) -> list[Repetition]:
        key = key_of_set(calls)
        _append(self._sets, key, limit.window_size)
        self._warned_sets.intersection_update(self._sets)
        count = self._sets.count(key)
        stops = count >= limit.hard_limit
        if not stops and (count < limit.warn_threshold or key in self._warned_sets):
            return []
        self._warned_sets.add(key)
        tools = ", ".join(sorted({tool for tool, _arguments in calls}))
        return [
            Repetition(
                kind=LoopKind.IDENTICAL,
                tool=tools,
                count=count,
                limit=limit.hard_limit,
                stops=stops,
                layer="loop_detection.hard_limit",
            )
        ]

    def _note_tools(self, calls: Sequence[tuple[str, object]], limit: LoopLimit) -> list[Repetition]:
        tools = sorted(tool for tool, _arguments in calls)  # so that their order within the reply changes nothing
        for tool in tools:
            _append(self._calls, tool, limit.frequency_window)
        counts = Counter(self._calls)
        self._warned_tools = {tool for tool in self._warned_tools if counts[tool] >= limit.frequency_of(tool)[0]}
        found = []
        for tool in dict.fromkeys(tools):
            warn, hard = limit.frequency_of(tool)
            stops = counts[tool] >= hard
            if not stops and (counts[tool] < warn or tool in self._warned_tools):
                continue
            self._warned_tools.add(tool)
            layer = f"tool_freq_overrides.{tool}.hard_limit" if tool in limit.tool_freq_overrides else None
            found.append(
                Repetition(
                    kind=LoopKind.FREQUENT,
                    tool=tool,
                    count=counts[tool],
                    limit=hard,
                    stops=stops,
                    layer=f"loop_detection.{layer or 'tool_freq_hard_limit'}",
                )
            )
        return found


def key_of_set(calls: Iterable[tuple[str, object]]) -> str:
    """One key for the calls of a reply, whatever their order; the same call twice is another set than once."""
    keys = sorted(f"{tool}\0{_key_of_arguments(tool, arguments)}" for tool, arguments in calls)
    return hashlib.sha256("\1".join(keys).encode("utf-8", "replace")).hexdigest()


def _key_of_arguments(tool: str, arguments: object) -> str:
    given = _as_mapping(arguments)
    if given is None:
        return _json(arguments)
    if tool in _WHOLE:
        return _json(given)
    if tool in _READS:
        return _json({"path": given.get("path"), "lines": _bucket(given)})
    salient = {name: given[name] for name in _SALIENT if given.get(name) is not None}
    return _json(salient or given)


def _as_mapping(arguments: object) -> Mapping[str, Any] | None:
    """Arguments as an object, also where a provider hands on their JSON text."""
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments)
        except (ValueError, RecursionError):
            return None
    return arguments if isinstance(arguments, dict) else None


def _bucket(arguments: Mapping[str, Any]) -> list[int] | None:
    """The range of lines in steps of 200, in order; None for a read of the whole file."""
    names = ("start_line", "end_line", "offset", "limit", "view_range")
    given = [arguments[name] for name in names if arguments.get(name) is not None]
    flat = [one for value in given for one in (value if isinstance(value, list) else [value])]
    numbers = sorted(int(one) for one in flat if isinstance(one, int | float) and abs(one) < 1e12)
    return [number // LINES_PER_BUCKET for number in numbers] or None


def _json(value: object) -> str:
    try:
        return json.dumps(value, sort_keys=True, default=str)
    except (TypeError, ValueError, RecursionError):
        return str(type(value))  # keys that cannot be sorted, or nested without end


def _append(window: deque[str], value: str, size: int) -> None:
    window.append(value)
    while len(window) > size:
        window.popleft()

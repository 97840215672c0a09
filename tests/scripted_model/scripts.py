"""Builders of scripted prompts. Each answers (script id, prompt); the id finds its calls in the log."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tests.scripted_model.script import encode

Scripted = tuple[str, str]
Step = Mapping[str, Any]

_numbers = itertools.count()


def new_id(kind: str) -> str:
    """Unique among all processes of this machine that are alive together."""
    return f"{kind}-{os.getpid()}-{next(_numbers)}"


def script(*steps: Step, kind: str = "script", loop: bool = False, words: str = "Do the scripted work.") -> Scripted:
    script_id = new_id(kind)
    return script_id, f"{words} {encode({'id': script_id, 'steps': list(steps), 'loop': loop})}"


def instant() -> Scripted:
    """Answers `ok:<id>` at once."""
    return script({}, kind="instant")


def sleeper(seconds: float) -> Scripted:
    """Answers `ok:<id>` after that time."""
    return script({"sleep": seconds}, kind="sleeper")


def says(text: str, **step: Any) -> Scripted:
    return script({"text": text, **step}, kind="says")


def gated(gate: str) -> Scripted:
    """Answers `ok:<id>` once the gate is opened."""
    return script({"gate": gate}, kind="gated")


def tokens(count: int, rate: float = 0.0, sleep: float = 0.0) -> Scripted:
    """Streams `t0 t1 t2 …`, `rate` a second, after `sleep` seconds."""
    return script({"tokens": count, "rate": rate, "sleep": sleep}, kind="tokens")


def task_call(description: str, prompt: str, subagent: str = "general-purpose") -> Step:
    return call("task", description=description, prompt=prompt, subagent_type=subagent)


def call(tool: str, **arguments: Any) -> Step:
    return {"name": tool, "args": arguments}


def delegate_to(children: Sequence[Scripted], subagent: str = "general-purpose") -> Scripted:
    """A lead that hands each child its script, in one reply, and answers `ok:<id>` when all are back."""
    calls = [task_call(f"scripted part {n}", prompt, subagent) for n, (_, prompt) in enumerate(children, 1)]
    return script({"calls": calls}, {}, kind="lead")


def delegate(count: int, seconds: float, subagent: str = "general-purpose") -> tuple[str, list[str], str]:
    """A lead with that many children of that time in parallel. Answers (id, the children's ids, prompt)."""
    children = [sleeper(seconds) for _ in range(count)]
    script_id, prompt = delegate_to(children, subagent)
    return script_id, [child_id for child_id, _ in children], prompt


def tool_then(tool: str, arguments: Mapping[str, Any], *, answer: Step | None = None, **step: Any) -> Scripted:
    """Calls one tool, then answers."""
    return script({"calls": [call(tool, **arguments)], **step}, answer or {}, kind="tool")


def tool_loop(tool: str, arguments: Mapping[str, Any]) -> Scripted:
    """Calls the same tool with the same arguments for ever."""
    return script({"calls": [call(tool, **arguments)]}, kind="loop")


def varied_loop(tool: str, arguments_of: Callable[[int], Mapping[str, Any]], count: int) -> Scripted:
    """Calls one tool with other arguments each time, `count` times, over and over."""
    steps = [{"calls": [call(tool, **arguments_of(number))]} for number in range(count)]
    return script(*steps, kind="loop", loop=True)


def flaky(statuses: Sequence[int], text: str | None = None) -> Scripted:
    """The first attempts get these statuses, with permission to retry at once."""
    step = {"fail": list(statuses)}
    return script(step if text is None else step | {"text": text}, kind="flaky")


def cut(after: int = 10, count: int = 100) -> Scripted:
    """The connection breaks after that many tokens, at each attempt."""
    return script({"tokens": count, "cut": after}, kind="cut")


def closed(after: int = 10, count: int = 100) -> Scripted:
    """The stream ends after that many tokens as if all were well, but unfinished."""
    return script({"tokens": count, "close": after}, kind="closed")


def hanging() -> Scripted:
    """Never answers."""
    return script({"hang": True}, kind="hang")


def append_line(file: str, line: str | None = None, *, sleep: float = 0.0, gate: str | None = None) -> Scripted:
    """Appends one line to a file of the workspace through `write_file`, then answers.

    Without `line` the script's id is the line, so that a line that is there twice was written twice.
    `sleep` and `gate` hold the answer back after the append: the moment to kill a worker.
    """
    script_id = new_id("append")
    append = call("write_file", path=file, content=f"{line or script_id}\n", append=True)
    answer: dict[str, Any] = {"sleep": sleep, "text": f"ok:{script_id}"}
    steps = [{"calls": [append]}, answer | {"gate": gate} if gate else answer]
    return script_id, f"Append a line. {encode({'id': script_id, 'steps': steps})}"

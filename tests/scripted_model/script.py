"""A conversation may carry its own script, so that many runs at once need no state in the server.

The last user message with `@@<base64url of JSON>@@` in it is the script; the step to play is the
number of assistant messages after it:

    {"id": "r17", "steps": [STEP, …], "loop": false}

The last step repeats, or all of them in turn with `loop`. `reply.STEP_FIELDS` lists what a STEP may say.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.scripted_model.calls import ModelCall, text_of
from tests.scripted_model.reply import Reply, ScriptError, reply_from_step

if TYPE_CHECKING:
    from collections.abc import Mapping

MARK = re.compile(r"@@([A-Za-z0-9_\-]{8,}={0,2})@@")


@dataclass(frozen=True, slots=True)
class Script:
    id: str
    steps: tuple[Mapping[str, object], ...]
    loop: bool

    def step_number(self, turn: int) -> int:
        return turn % len(self.steps) if self.loop else min(turn, len(self.steps) - 1)


def encode(script: Mapping[str, object]) -> str:
    """The mark to put into a prompt; nothing in it needs escaping in JSON, HTML or a shell."""
    packed = base64.urlsafe_b64encode(json.dumps(script).encode()).decode().rstrip("=")
    return f"@@{packed}@@"


def scripted_reply(call: ModelCall) -> Reply | None:
    """The reply the conversation asks for, None when it carries no script. Raises ScriptError.

    Notes script id, turn and step on the call.
    """
    turn = 0
    for message in reversed(call.messages):
        if message.get("role") == "assistant":
            turn += 1
        elif message.get("role") == "user":
            script = find_script(text_of(message.get("content")))
            if script:
                call.script_id, call.turn, call.step = script.id, turn, script.step_number(turn)
                return reply_from_step(script.steps[call.step])
    return None


def find_script(text: str) -> Script | None:
    """The last script in a text. A mark that does not decode is ordinary text, not a script."""
    marks = MARK.findall(text) if "@@" in text else ()
    for mark in reversed(marks):
        try:
            script = json.loads(base64.urlsafe_b64decode(mark + "=" * (-len(mark) % 4)))
        except (binascii.Error, ValueError):
            continue
        if isinstance(script, dict):
            return _checked(script)
    return None


def _checked(script: Mapping[str, object]) -> Script:
    unknown = sorted(set(script) - {"id", "steps", "loop"})
    if unknown:
        raise ScriptError(f"unknown field in the script: {', '.join(unknown)}")
    steps = script.get("steps") or [{}]
    if not isinstance(steps, list) or not all(isinstance(step, dict) for step in steps):
        raise ScriptError("a script's steps must be a list of objects")
    return Script(id=str(script.get("id", "")), steps=tuple(steps), loop=bool(script.get("loop")))

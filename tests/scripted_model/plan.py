"""A plausible model without a script: a lead that delegates three briefs, and subagents that work on them.

Everything it says is made from the words it was given, so other prompts give other briefs, files and
answers. It is a function of the conversation alone.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tests.scripted_model import words
from tests.scripted_model.calls import ModelCall, text_of
from tests.scripted_model.reply import Reply, ToolCall

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

SUBAGENT = "general-purpose"
NAMED_FILE = re.compile(r"`([^`\n]+\.(?:md|txt))`|([\w./-]+\.(?:md|txt))\b")
MOST_FILES = 6
QUOTED_CHARACTERS = 400
LINE_NUMBER = re.compile(r"^\s*\d+\s*(?:\t|→|\||: )\s?")  # as file tools put before each line


@dataclass(frozen=True, slots=True)
class Turn:
    """The last user message and what has happened since."""

    user_text: str
    calls: Mapping[str, tuple[str, Mapping[str, Any]]]  # call id → tool name, arguments
    results: Sequence[tuple[str, str]]  # call id, text

    def results_of(self, tool: str) -> list[tuple[Mapping[str, Any], str]]:
        """Arguments and result of every answered call of this tool."""
        answered = ((self.calls.get(call_id), text) for call_id, text in self.results)
        return [(call[1], text) for call, text in answered if call and call[0] == tool]


def current_turn(messages: Sequence[Mapping[str, Any]]) -> Turn:
    """Notes that a platform slips in after tool results, in tags or brackets, do not start a new turn."""
    start = 0
    for position, message in enumerate(messages):
        if message.get("role") == "user" and not _is_a_note(messages, position):
            start = position
    since = messages[start:]
    calls = {
        str(call.get("id")): (str(call["function"]["name"]), _arguments(call["function"].get("arguments")))
        for message in since
        for call in message.get("tool_calls") or ()
    }
    results = [
        (str(message.get("tool_call_id")), text_of(message.get("content")))
        for message in since
        if message.get("role") == "tool"
    ]
    return Turn(text_of(messages[start].get("content")) if messages else "", calls, results)


def _is_a_note(messages: Sequence[Mapping[str, Any]], position: int) -> bool:
    before = messages[position - 1].get("role") if position else None
    text = text_of(messages[position].get("content")).lstrip()
    return before in ("tool", "assistant") and text.startswith(("<", "["))


def _arguments(text: object) -> Mapping[str, Any]:
    try:
        parsed = json.loads(str(text))
    except ValueError:
        return {}
    return parsed if isinstance(parsed, dict) else {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Planner:
    """A responder. Rates are pieces of text per second, 0 for at once."""

    rate_per_second: float = 0.0
    latency_seconds: float = 0.0

    def __call__(self, call: ModelCall) -> Reply:
        turn, offered = current_turn(call.messages), call.tool_names
        delegated = turn.results_of("task")
        if delegated:
            return self._after_delegation(turn, delegated, offered)
        if "task" in offered:
            return self._delegate(turn)
        if "write_file" in offered:
            return self._work(turn)
        return self._say(_plain_answer(turn))

    def _say(self, text: str, calls: tuple[ToolCall, ...] = ()) -> Reply:
        return Reply(
            chunks=words.pieces(text),
            calls=calls,
            rate_per_second=self.rate_per_second,
            sleep_seconds=self.latency_seconds,
        )

    def _delegate(self, turn: Turn) -> Reply:
        topic, parts = words.short_topic(turn.user_text), words.three_parts(turn.user_text)
        chinese = words.is_chinese(turn.user_text)
        said = (
            f"我会把“{topic}”分成三部分。三个子代理同时开始工作。"
            if chinese
            else f'I will split "{topic}" into three parts. Three subagents start on them at once.'
        )
        return self._say(said, tuple(_task(part, turn.user_text, chinese) for part in parts))

    def _work(self, turn: Turn) -> Reply:
        """A subagent: write the findings to a file, then name it."""
        name, chinese = words.file_name(turn.user_text), words.is_chinese(turn.user_text)
        written = turn.results_of("write_file")
        if not written:
            arguments = {"path": name, "content": _findings(turn.user_text, chinese)}
            said = f"我把结果写入 `{name}`。" if chinese else f"I write what I find to `{name}`."
            return self._say(said, (ToolCall(name="write_file", arguments=arguments),))
        name = str(written[-1][0].get("path", name))
        topic = turn.user_text.strip().split("\n", 1)[0].rstrip(".。")
        if chinese:
            return self._say(f"“{topic}”已完成，结果在 `{name}`。")
        return self._say(f'"{topic}" is done; the findings are in `{name}`.')

    def _after_delegation(
        self, turn: Turn, delegated: list[tuple[Mapping[str, Any], str]], offered: tuple[str, ...]
    ) -> Reply:
        read = turn.results_of("read_file")
        files = _named_files(text for _, text in delegated)
        chinese = words.is_chinese(turn.user_text)
        if files and not read and "read_file" in offered:
            said = "我来读取这些文件。" if chinese else "I read what they wrote."
            reads = tuple(ToolCall(name="read_file", arguments={"path": name}) for name in files)
            return self._say(said, reads)
        sources = [(str(arguments.get("path")), text) for arguments, text in read] or [
            (str(arguments.get("description")), text) for arguments, text in delegated
        ]
        return self._say(_summary(words.short_topic(turn.user_text), sources, chinese))


def _task(part: words.Part, request: str, chinese: bool) -> ToolCall:
    subject, angle, request = part.subject, part.angle, request.strip()[:600]
    if chinese:
        description = f"调研{subject}的{angle}"
        prompt = f"{subject}的{angle}\n只处理下面请求中的这一部分，把结果写入一个文件。\n{request}"
    else:
        description = f"Research {' '.join(subject.split()[:2])} {angle}"
        prompt = (
            f"{subject}: {angle}\nThis is one part of the request below. Work on this part only and "
            f"write what you find to a file.\n{request}"
        )
    arguments = {"description": description, "prompt": prompt, "subagent_type": SUBAGENT}
    return ToolCall(name="task", arguments=arguments)


def _findings(brief: str, chinese: bool) -> str:
    heading, _, rest = brief.strip().partition("\n")
    request = rest.strip().rsplit("\n", 1)[-1] or heading
    if chinese:
        points = (f"要点：{heading}需要结合原请求来看。", f"原请求：{request}", f"字数：{len(request)}")
        return _document(heading, points)
    telling = ", ".join(words.keywords(request)[:6]) or request
    points = (
        f"What matters here: {telling}.",
        f"The request: {request}",
        f"Words in it: {len(request.split())}",
    )
    return _document(heading, points)


def _document(heading: str, points: Iterable[str]) -> str:
    return f"# {heading}\n\n" + "".join(f"- {point}\n" for point in points)


def _named_files(texts: Iterable[str]) -> list[str]:
    found = (match[1] or match[2] for text in texts for match in NAMED_FILE.finditer(text))
    return list(dict.fromkeys(found))[:MOST_FILES]


def _summary(topic: str, sources: list[tuple[str, str]], chinese: bool) -> str:
    lines = [f"## {topic}：总结" if chinese else f"## Summary: {topic}", ""]
    for name, text in sources:
        quoted = [LINE_NUMBER.sub("", line) for line in text[:QUOTED_CHARACTERS].splitlines()]
        lines += [f"### {name}", "", *(f"> {line}" for line in quoted if line.strip()), ""]
    lines.append(f"以上共引用 {len(sources)} 处来源。" if chinese else f"Quoted from {len(sources)} sources.")
    return "\n".join(lines)


def _plain_answer(turn: Turn) -> str:
    topic = words.short_topic(turn.user_text)
    return f"关于“{topic}”：已收到。" if words.is_chinese(turn.user_text) else f"About {topic}: noted."

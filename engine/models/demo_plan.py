"""What the demo model does next, read from the request alone: its messages and the tools it offers."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import cycle, islice
from typing import TYPE_CHECKING, Any, Final

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from engine.middleware.names import ANSWER_NOW, PLATFORM_NOTE
from engine.models import demo_words as words
from engine.text import shorten

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_FILE: Final = re.compile(r"`([^`\n]{1,200}\.md)`")
_ENDING: Final = re.compile(r"(?:demo|演示)\s*[:：]\s*(lead\s+|主代理)?(cut short|failed|slow|中断|失败|缓慢)", re.I)
_LINE_NUMBER: Final = re.compile(r"^\s*\d+\s*[|\t:→]\s?")
MAX_QUOTE_CHARACTERS: Final = 160


class Ending(StrEnum):
    """How a reply ends otherwise than well."""

    CUT_SHORT = "cut short"
    FAILED = "failed"
    SLOW = "slow"


_CHINESE_ENDINGS: Final = {"中断": Ending.CUT_SHORT, "失败": Ending.FAILED, "缓慢": Ending.SLOW}


@dataclass(frozen=True, slots=True)
class Planned:
    """One reply. `calls`: (tool, arguments)."""

    text: str
    calls: tuple[tuple[str, Mapping[str, Any]], ...] = ()
    ending: Ending | None = None


@dataclass(frozen=True, slots=True)
class Situation:
    """The request as the plan sees it: what was asked, what was done about it since, what may be called."""

    request: str
    since: tuple[BaseMessage, ...]
    tools: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def results(self, *names: str) -> list[ToolMessage]:
        return [one for one in self.since if isinstance(one, ToolMessage) and one.name in names]

    @property
    def replies(self) -> list[AIMessage]:
        return [one for one in self.since if isinstance(one, AIMessage)]

    def calls(self, name: str) -> Iterator[Mapping[str, Any]]:
        for reply in self.replies:
            yield from (call for call in reply.tool_calls if call["name"] == name)

    @property
    def must_answer(self) -> bool:
        """Whether the platform asks for the last reply of the run."""
        return bool(self.since) and str(self.since[-1].text).endswith(ANSWER_NOW)

    @property
    def is_lead(self) -> bool:
        return "task" in self.tools or any(True for _ in self.calls("task"))


def situation_of(messages: Sequence[BaseMessage], tools: Sequence[Mapping[str, Any]]) -> Situation:
    """Read a request. `tools` in OpenAI's form."""
    offered = {one["function"]["name"]: one["function"].get("parameters", {}) for one in tools}
    start = next((at for at in range(len(messages) - 1, -1, -1) if _is_request(messages[at])), None)
    if start is None:
        return Situation("", tuple(messages), offered)
    return Situation(str(messages[start].text), tuple(messages[start + 1 :]), offered)


def plan(situation: Situation) -> Planned:
    """The next reply. The same situation always gives the same one."""
    ending = _ending(situation)
    if ending in (Ending.FAILED, Ending.SLOW) and not situation.replies:
        return Planned(words.work_sentence(situation.request, "…"), ending=ending)
    if ending is Ending.CUT_SHORT and "ls" in situation.tools:
        looks = len(situation.replies)
        said = words.cut_short_sentence(situation.request, looks) if situation.must_answer else f"({looks + 1})"
        return Planned(said, (("ls", {"path": "."}),))
    if words.is_small_talk(situation.request):
        return Planned(words.greeting(situation.request))
    return _lead(situation) if situation.is_lead else _worker(situation)


def _lead(situation: Situation) -> Planned:
    done = situation.results("task")
    if not done and "task" in situation.tools:
        return _delegation(situation)
    read = situation.results("read_file")
    files = [path for result in done for path in _FILE.findall(str(result.text))]
    if files and not read and "read_file" in situation.tools:
        return Planned("", tuple(("read_file", {"path": path}) for path in dict.fromkeys(files)))
    titles = [str(call["args"].get("description", "")) for call in situation.calls("task")]
    by_call = {result.tool_call_id: _outcome(result) for result in done}
    outcomes = [by_call.get(str(call["id"]), words.Outcome.NOT_DONE) for call in situation.calls("task")]
    paths = [str(call["args"].get("path", "")) for call in situation.calls("read_file")]
    quotes = [(path, _quote(str(result.text))) for path, result in zip(paths, read, strict=False)]
    return Planned(words.summary(_asked(situation), list(zip(titles, outcomes, strict=True)), quotes))


def _delegation(situation: Situation) -> Planned:
    asked = _asked(situation)
    briefs = words.briefs_for(asked)
    marker = _ENDING.search(situation.request)
    prompts = [brief.prompt for brief in briefs]
    if marker and not marker[1]:
        prompts[0] = f"{prompts[0]} ({marker[0]})"  # the first child shows the ending that was asked for
    types = _subagents(situation.tools["task"], asked)
    calls = (
        ("task", {"description": brief.title, "prompt": prompt, "subagent_type": name})
        for brief, prompt, name in zip(briefs, prompts, islice(cycle(types), len(briefs)), strict=True)
    )
    return Planned(words.plan_sentences(asked, briefs), tuple(calls))


def _worker(situation: Situation) -> Planned:
    brief = _asked(situation)
    path = words.file_for(brief)
    if "write_file" not in situation.tools and not situation.results("write_file"):
        return Planned(words.answer_without_tools(brief))
    written = situation.results("write_file")
    if not written:
        text = words.file_text(brief)
        return Planned(words.work_sentence(brief, path), (("write_file", {"path": path, "content": text}),))
    problem = "" if written[-1].status == "success" else shorten(str(written[-1].text), MAX_QUOTE_CHARACTERS)
    if not problem and len(situation.replies) == 1:
        checked = _check(situation, brief, path)
        if checked:
            return Planned("", (checked,))
    return Planned(words.done_sentence(brief, path, problem=problem))


def _check(situation: Situation, brief: str, path: str) -> tuple[str, dict[str, Any]] | None:
    """Look at what was written: in the shell for whoever is made for it, else by reading it back."""
    offered = situation.tools
    if "bash" in offered and ("grep" not in offered or re.search(r"\b(bash|shell|command)\b|命令", brief, re.I)):
        # The path holds only letters, digits, hyphens and one slash, so it needs no quoting.
        return "bash", {"command": f"wc -c {path} && tail -n 2 {path}", "description": "Check the file"}
    return ("read_file", {"path": path}) if "read_file" in offered else None


def _subagents(parameters: Mapping[str, Any], asked: str) -> list[str]:
    """The offered subagents in the order to use them: those the person named, else general-purpose first."""
    names = parameters.get("properties", {}).get("subagent_type", {}).get("enum") or ["general-purpose"]
    named = [name for name in names if re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", asked, re.I)]
    return named or sorted(names, key=lambda name: name != "general-purpose")


def _ending(situation: Situation) -> Ending | None:
    """The ending this very run shall show; one without `lead` is for the lead's first child."""
    marker = _ENDING.search(situation.request)
    if marker is None or (situation.is_lead and not marker[1]):
        return None
    return _CHINESE_ENDINGS.get(marker[2]) or Ending(marker[2].lower())


def _asked(situation: Situation) -> str:
    return _ENDING.sub("", situation.request).replace("()", "").strip()


def _is_request(message: BaseMessage) -> bool:
    return isinstance(message, HumanMessage) and not str(message.text).startswith(PLATFORM_NOTE)


def _outcome(result: ToolMessage) -> words.Outcome:
    if result.status != "success":
        return words.Outcome.NOT_DONE
    facts = result.artifact if isinstance(result.artifact, dict) else {}
    capped = bool(facts.get("subagent_stop_reason"))
    return words.Outcome.CUT_SHORT if capped else words.Outcome.DONE


def _quote(text: str) -> str:
    """The first line of a file's text that says more than its heading."""
    lines = [_LINE_NUMBER.sub("", line).strip() for line in text.splitlines()]
    said = [line for line in lines if line and not line.startswith("#")]
    return shorten((said or lines or [""])[0], MAX_QUOTE_CHARACTERS)

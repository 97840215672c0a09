"""What the demo model says, in the language of the request. Pure text: the plan decides when it is said."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

MAX_TOPIC_CHARACTERS: Final = 60
MAX_SLUG_CHARACTERS: Final = 32
CHILDREN: Final = 3

_CHINESE: Final = re.compile("[\u3400-\u9fff]")
_SMALL_TALK: Final = re.compile(
    r"(hi|hello|hey|good (morning|day|evening)|thanks|thank you|bye|who are you|what can you do|help"
    r"|你好|您好|嗨|谢谢|多谢|早上好|晚上好|再见|你是谁|你能做什么|帮助)( there)?[\s!.?,！。？，]*",
    re.I,
)
_LISTED: Final = re.compile(r"\s*(?:,|;|、|，|；|\band\b|\bor\b|\bvs\.?(?=\s)|和|与|以及|\n)\s*", re.I)
_LEAD_IN: Final = re.compile(
    r"^(?:please\s+|now\s+|also\s+|could you\s+|can you\s+|请你?|帮我|再)*"
    r"(?:compare|research|investigate|analy[sz]e|describe|explain|write about|tell me about|look into|study"
    r"|比较|对比|研究|调查|分析|介绍|说明|写一?写)?(?:一下)?\s*(?:the\s+)?",
    re.I,
)


class Outcome(StrEnum):
    """What came of a delegation, as far as its result tells the model."""

    DONE = "done"
    CUT_SHORT = "cut short"
    NOT_DONE = "not done"


_CHINESE_OUTCOMES: Final = {Outcome.DONE: "完成", Outcome.CUT_SHORT: "提前结束", Outcome.NOT_DONE: "未完成"}


@dataclass(frozen=True, slots=True)
class Brief:
    """One delegation: `title` for the card, `prompt` for the subagent."""

    title: str
    prompt: str


_EDGES: Final = " .。!！?？:：,，;；"


def is_chinese(text: str) -> bool:
    return _CHINESE.search(text) is not None


def is_small_talk(text: str) -> bool:
    return _SMALL_TALK.fullmatch(text.strip()) is not None


def topic_of(request: str) -> str:
    """The request without its polite beginning, in one short line."""
    line = " ".join(request.split())
    return _short(_LEAD_IN.sub("", line, count=1).strip(_EDGES) or line or "…", MAX_TOPIC_CHARACTERS)


def title_of(brief: str) -> str:
    """What a brief is about: the words before its colon, as the lead writes them."""
    head, *rest = re.split("[:：]", " ".join(brief.split()), maxsplit=1)
    return head if rest and 0 < len(head) <= MAX_TOPIC_CHARACTERS else topic_of(brief)


def parts_of(request: str) -> list[str]:
    """What the request itself lists ("a, b and c"), when it lists enough for all children."""
    topic = _LEAD_IN.sub("", " ".join(request.split()), count=1)
    found = [part.strip(_EDGES) for part in _LISTED.split(topic)]
    parts = [_short(part, MAX_TOPIC_CHARACTERS) for part in dict.fromkeys(found) if part]
    return parts[:CHILDREN] if len(parts) >= CHILDREN else []


def briefs_for(request: str) -> list[Brief]:
    """Three briefs made of the request's own words: for each thing it lists, or three views on its topic."""
    topic = topic_of(request)
    listed = parts_of(request)
    if is_chinese(request):
        if listed:
            return [Brief(f"整理{part}", f"{part}：整理要点并给出例子。这是“{topic}”的一部分。") for part in listed]
        return [
            Brief(f"{view}：{_short(topic, 12)}", f"{topic}的{view}：写清楚并给出例子。")
            for view in ("要点", "风险", "下一步")
        ]
    if listed:
        return [
            Brief(f"Study {_few(part)}", f"{part}: collect what matters and give examples. It is part of “{topic}”.")
            for part in listed
        ]
    views = (("Facts about", "the main facts"), ("Risks of", "what can go wrong"), ("Next steps for", "what to do"))
    return [
        Brief(f"{view} {_few(topic)}", f"{view} {topic}: work out {goal} and give examples.") for view, goal in views
    ]


def file_for(brief: str) -> str:
    """Where a subagent keeps its text: readable, and different for different briefs."""
    words = re.findall(r"[a-z0-9]+|[\u3400-\u9fff]+", title_of(brief).lower())
    slug = "-".join(words)[:MAX_SLUG_CHARACTERS].strip("-") or "note"
    return f"notes/{slug}-{hashlib.sha256(brief.encode()).hexdigest()[:6]}.md"


def file_text(brief: str) -> str:
    """The text of that file: every line of it comes from the brief."""
    topic = title_of(brief)
    words = _key_words(brief)
    if is_chinese(brief):
        lines = [f"- 任务有 {len(brief)} 个字", *(f"- 关键词：{word}" for word in words)]
        return f"# {topic}\n\n任务：{brief}\n\n" + "\n".join(lines) + "\n"
    lines = [f"- The brief has {len(brief.split())} words", *(f"- Key word: {word}" for word in words)]
    return f"# {topic}\n\nThe brief: {brief}\n\n" + "\n".join(lines) + "\n"


def plan_sentences(request: str, briefs: Sequence[Brief]) -> str:
    topic = topic_of(request)
    titles = [brief.title for brief in briefs]
    if is_chinese(request):
        return f"我会把“{topic}”分成 {len(briefs)} 部分同时处理。分别是：{'、'.join(titles)}。"
    return f"I split “{topic}” into {len(briefs)} parts that run at the same time. They are: {'; '.join(titles)}."


def work_sentence(brief: str, path: str) -> str:
    if is_chinese(brief):
        return f"我先把“{title_of(brief)}”的内容写到 {path}。"
    return f"First I write what there is about “{title_of(brief)}” to {path}."


def done_sentence(brief: str, path: str, *, problem: str) -> str:
    topic = title_of(brief)
    if is_chinese(brief):
        return f"没能写入 `{path}`：{problem}" if problem else f"“{topic}”已整理好，内容在 `{path}`。"
    if problem:
        return f"I could not write `{path}`: {problem}"
    return f"Done with “{topic}”. My notes are in `{path}`."


def cut_short_sentence(request: str, looks: int) -> str:
    if is_chinese(request):
        return f"我查看了 {looks} 次文件夹，没有新的内容，只能到此为止。"
    return f"I looked at the folder {looks} times and found nothing new, so I stop here."


def answer_without_tools(request: str) -> str:
    topic = topic_of(request)
    if is_chinese(request):
        return f"关于“{topic}”：这次运行没有可用的工具，所以我只能复述任务。我是内置的演示模型。"
    return f"About “{topic}”: this run offers me no tools, so all I can do is repeat it. I am the built-in demo model."


def greeting(request: str) -> str:
    if is_chinese(request):
        return "你好！我是内置的演示模型，没有连接任何语言模型。给我一个任务，我会分给三个子代理并汇总它们写的文件。"
    return (
        "Hello! I am the built-in demo model; no language model is connected. "
        "Give me a task, and I hand it to three subagents and answer from the files they write."
    )


def summary(request: str, rows: Sequence[tuple[str, Outcome]], quotes: Sequence[tuple[str, str]]) -> str:
    """The lead's answer in Markdown. `rows`: (title, outcome); `quotes`: (file, a line read from it)."""
    topic = topic_of(request)
    chinese = is_chinese(request)
    table = [f"| {_cell(title)} | {_CHINESE_OUTCOMES[outcome] if chinese else outcome} |" for title, outcome in rows]
    listed = [f"- `{path}`: {line}" for path, line in quotes]
    if chinese:
        parts = [f"## {topic}", "| 部分 | 结果 |\n| --- | --- |", "从文件中读到：", "*由内置演示模型生成。*"]
        none = "- 没有可读的文件"
    else:
        parts = [
            f"## {topic[:1].upper()}{topic[1:]}",
            "| Part | Result |\n| --- | --- |",
            "Read from the files:",
            "*Written by the built-in demo model.*",
        ]
        none = "- there was no file to read"
    heading, head, intro, footer = parts
    return "\n\n".join([heading, "\n".join([head, *table]), intro, "\n".join(listed or [none]), footer])


def _short(text: str, limit: int) -> str:
    """For titles, where a mark with the count would be longer than what it replaces."""
    return text if len(text) <= limit else f"{text[: limit - 1].rstrip()}…"


def _key_words(brief: str) -> list[str]:
    found = re.findall(r"[A-Za-z][\w-]{4,}|[\u3400-\u9fff]{2,6}", brief)
    return list(dict.fromkeys(found))[:6]


def _few(text: str) -> str:
    return _short(" ".join(text.split()[:4]), 40)


def _cell(text: str) -> str:
    return text.replace("|", "/").replace("\n", " ")

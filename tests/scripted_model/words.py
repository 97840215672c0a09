"""Taking a person's words apart, in any language, far enough to write briefs that are really about them."""

from __future__ import annotations

import re
from dataclasses import dataclass

HAN = re.compile(r"[\u3400-\u9fff]")
KANA = re.compile(r"[\u3040-\u30ff]")
WORD = re.compile(r"\w[\w'’.+#-]*", re.UNICODE)
LIST_BREAK = re.compile(r"\s*(?:[,;，；、\n]|\b(?:and|und|et|y)\b|以及|还有|和|与|及)\s*", re.IGNORECASE)
SENTENCE_END = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])|\n+")
STOP_WORDS = frozenset(
    re.findall(
        r"\w+",
        """a about all also an analyse analyze and any are as at be but by can check compare could describe do
        does each explain find for from get give had has have help her his how i if in into is it its just let
        like look make me my need not of on one or our out plan please research she should so some summarise
        summarize tell than that the their them then there these they this three to two us use want was we
        what when where which who why will with would write you your""",
    )
)
POLITE_HAN = re.compile(r"^(?:请你?|麻烦你?|帮我|帮忙|我想要?|我们想要?|给我|你能|能否|可以)+")
LONGEST_WORD = 24
LONGEST_HAN_TOPIC = 14


def is_chinese(text: str) -> bool:
    """Whether an answer in Chinese fits: Han characters, and no kana, which would make it Japanese."""
    return bool(HAN.search(text)) and not KANA.search(text)


def keywords(text: str) -> list[str]:
    """The telling words in their order, each once."""
    words = [word.strip("'’.-")[:LONGEST_WORD] for word in WORD.findall(text)]
    return list(dict.fromkeys(word for word in words if word and word.lower() not in STOP_WORDS))


def short_topic(text: str) -> str:
    """A few words that name what the text is about; of Chinese, its first clause without the courtesies."""
    if is_chinese(text):
        clause = re.split(r"[，。！？；,.!?;：:\n]", text.strip())[0]
        return POLITE_HAN.sub("", clause)[:LONGEST_HAN_TOPIC] or text[:LONGEST_HAN_TOPIC]
    return " ".join(keywords(text)[:3]) or text.strip()[:LONGEST_WORD] or "request"


def listed_subjects(text: str) -> list[str]:
    """What the longest enumeration of the text names ("SQLite, PostgreSQL and MySQL"); [] without one."""
    best: list[str] = []
    for sentence in SENTENCE_END.split(text):
        parts = [part.strip(" .!?。！？:：\"'“”") for part in LIST_BREAK.split(sentence)]
        parts = list(dict.fromkeys(part for part in parts if part))
        if len(parts) > len(best):
            best = parts
    return best if len(best) >= 3 else []


@dataclass(frozen=True, slots=True)
class Part:
    """One third of a request: what it is about, and from which side."""

    subject: str
    angle: str


ANGLES = ("key facts", "options", "open risks")
ANGLES_HAN = ("背景与事实", "方案与比较", "风险与建议")


def three_parts(text: str) -> tuple[Part, Part, Part]:
    """Three different parts of a request: what it lists, else three angles on its topic."""
    angles = ANGLES_HAN if is_chinese(text) else ANGLES
    topics = list(dict.fromkeys(short_topic(subject) for subject in listed_subjects(text)))
    if len(topics) >= 3:
        return tuple(Part(topic, angles[0]) for topic in topics[:3])  # type: ignore[return-value]
    return tuple(Part(short_topic(text), angle) for angle in angles)  # type: ignore[return-value]


def file_name(brief: str) -> str:
    """A name for the file a subagent writes, from the first line of its brief; Chinese stays Chinese."""
    first_line = brief.strip().split("\n", 1)[0]
    slug = re.sub(r"[^\w]+", "-", first_line.lower(), flags=re.UNICODE).strip("-_")
    return f"{slug[:48].strip('-_') or 'notes'}.md"


def pieces(text: str) -> tuple[str, ...]:
    """Text as a model streams it: words with the space after them, Han characters in pairs, nothing lost."""
    return tuple(re.findall(r"[\u3400-\u9fff，。！？：；、]{1,2}|[^\s\u3400-\u9fff]+\s*|\s+", text))

"""What makes a description hard to choose by: too short, says no doing, or nearly the same as another one.

A hint, so in doubt nothing is said. The rules know English and Chinese; other languages are only counted and compared.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from functools import lru_cache
from math import ceil
from typing import TYPE_CHECKING, Final

from engine.text import shorten
from subagents.definitions import Source
from subagents.notes import Note, note

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence
    from typing import TypeVar

    from subagents.definitions import Definition

    Key = TypeVar("Key", bound=Hashable)

REMARKS: Final = frozenset({"description_short", "description_no_verb", "description_alike"})  # codes of the notes

_SHORTEST: Final = 20  # letters; a Chinese character says about as much as two and a half
_CHINESE_WEIGHT: Final = 2.5
_NEARLY: Final = 0.8  # share of words that two descriptions have in common, of all that either has
_FEWEST_WORDS: Final = 4  # below that only the same words count as nearly the same
_MOST_COMPARED: Final = 50  # others that one description is compared with

_CHINESE: Final = re.compile(r"[\u3400-\u9fff]+")
_WORD: Final = re.compile(r"[^\W_]+")
_ENGLISH_WORD: Final = re.compile(r"[a-z'’-]+")

_ROLE: Final = re.compile(
    "(sub)?agent|assistant|helper|expert|specialist|bot|professional|developer|engineer|programmer|reviewer|researcher"
    "|writer|editor|analyst|designer|architect|tester|translator|manager|planner|consultant|advisor"
)
# Whatever begins with one of these, or with a word that looks like a verb, says what is done.
_VERB: Final = re.compile(
    "use|call|pick|choose|invoke|run|ask|find|search|look|research|review|check|test|write|draft|edit|read|analy[sz]e"
    "|design|plan|build|make|create|fix|debug|help|assist|support|translate|convert|extract|summari[sz]e|compare"
    "|collect|gather|generate|answer|explain|manage|organi[sz]e|monitor|watch|verify|validate|handle|do|perform"
    "|execute|turn|take|get|fetch|prepare|produce|refactor|implement|improve|optimi[sz]e|.*(s|ing)"
)
# Somewhere in the text they say when to pick it.
_CUE: Final = re.compile("when|whenever|if|use|used|for|that|who|which|to|should|must|can|will")
_CHINESE_ROLE: Final = re.compile(
    r"^(?:你是|我是|这是|它是)?(?:一[个名位种款])?[\u3400-\u9fffA-Za-z ]{0,16}"
    r"(?:助手|助理|专家|代理|智能体|机器人|工程师|研究员|分析师|翻译|顾问|作家|编辑|设计师|架构师|审查员)[。.!！]?$"
)


def lint(descriptions: Mapping[Key, str]) -> dict[Key, tuple[Note, ...]]:
    """Return the notes on each description that has any; keys are compared as given and shown as text.

    Cost grows with the number of descriptions, not with its square: each is compared only with those that share
    its rarest words.
    """
    alike = _similar(descriptions)
    found: dict[Key, tuple[Note, ...]] = {}
    for key, text in descriptions.items():
        notes = (*_own(text), *([note("description_alike", name=alike[key])] if key in alike else ()))
        if notes:
            found[key] = notes
    return found


@lru_cache(maxsize=4096)
def _own(text: str) -> tuple[Note, ...]:
    if _weight(text) < _SHORTEST:
        return (note("description_short"),)
    return () if _says_what_is_done(text) else (note("description_no_verb", word=_opening(text)),)


def _opening(text: str) -> str:
    """Return the first word, or the first few characters where words are not parted."""
    return shorten(text.split(maxsplit=1)[0], 20)


def _weight(text: str) -> float:
    chinese = sum(map(len, _CHINESE.findall(text)))
    return sum(not letter.isspace() for letter in text) + chinese * (_CHINESE_WEIGHT - 1)


def _says_what_is_done(text: str) -> bool:
    """False only for what is clearly a title: “A senior code reviewer.”, “一名资深翻译专家”."""
    first = text.strip().split("\n", 1)[0]
    if _CHINESE.match(first):
        return _CHINESE_ROLE.match(first) is None
    words = _ENGLISH_WORD.findall(first.lower())
    if not words or _VERB.fullmatch(words[0]) or len(text.strip()) > len(first) + _SHORTEST:
        return True
    named = any(_ROLE.fullmatch(word) for word in words[:5])
    return not named or any(_CUE.fullmatch(word) for word in words)


def _similar(descriptions: Mapping[Key, str]) -> dict[Key, Key]:
    """Return, for each key whose description nearly equals another's, the first such other.

    Two sets of which at least the share `_NEARLY` is common must have a word in common among the rarest words of
    both, as many as may be missing and one more: only such pairs are looked at.
    """
    words = {key: found for key, text in descriptions.items() if (found := _words(text))}
    frequency = Counter(word for found in words.values() for word in found)
    by_words: defaultdict[frozenset[str], list[Key]] = defaultdict(list)
    for key, found in words.items():
        by_words[found].append(key)
    alike: dict[Key, Key] = {}
    for same in by_words.values():
        if len(same) > 1:
            alike.update(dict.fromkeys(same[1:], same[0]) | {same[0]: same[1]})
    _find_near(by_words, frequency, alike)
    return alike


def _find_near(
    by_words: Mapping[frozenset[str], Sequence[Key]], frequency: Mapping[str, int], alike: dict[Key, Key]
) -> None:
    holders: defaultdict[str, list[frozenset[str]]] = defaultdict(list)
    for found, keys in by_words.items():
        if len(found) < _FEWEST_WORDS:
            continue
        missing = len(found) - ceil(_NEARLY * len(found))
        rarest = sorted(found, key=lambda word: (frequency[word], word))[: missing + 1]
        candidates = dict.fromkeys(other for word in rarest for other in holders[word][-_MOST_COMPARED:])
        for other in list(candidates)[:_MOST_COMPARED]:
            if len(found & other) >= _NEARLY * len(found | other):
                alike.setdefault(keys[0], by_words[other][0])
                alike.setdefault(by_words[other][0], keys[0])
                break
        for word in rarest:
            holders[word].append(found)


@lru_cache(maxsize=4096)
def _words(text: str) -> frozenset[str]:
    """Return the words of a text; of Chinese, which does not part them, every two characters that follow each other."""
    lowered = text.casefold()
    pairs = (run[i : i + 2] for run in _CHINESE.findall(lowered) for i in range(max(1, len(run) - 1)))
    return frozenset((*_WORD.findall(_CHINESE.sub(" ", lowered)), *pairs))


def remarks(definitions: Sequence[Definition]) -> dict[tuple[Source, str], tuple[Note, ...]]:
    """Return what could be better about descriptions, by (source, name). Ours are only what others are held against."""
    by_name: dict[str, Definition] = {}
    for definition in definitions:
        by_name.setdefault(definition.name, definition)  # one that is shadowed may well say what its stronger says
    found = lint({name: definition.description for name, definition in by_name.items()})
    return {
        (by_name[name].source, name): notes
        for name, notes in found.items()
        if by_name[name].source is not Source.BUILTIN
    }

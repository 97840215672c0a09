"""What the engine says to people is said in each reader's language: pages, API and, in English, the command line."""

from __future__ import annotations

import ast
import re
from html import unescape
from pathlib import Path
from typing import TYPE_CHECKING

import polib
import pytest
from django.test import Client
from django.utils import translation

from engine.config.reader import read_config
from engine.reasons import Reason, joined, located
from engine.sandbox.base import Availability
from engine.sandbox.local import LocalSandbox
from subagents import registry
from subagents.checks import check_subagents
from subagents.errors import InvalidDefinition
from subagents.kinds import AGENT, SUBAGENT
from subagents.notes import note
from subagents.stores import documents
from subagents.wording import say

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.subagents.conftest import WriteConfig

ROOT = Path(__file__).resolve().parents[2]
SAMPLES = {path.name: path.read_bytes() for path in (ROOT / "tests/engine/config/samples").glob("*.yaml")}
_PLACE = re.compile(r"%\((\w+)\)s")
_LETTERS = re.compile(r"[A-Za-z]{2,}")
_MARKS = {"_", "gettext_noop"}


def marked() -> dict[str, str]:
    """Every sentence that the modules without Django mark for translation, and where."""
    found = {}
    for path in sorted(path for folder in ("engine", "subagents", "runs") for path in (ROOT / folder).rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        if "engine.reasons import" not in text:
            continue
        for call in ast.walk(ast.parse(text)):
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in _MARKS:
                assert isinstance(call.args[0], ast.Constant), (path, call.lineno)
                found[str(call.args[0].value)] = f"{path.name}:{call.lineno}"
    return found


def test_every_reason_of_the_engine_has_a_chinese_sentence_with_the_same_places():
    catalogue = polib.pofile(str(ROOT / "locale/zh_Hans/LC_MESSAGES/django.po"))
    said = {entry.msgid: entry.msgstr for entry in catalogue if entry.translated() and not entry.msgctxt}
    sentences = marked()
    assert len(sentences) > 100
    for sentence, place in sentences.items():
        assert sentence in said, (place, sentence)
        assert set(_PLACE.findall(said[sentence])) == set(_PLACE.findall(sentence)), (place, sentence)


def english_templates(said: str) -> Iterator[str]:
    """The templates of a reason, and of those within it, that have words of their own and stay English in Chinese."""
    assert isinstance(said, Reason), said
    if _LETTERS.search(_PLACE.sub("", said.template)) and translation.gettext(said.template) == said.template:
        yield said.template
    for fact in said.facts.values():
        if isinstance(fact, Reason):
            yield from english_templates(fact)


BAD_FILES = {
    "tab": b"subagents:\n\tagents: {}",
    "no yaml": b"a: b: c",
    "not closed": b"a: [",
    "UTF-16": "a: 1".encode("utf-16"),
    "GBK": "# 研究".encode("gbk"),
    "bytes": b"# \xff\xfe\xfa",
    "control": b"a: \x01\x02",
    "NUL": b"a: \x00",
    "two documents": b"a: 1\n---\nb: 2",
    "deep": b"[" * 60,
    "alias": b"a: *nobody",
    "list": b"[1]",
    "tags": b"subagents: !!python/object:x {}",
    "keys": b"[1]: 2\n3: 4\n<<: {}",
    "duplicate": b"runs: {}\nruns: {}",
    "DeerFlow": b"title: {}\nmodels: 7\nsubagents: 5\nsubagent: 1\nqqqq: 1",
    "surprises": b"subagents: {timeout_seconds: 1_000, max_turns: 0600, max_concurrent: 1e3, max_total_per_run: 0x1f}",
    "more": b"runs: {workers: no, slots_per_worker: 1:30, x: 2020-01-01, y: .inf, z: 99999999999999999999}",
    "limits": b"subagents: {max_concurrent: 9, max_concurrent_limit: 4, token_budget: {warn_threshold: 2}}",
    "backend": b"agent_storage: {backend: cloud}\nsandbox: {provider: docker, allow_host_bash: maybe}",
    "models": b"models: [{name: inherit, use: x}, {name: a}, {name: a, use: 'x:y', base_url: 'ftp://x', api_kye: 1}]",
    "servers": b"mcp_servers: {a: {}, b: {url: 'http://u:p@h', headers: {'x y': a}}, c: {command: x, transport: sse}}",
    "ACP": b"acp_agents: {a: {command: x, description: y, permissions: maybe}, b: {auto_approve_permissions: true}}",
    "summary": b"summarization: {trigger: {}, keep: {tokens: 1, messages: 1}}",
    "entries": b"subagents: {custom_agents: {A-: {description: '', system_prompt: 7, tools: x}, b: {}, B: {}, c: 5}}",
}


@pytest.mark.parametrize("raw", [*BAD_FILES.values(), *SAMPLES.values()], ids=[*BAD_FILES, *SAMPLES])
def test_whatever_is_wrong_with_the_file_can_be_said_in_chinese(raw: bytes):
    problems = read_config(raw).problems
    with translation.override("zh-hans"):
        assert [list(english_templates(problem.reason)) for problem in problems] == [[] for _problem in problems]
        said = [say(problem.reason) for problem in problems]
    assert raw not in BAD_FILES.values() or (problems and all(re.search(r"[\u4e00-\u9fff]", one) for one in said)), said
    assert [str(problem.reason) for problem in problems] == [say(problem.reason) for problem in problems]


@pytest.mark.parametrize("kind", [SUBAGENT, AGENT], ids=lambda kind: kind.name)
def test_whatever_is_wrong_with_a_definition_can_be_said_in_chinese(kind):
    wrong = {
        "name": 7,
        "description": 7,
        "system_prompt": "",
        "display_name": "x" * 121,
        "model": [],
        "tools": "x",
        "skills": [""],
        "max_turns": 10**50,
        "enabled": "yes",
        "allowed_subagents": 5,
        "token_budget": 5,
        "x": "\x00",
    }
    for written in (wrong, {**wrong, "name": "lead-agent", "tools": [str(n) for n in range(501)]}, {}, []):
        with pytest.raises(InvalidDefinition) as refused:
            kind.validate(written)
        with translation.override("zh-hans"):
            assert [list(english_templates(one)) for one in refused.value.reasons] == [
                [] for _one in refused.value.reasons
            ]


@pytest.mark.parametrize(
    "raw", [b"", b"\xff", b"{", b"[]", b"[" * 100_000, b'{"a": 1, "a": 2}', b'{"a": NaN}'], ids=repr
)
def test_whatever_is_wrong_with_a_definitions_file_can_be_said_in_chinese(raw: bytes):
    with pytest.raises(ValueError) as refused:
        documents.from_bytes(raw)
    with translation.override("zh-hans"):
        assert list(english_templates(refused.value.args[0])) == []


def test_a_reason_within_a_reason_and_within_a_note_is_said_too():
    off = LocalSandbox(allow_host_bash=False).available()
    assert off == Availability(
        ok=False, reason="Commands on the host are switched off (sandbox.allow_host_bash is false)."
    )
    both = joined((located("here", off.reason), "as it is"))
    assert both == f"here: {off.reason}; as it is"
    assert str(note("no_bash", reason=off.reason)) == f"Bash cannot run safely here: {off.reason}"
    with translation.override("zh-hans"):
        assert say(both).startswith("here: 主机上的命令执行已关闭")
        assert "主机上的命令执行已关闭" in say(note("no_bash", reason=off.reason))


# --- The edges ----------------------------------------------------------------------------------------------------
@pytest.fixture
def chinese(db: None, django_user_model) -> Client:
    user = django_user_model.objects.create(username="admin", is_staff=True, is_superuser=True)
    client = Client(headers={"accept-language": "zh-hans"})
    client.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
    return client


PAGE = "/admin/subagents/managedsubagent/"
WRONG = """
sandbox: {provider: local}
subagents:
  custom_agents: {scout: {description: Looks., system_prompt: 7}}
  agents: {bash: {max_turns: many}}
"""


def test_pages_say_the_reasons_in_the_readers_language_and_the_check_in_english(
    chinese: Client, write_config: WriteConfig
):
    write_config(WRONG)
    page = unescape(chinese.get(PAGE).content.decode())
    assert "主机上的命令执行已关闭" in page
    assert "subagents.custom_agents.scout.system_prompt: 应为带引号的文本，实际为 7" in page
    assert "expected " not in page
    assert "应为不超过 1000 的正整数" in chinese.get(f"{PAGE}builtin-bash/change/").content.decode()
    assert "应为带引号的文本" in chinese.get(f"{PAGE}config-scout/change/").content.decode()
    assert any("expected text in quotes, got 7" in message.msg for message in check_subagents())
    assert str(registry.current().catalogue.holder("scout").problems[0]).endswith("expected text in quotes, got 7")


def test_a_refused_file_is_told_in_the_readers_language_in_admin_and_chat(chinese: Client, write_config: WriteConfig):
    registry.forget()
    write_config("subagents: [")
    assert "无法作为 YAML 读取" in chinese.get(PAGE).content.decode()
    assert "无法作为 YAML 读取" in chinese.get("/chat/", follow=True).content.decode()

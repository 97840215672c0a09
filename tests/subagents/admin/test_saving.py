from __future__ import annotations

import json
from html import unescape
from typing import TYPE_CHECKING, Any

import pytest
from django.contrib.admin.models import LogEntry

from subagents import registry, services
from subagents.kinds import SUBAGENT
from subagents.services import Actor
from tests.subagents.admin.browsing import form_of, resend, send
from tests.subagents.admin.conftest import LIST, names, page_of, said, stored

if TYPE_CHECKING:
    from django.test import Client

    from tests.subagents.conftest import SaveManaged, WriteConfig

pytestmark = pytest.mark.django_db
ADD = f"{LIST}add/"
TRICKY = '  {"a": {b}} {{ x }} {} %s %(x)s ${X} {% if %} <b>&amp;\n\n\t\\u0000 研究 🦊  \n'
NEW = {"name": "scout", "description": "Looks around in the code.", "system_prompt": TRICKY}


@pytest.fixture(autouse=True)
def configured(write_config: WriteConfig) -> None:
    write_config("models: [{name: demo, use: 'engine.models.demo:DemoChatModel'}]")


def text(response: Any) -> str:
    return unescape(response.content.decode())


def change(name: str, **changes: Any) -> None:
    """What somebody else does meanwhile."""
    services.update(
        SUBAGENT, name, changes, expected_version=stored(name).version or "", actor=Actor(label="somebody else")
    )


# --- Making ------------------------------------------------------------------------------------------------------
@pytest.mark.smoke
def test_a_subagent_can_be_made_and_runs_at_once(admin_client: Client):
    answer = send(admin_client, ADD, **NEW)
    assert (answer.status_code, answer["Location"]) == (302, LIST)
    made = stored("scout")
    assert (made.description, made.system_prompt) == (NEW["description"], TRICKY)
    assert (made.tools, made.skills, made.max_turns, made.token_budget) == (None, None, None, None)
    assert "scout" in registry.current().catalogue.runnable
    assert "scout was made." in said(admin_client.get(LIST))


def test_every_field_can_be_set(admin_client: Client):
    send(
        admin_client,
        ADD,
        **NEW,
        display_name="Späher 研究",
        model="demo",
        **{"tools-choice": "only", "tools": ["ls", "grep"], "skills-choice": "none", "enabled": None},
        disallowed_tools=["bash"],
        max_turns="40",
        timeout_seconds="600",
        budget_enabled="true",
        budget_max_tokens="50000",
        budget_warn_threshold="0.5",
    )
    assert SUBAGENT.to_plain(stored("scout")) == {
        **NEW,
        "display_name": "Späher 研究",
        "model": "demo",
        "tools": ["ls", "grep"],
        "disallowed_tools": ["bash"],
        "skills": [],
        "max_turns": 40,
        "timeout_seconds": 600,
        "token_budget": {"enabled": True, "max_tokens": 50000, "warn_threshold": 0.5},
        "enabled": False,
    }


@pytest.mark.parametrize("name", ["bash", "Bash ", "reviewer", "taken"])
def test_a_name_that_somebody_holds_is_an_error_beside_the_name(
    admin_client: Client, managed: SaveManaged, write_config: WriteConfig, name: str
):
    write_config("subagents: {custom_agents: {reviewer: {description: Reviews., system_prompt: Review.}}}")
    managed("taken")
    answer = send(admin_client, ADD, **(NEW | {"name": name}))
    assert answer.status_code == 422
    assert "is held by another subagent" in text(answer)
    assert form_of(answer, "name")["system_prompt"][0] == TRICKY.replace("\n", "\r\n")
    assert names() == ["taken"]


@pytest.mark.parametrize(
    ("field", "typed", "sentence"),
    [
        ("name", "../etc", "a name may hold only"),
        ("description", "", "expected text of 1 to 2000 characters"),
        ("max_turns", "30m", "expected a positive integer up to 1000"),
        ("timeout_seconds", "0", "expected a positive integer up to 86400"),
        ("budget_warn_threshold", "2", "expected a number above 0 and up to 1"),
        ("tools-choice", None, "Choose one of the three"),
    ],
)
def test_what_is_wrong_is_said_and_what_was_typed_is_kept(admin_client: Client, field, typed, sentence):
    answer = send(admin_client, ADD, **(NEW | {"max_turns": "12", field: typed}))
    assert answer.status_code == 422
    assert sentence in text(answer)
    kept = form_of(answer, "name")
    assert kept["system_prompt"] == [TRICKY.replace("\n", "\r\n")]
    if typed is not None:
        assert kept[field] == [typed]
    assert names() == []


def test_a_prompt_of_three_megabytes_is_an_error_with_the_limit_and_is_kept(admin_client: Client):
    prompt = "研" * 1_000_000
    answer = send(admin_client, ADD, **(NEW | {"system_prompt": prompt}))
    assert answer.status_code == 422
    assert "at most 200000 characters, not of 1000000" in text(answer)
    assert form_of(answer, "name")["system_prompt"] == [prompt]


def test_what_is_too_large_to_be_read_is_answered_in_words(admin_client: Client):
    answer = admin_client.post(ADD, {**NEW, "system_prompt": "x" * (9 << 20)})
    assert answer.status_code == 400
    assert "larger than the 8 MB that are read at once" in text(answer)


def test_saving_and_going_on_editing_stays_on_the_page(admin_client: Client):
    answer = send(admin_client, ADD, button="_continue", **NEW)
    assert answer["Location"] == page_of("managed-scout")
    answer = send(admin_client, page_of("managed-scout"), button="_continue", max_turns="7")
    assert answer["Location"] == page_of("managed-scout")
    assert stored("scout").max_turns == 7


# --- Copying -----------------------------------------------------------------------------------------------------
@pytest.mark.smoke
def test_a_built_in_can_be_duplicated_with_the_values_in_force(admin_client: Client, write_config: WriteConfig):
    write_config("subagents: {agents: {bash: {max_turns: 80}}}")
    page = admin_client.get(f"{ADD}?from=builtin-bash")
    assert "Copied from bash" in text(page)
    assert "Built-in" in text(page)
    shown = form_of(page, "name")
    assert (shown["name"], shown["max_turns"]) == (["bash-copy"], ["80"])
    send(admin_client, f"{ADD}?from=builtin-bash")
    bash = registry.current().catalogue.holder("bash")
    copy = stored("bash-copy")
    assert copy.system_prompt == bash.definition.system_prompt
    assert (copy.tools, copy.max_turns) == (bash.definition.tools, 80)


def test_a_copy_gets_a_name_that_is_free(admin_client: Client, managed: SaveManaged):
    managed("bash-copy")
    assert form_of(admin_client.get(f"{ADD}?from=builtin-bash"), "name")["name"] == ["bash-copy-2"]


@pytest.mark.parametrize("source", ["nobody", "", "managed-%00", "builtin-bash&from=x"])
def test_a_copy_of_nothing_is_an_empty_form(admin_client: Client, source: str):
    assert form_of(admin_client.get(f"{ADD}?from={source}"), "name")["description"] == [""]


def test_whoever_may_not_read_prompts_copies_one_unseen(editor: Client):
    page = editor.get(f"{ADD}?from=builtin-bash")
    prompt = registry.current().catalogue.holder("bash").definition.system_prompt
    assert prompt[:40] not in text(page)
    assert "copied unseen" in text(page)
    resend(editor, f"{ADD}?from=builtin-bash", page, system_prompt="forged")
    assert stored("bash-copy").system_prompt == prompt


# --- Changing ----------------------------------------------------------------------------------------------------
@pytest.mark.smoke
@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"tools": [], "skills": []},
        {"tools": ["gone", "ls"], "skills": ["gone"], "disallowed_tools": ["bash", "gone"], "model": "gone"},
        {"token_budget": {"max_tokens": 5}, "max_turns": 3},
        {"token_budget": {"enabled": False}},
        {"system_prompt": "\r\nfirst line empty\r\n\ttab \r\n", "description": "a\r\nb"},
        {"system_prompt": TRICKY, "display_name": "<i>"},
    ],
)
def test_opening_and_saving_changes_nothing(admin_client: Client, managed: SaveManaged, fields: dict[str, Any]):
    before = managed("scout", **fields)
    answer = send(admin_client, page_of("managed-scout"))
    assert answer.status_code == 302
    assert stored("scout") == before
    assert "Nothing was changed." in said(admin_client.get(LIST))


def test_a_field_that_was_changed_is_saved_and_the_history_names_the_author(admin_client: Client, managed: SaveManaged):
    before = managed("scout", tools=["ls"])
    send(admin_client, page_of("managed-scout"), **{"tools-choice": "none", "max_turns": "9"})
    after = stored("scout")
    assert (after.tools, after.max_turns) == ((), 9)
    assert after.version != before.version
    newest = services.revisions(SUBAGENT, "scout")[0]
    assert (newest.action, newest.author.username) == ("changed", "admin")
    logged = LogEntry.objects.get()
    assert json.loads(logged.change_message) == [{"changed": {"fields": ["tools", "max_turns"]}}]


def test_a_name_cannot_be_changed(admin_client: Client, managed: SaveManaged):
    managed("scout")
    send(admin_client, page_of("managed-scout"), name="other", max_turns="9")
    assert names() == ["scout"]
    assert stored("scout").max_turns == 9


def test_a_shadowed_entry_can_still_be_edited(admin_client: Client, managed: SaveManaged, write_config: WriteConfig):
    managed("scout")
    write_config("subagents: {custom_agents: {scout: {description: Ours., system_prompt: Ours.}}}")
    send(admin_client, page_of("managed-scout"), max_turns="9")
    assert stored("scout").max_turns == 9


def test_the_form_says_beside_a_field_what_overrides_it(
    admin_client: Client, managed: SaveManaged, write_config: WriteConfig
):
    managed("scout", max_turns=50)
    write_config("subagents: {timeout_seconds: 700, agents: {scout: {max_turns: 80, token_budget: {max_tokens: 9}}}}")
    page = text(admin_client.get(page_of("managed-scout")))
    assert "config.yaml subagents.agents.scout.max_turns = 80 turns wins over what stands here." in page
    assert "config.yaml subagents.agents.scout.token_budget.max_tokens = 9 wins" in page
    assert 'name="max_turns" value="50"' in page
    assert 'placeholder="inherit: 700 s"' in page


@pytest.mark.parametrize("language", ["en", "zh-hans"])
def test_numbers_are_sent_back_as_they_were_shown_in_every_language(
    admin_client: Client, managed: SaveManaged, language: str
):
    before = managed("scout", timeout_seconds=80000, token_budget={"max_tokens": 1234567, "warn_threshold": 0.55})
    admin_client.cookies["django_language"] = language
    send(admin_client, page_of("managed-scout"))
    assert stored("scout") == before


# --- Prompts that may not be read --------------------------------------------------------------------------------
@pytest.mark.smoke
def test_an_editor_without_the_permission_changes_everything_but_the_prompt_and_never_sees_it(
    editor: Client, managed: SaveManaged
):
    managed("scout", system_prompt="The secret of the house.")
    page = editor.get(page_of("managed-scout"))
    assert "The secret of the house." not in text(page)
    resend(editor, page_of("managed-scout"), page, description="Looks further.", system_prompt="forged")
    after = stored("scout")
    assert (after.description, after.system_prompt) == ("Looks further.", "The secret of the house.")


def test_such_an_editor_sees_no_prompt_in_a_refused_save_either(editor: Client, managed: SaveManaged):
    managed("scout", system_prompt="The secret of the house.")
    page = editor.get(page_of("managed-scout"))
    change("scout", system_prompt="Another secret.", max_turns=4)
    answer = resend(editor, page_of("managed-scout"), page, description="Looks further.")
    assert answer.status_code == 409
    assert "secret" not in text(answer)
    assert "System prompt" in text(answer)


# --- Two at once -------------------------------------------------------------------------------------------------
@pytest.mark.smoke
def test_a_stale_save_is_refused_and_says_who_changed_what_and_keeps_what_was_typed(
    admin_client: Client, managed: SaveManaged
):
    managed("scout", max_turns=5)
    page = admin_client.get(page_of("managed-scout"))
    change("scout", description="Looks elsewhere.", max_turns=20, tools=["ls"])
    theirs = stored("scout")
    answer = resend(admin_client, page_of("managed-scout"), page, description="Looks here.", display_name="Mine")
    assert answer.status_code == 409
    assert stored("scout") == theirs
    shown = text(answer)
    assert "Saved by somebody else (" in shown
    for fact in ("Does scout.", "Looks elsewhere.", "5 turns", "20 turns", "all of the lead's tools", "ls"):
        assert fact in shown
    kept = form_of(answer, "tools-choice")
    assert (kept["description"], kept["display_name"]) == (["Looks here."], ["Mine"])
    assert (kept["max_turns"], kept["tools-choice"], kept["tools"]) == (["20"], ["only"], ["ls"])

    resend(admin_client, page_of("managed-scout"), answer)
    after = stored("scout")
    assert (after.description, after.display_name, after.max_turns) == ("Looks here.", "Mine", 20)
    assert after.tools == ("ls",)


@pytest.mark.parametrize("version", ["", "nonsense", "99999999999999999999", "-1", "\x00"])
def test_a_version_that_never_was_is_stale(admin_client: Client, managed: SaveManaged, version: str):
    before = managed("scout")
    answer = send(admin_client, page_of("managed-scout"), version=version, max_turns="4")
    assert answer.status_code in {409, 422}
    assert stored("scout") == before
    assert form_of(answer, "tools-choice")["max_turns"] == ["4"]


def test_what_was_deleted_meanwhile_can_be_made_anew_with_what_was_typed(admin_client: Client, managed: SaveManaged):
    managed("scout")
    page = admin_client.get(page_of("managed-scout"))
    services.delete(SUBAGENT, "scout", expected_version=stored("scout").version or "", actor=Actor(label="cleaner"))
    answer = resend(admin_client, page_of("managed-scout"), page, description="Looks here.")
    assert answer.status_code == 409
    assert "Deleted by cleaner." in text(answer)
    resend(admin_client, ADD, answer)
    assert stored("scout").description == "Looks here."


def test_whoever_may_not_read_its_prompt_is_told_that_it_is_gone(editor: Client, managed: SaveManaged):
    managed("scout")
    page = editor.get(page_of("managed-scout"))
    services.delete(SUBAGENT, "scout", expected_version=stored("scout").version or "", actor=Actor(label="cleaner"))
    assert resend(editor, page_of("managed-scout"), page)["Location"] == LIST
    assert "It was deleted while you were editing it." in said(editor.get(LIST))


# --- In Chinese --------------------------------------------------------------------------------------------------
def test_what_is_wrong_is_said_in_chinese(admin_client: Client):
    admin_client.cookies["django_language"] = "zh-hans"
    answer = send(admin_client, ADD, **(NEW | {"name": "a/b", "max_turns": "30m", "tools-choice": "only"}))
    for english in ("a name may hold", "expected a positive", "Nothing is chosen", "Not saved"):
        assert english not in text(answer)

"""The Custom agents page: leads that administrators make, and whom each may call."""

from __future__ import annotations

from html import unescape
from typing import TYPE_CHECKING, Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission
from django.test import Client

from subagents import registry, services
from subagents.kinds import AGENT
from subagents.models import CustomAgent
from subagents.services import Actor
from tests.subagents.admin.browsing import form_of, resend
from tests.subagents.admin.browsing import send as send_form
from tests.subagents.admin.conftest import said

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_django.fixtures import Settings

    from subagents.custom_agents import CustomAgent as Agent
    from tests.subagents.conftest import SaveManaged, WriteConfig

pytestmark = pytest.mark.django_db
AGENTS = "/admin/subagents/customagent/"
ADD = f"{AGENTS}add/"
TRICKY = '  {"a": {b}} {{ x }} %s ${X} {% if %} <b>&amp;\n\n研究 🦊  \n'
SOMEBODY = Actor(label="somebody else")
CONFIG = """
models: [{name: demo, use: 'engine.models.demo:DemoChatModel'}]
sandbox: {provider: local}
subagents: {custom_agents: {analyst: {description: Asks the warehouse., system_prompt: Query.}}}
"""


@pytest.fixture(autouse=True)
def subagents(managed: SaveManaged, write_config: WriteConfig) -> None:
    managed("scout", display_name="The Scout")
    managed("retired", enabled=False)
    write_config(CONFIG)


def make(name: str, **fields: Any) -> Agent:
    return services.create(AGENT, {"name": name, "system_prompt": f"You are {name}.", **fields}, actor=SOMEBODY)


def stored(name: str) -> Agent:
    return registry.store(AGENT).get(name)


def names() -> list[str]:
    return [agent.name for agent in registry.store(AGENT).all().items]


def page_of(name: str, view: str = "change") -> str:
    return f"{AGENTS}managed-{name}/{view}/"


def text(response: Any) -> str:
    return " ".join(unescape(response.content.decode()).split())


def reach(html: str) -> str:
    """The part of a page that says whom the agent can delegate to."""
    return html.partition("data-reach-list>")[2].partition("sa-submit")[0]


def send(client: Client, path: str, **changes: Any) -> Any:
    return send_form(client, path, **changes)


def staff(*codenames: str) -> Client:
    user = get_user_model().objects.create_user("staff", is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename__in=codenames))
    client = Client()
    client.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
    return client


# --- The list ---------------------------------------------------------------------------------------------------
@pytest.mark.smoke
def test_the_list_says_whom_each_may_call_and_warns_where_nobody_selected_can_run(admin_client: Client):
    make("all", description="First line\nsecond")
    make("nobody", allowed_subagents=[])
    make("some", allowed_subagents=["scout", "gone"], model="demo")
    make("stale", allowed_subagents=["gone", "retired"])
    make("alone", subagent_enabled=False, enabled=False)
    page = text(admin_client.get(AGENTS))
    for words in (
        "all enabled: 3 now",
        "1 of 2 selected",
        "nobody: delegation is off",
        "the default model",
        "First line",
    ):
        assert words in page
    assert "▲</span> nobody now: 0 of 2 selected" in page
    assert page.count("▲") == 1
    assert "You are" not in page


def test_the_list_is_searched_filtered_sorted_and_paged_without_a_table(admin_client: Client):
    for number in range(60):
        make(f"agent-{number:02}", enabled=number % 2 == 0, display_name=f"Nr {number:02}")
    assert "agent-59" not in text(admin_client.get(AGENTS))
    assert "agent-59" in text(admin_client.get(f"{AGENTS}?p=2"))
    assert "agent-07" in text(admin_client.get(f"{AGENTS}?q=nr+07"))
    found = text(admin_client.get(f"{AGENTS}?q=nr+0&state=disabled"))
    assert ("agent-03" in found, "agent-04" in found) == (True, False)
    page = text(admin_client.get(f"{AGENTS}?o=-1"))
    assert page.index("agent-59") < page.index("agent-58")
    for odd in ("?o=x.-9.99", "?p=99", "?state=nonsense", "?q=%00"):
        assert admin_client.get(f"{AGENTS}{odd}", follow=True).status_code == 200


def test_an_empty_list_says_what_a_custom_agent_is(admin_client: Client):
    assert "Make the first one" in text(admin_client.get(AGENTS))


# --- Making and changing ----------------------------------------------------------------------------------------
@pytest.mark.smoke
@pytest.mark.parametrize(
    ("choice", "ticked", "value"),
    [("all", [], None), ("none", ["scout"], ()), ("only", ["scout", "analyst"], ("scout", "analyst"))],
)
def test_the_three_choices_of_a_scope_are_three_different_things(
    admin_client: Client, choice: str, ticked: list[str], value: tuple[str, ...] | None
):
    changes = {"allowed_subagents-choice": choice, "allowed_subagents": ticked, "tools-choice": choice, "tools": ["ls"]}
    answer = send(admin_client, ADD, name="Writer", system_prompt=TRICKY, **changes)
    assert answer["Location"] == AGENTS
    agent = stored("writer")
    assert (agent.allowed_subagents, agent.system_prompt, agent.subagent_enabled) == (value, TRICKY, True)
    assert agent.tools == {"all": None, "none": (), "only": ("ls",)}[choice]
    again = form_of(admin_client.get(page_of("writer")), "tools-choice")
    assert again["allowed_subagents-choice"] == [choice]
    assert set(again.get("allowed_subagents", [])) == set(value or ())


def test_every_name_that_can_be_called_is_offered_with_its_source(admin_client: Client):
    page = text(admin_client.get(ADD))
    for name, source in (("general-purpose", "builtin"), ("analyst", "config"), ("scout", "managed")):
        option = page.partition(f'name="allowed_subagents" value="{name}"')[2].partition("</label>")[0]
        assert f"sa-source-{source}" in option
    off = page.partition('name="allowed_subagents" value="retired"')[2].partition("</label>")[0]
    assert "sa-state-disabled" in off


def test_names_that_went_stale_are_kept_in_their_place_and_shown_as_missing(admin_client: Client):
    make("writer", allowed_subagents=["gone", "scout", "retired"])
    page = admin_client.get(page_of("writer"))
    stale = text(page).partition('name="allowed_subagents" value="gone"')[2].partition("</label>")[0]
    assert "missing" in stale
    assert "There is no subagent named “gone”" in text(page)
    resend(admin_client, page_of("writer"), page, description="Changed.")
    assert stored("writer").allowed_subagents == ("gone", "scout", "retired")


@pytest.mark.smoke
def test_beside_the_scope_stands_whom_the_saved_agent_can_delegate_to(admin_client: Client):
    make("writer", allowed_subagents=["scout", "gone", "retired"])
    shown = reach(text(admin_client.get(page_of("writer"))))
    called, _, idle = shown.partition("Selected, but cannot be called now:")
    assert "This agent can delegate to:" in called
    assert 'href="/admin/subagents/managedsubagent/managed-scout/change/">The Scout</a>' in called
    assert "general-purpose" not in called
    assert "missing: no subagent bears this name" in idle
    assert "Switched off" in idle


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("subagent_enabled=on&allowed_subagents-choice=all", "general-purpose"),
        (
            "subagent_enabled=on&allowed_subagents-choice=none",
            "cannot delegate to anybody. No request can change that.",
        ),
        ("subagent_enabled=on&allowed_subagents-choice=only&allowed_subagents=scout", "The Scout"),
        ("subagent_enabled=on&allowed_subagents-choice=only", "None of the selected subagents can run"),
        ("subagent_enabled=on&allowed_subagents-choice=only&allowed_subagents-other=scout,+%3Cb%3E", "&lt;b&gt;"),
        ("allowed_subagents-choice=all", "delegation is switched off for this agent"),
        ("", "delegation is switched off"),
        ("allowed_subagents-choice=%00&allowed_subagents=%00%ff&subagent_enabled=1", "cannot delegate"),
    ],
)
def test_what_is_ticked_on_an_open_form_is_resolved_by_the_server(admin_client: Client, query: str, words: str):
    answer = admin_client.get(f"{AGENTS}reach/?{query}")
    assert answer.status_code == 200
    assert words in answer.content.decode()
    assert "<b>" not in answer.content.decode()


def test_faults_are_named_beside_their_fields_and_what_was_typed_stays(admin_client: Client):
    for name, sentence in (("lead-agent", "lead-agent"), ("Über", "only the letters a-z"), ("", "required")):
        answer = send(admin_client, ADD, name=name, system_prompt="Typed {text}.")
        assert answer.status_code == 422
        assert sentence in text(answer)
        assert "Typed {text}." in text(answer)
    nothing = {"allowed_subagents-choice": "only"}
    assert "Nothing is chosen." in text(send(admin_client, ADD, name="writer", system_prompt="x", **nothing))
    assert names() == []


def test_a_name_is_taken_once_but_a_subagent_may_bear_it_too(admin_client: Client):
    make("writer")
    assert "Another custom agent has this name" in text(send(admin_client, ADD, name="writer", system_prompt="x"))
    assert send(admin_client, ADD, name="scout", system_prompt="x").status_code == 302


@pytest.mark.smoke
def test_a_stale_save_shows_what_changed_and_loses_nothing(admin_client: Client):
    make("writer", allowed_subagents=["scout"], description="Old.")
    page = admin_client.get(page_of("writer"))
    changes = {"description": "Theirs.", "allowed_subagents": None}
    services.update(AGENT, "writer", changes, expected_version=stored("writer").version or "", actor=SOMEBODY)
    answer = resend(admin_client, page_of("writer"), page, system_prompt="Mine.")
    assert answer.status_code == 409
    shown = text(answer)
    for words in (
        "Not saved: somebody else saved it",
        "Saved by somebody else (",
        "<del>scout</del>",
        "Theirs.",
        "Mine.",
    ):
        assert words in shown
    assert stored("writer").system_prompt == "You are writer."
    assert resend(admin_client, page_of("writer"), answer).status_code == 302
    agent = stored("writer")
    assert (agent.system_prompt, agent.description, agent.allowed_subagents) == ("Mine.", "Theirs.", None)


def test_one_that_is_deleted_meanwhile_can_be_made_anew_from_what_was_typed(admin_client: Client):
    make("writer")
    page = admin_client.get(page_of("writer"))
    services.delete(AGENT, "writer", expected_version=stored("writer").version or "", actor=SOMEBODY)
    answer = resend(admin_client, page_of("writer"), page, description="Typed.")
    assert answer.status_code == 409
    assert "it was deleted while you were editing it" in text(answer)
    assert f'action="{ADD}"' in answer.content.decode()
    assert resend(admin_client, ADD, answer).status_code == 302
    assert stored("writer").description == "Typed."


def test_duplicate_copies_everything_under_a_free_name(admin_client: Client):
    make("writer", system_prompt=TRICKY, allowed_subagents=["scout", "gone"], tools=[], subagent_enabled=False)
    answer = send(admin_client, f"{ADD}?from=managed-writer")
    assert answer["Location"] == AGENTS
    (copy,) = [name for name in names() if name != "writer"]
    first, second = stored("writer"), stored(copy)
    fields = ("system_prompt", "allowed_subagents", "tools", "subagent_enabled", "model")
    assert [getattr(first, field) for field in fields] == [getattr(second, field) for field in fields]


# --- Switching, deleting, history -------------------------------------------------------------------------------
@pytest.mark.smoke
def test_agents_are_switched_in_their_row_and_in_bulk_with_one_entry_each(admin_client: Client):
    for name in ("one", "two", "three"):
        make(name)
    before = LogEntry.objects.count()
    admin_client.post(f"{AGENTS}switch/", {"off": "managed-one"})
    chosen = {"action": "disable", "_selected_action": ["managed-one", "managed-two", "managed-nobody", "x"]}
    admin_client.post(AGENTS, chosen)
    assert [stored(name).enabled for name in ("one", "two", "three")] == [False, False, True]
    assert LogEntry.objects.count() == before + 2
    page = admin_client.get(AGENTS)
    assert "two is disabled now." in said(page)
    assert [revision.action for revision in services.revisions(AGENT, "one")] == ["disabled", "created"]


@pytest.mark.smoke
def test_deleting_asks_first_and_keeps_the_history(admin_client: Client):
    make("writer")
    page = admin_client.get(page_of("writer", "delete"))
    assert "can be continued with another agent" in text(page)
    assert "1 custom agent names it" not in text(page)
    admin_client.post(page_of("writer", "delete"), form_of(page, "version"))
    assert names() == []
    history = text(admin_client.get(page_of("writer", "history")))
    assert "It has been deleted." in history
    assert "Deleted" in history


def test_a_delete_of_another_version_is_refused(admin_client: Client):
    make("writer")
    page = admin_client.get(page_of("writer", "delete"))
    services.update(AGENT, "writer", {"tools": []}, expected_version=stored("writer").version or "", actor=SOMEBODY)
    answer = admin_client.post(page_of("writer", "delete"), form_of(page, "version"))
    assert answer.status_code == 409
    assert names() == ["writer"]


def test_the_history_tells_each_version_in_words(admin_client: Client):
    make("writer", allowed_subagents=["scout"])
    for allowed in ([], None):
        version = stored("writer").version or ""
        services.update(AGENT, "writer", {"allowed_subagents": allowed}, expected_version=version, actor=SOMEBODY)
    history = text(admin_client.get(page_of("writer", "history")))
    assert history.count("Subagents it may call") == 2
    shown = [text(admin_client.get(f"{page_of('writer', 'history')}{number}/")) for number in (1, 2, 3)]
    assert [word in page for page, word in zip(shown, ("scout", "None", "All enabled"), strict=True)] == [True] * 3
    assert "You are writer." in shown[0]
    assert admin_client.get(f"{page_of('writer', 'history')}9/").status_code == 302


# --- Who may do what --------------------------------------------------------------------------------------------
def test_whoever_may_only_look_gets_no_form_and_no_prompt():
    make("writer", system_prompt="Secret words.", allowed_subagents=["scout"])
    client = staff("view_customagent")
    page = text(client.get(page_of("writer")))
    assert "The Scout" in page
    assert "<form" not in page.partition("content-main")[2]
    for path in (AGENTS, page_of("writer"), page_of("writer", "history"), f"{page_of('writer', 'history')}1/"):
        answer = client.get(path)
        assert answer.status_code == 200
        assert "Secret words." not in text(answer)
    assert "Add custom agent" not in text(client.get(AGENTS))


@pytest.mark.parametrize("codename", ["", "view_managedsubagent", "view_customagent"])
def test_what_is_not_permitted_is_forbidden_and_changes_nothing(codename: str):
    make("writer")
    client = staff(codename)
    for path in (ADD, page_of("writer"), page_of("writer", "delete"), f"{AGENTS}switch/", AGENTS):
        assert client.post(path, {"off": "managed-writer", "action": "disable", "version": "1"}).status_code == 403
    for path in (f"{AGENTS}reach/", f"{AGENTS}live/", page_of("writer"), page_of("writer", "history")):
        assert client.get(path).status_code == (403 if codename != "view_customagent" else 200)
    assert stored("writer").version == "1" or stored("writer").enabled


def test_whoever_edits_without_reading_prompts_keeps_them_unseen():
    make("writer", system_prompt="Secret words.")
    client = staff("view_customagent", "change_customagent", "add_customagent")
    page = client.get(page_of("writer"))
    assert "Secret words." not in text(page)
    resend(client, page_of("writer"), page, description="Changed.")
    agent = stored("writer")
    assert (agent.system_prompt, agent.description) == ("Secret words.", "Changed.")


@pytest.mark.parametrize("key", ["managed-nobody", "builtin-bash", "1", "managed--abc", "%00", "a" * 2000])
def test_an_address_that_is_nobodys_leads_to_the_list(admin_client: Client, key: str):
    for view in ("change", "delete", "history"):
        assert admin_client.get(f"{AGENTS}{key}/{view}/")["Location"] == AGENTS


# --- What cannot be read ----------------------------------------------------------------------------------------
@pytest.fixture
def broken(write_config: WriteConfig, backend: str, settings: Settings) -> str:
    """An agent whose stored form was damaged past the services."""
    make("broken", allowed_subagents=["scout"])
    if backend == "file":
        path: Path = settings.DEER_FLOW_HOME / "custom-agents" / "broken.json"
        path.write_text('{"name": "broken", "system_prompt": "Kept.", "allowed_subagents": 7}', encoding="utf-8")
    else:
        CustomAgent.objects.filter(name="broken").update(system_prompt="Kept.", allowed_subagents=7)
    registry.forget()
    return "broken"


@pytest.mark.smoke
def test_a_broken_agent_is_listed_hides_nobody_and_can_be_repaired(admin_client: Client, broken: str):
    make("writer")
    page = text(admin_client.get(AGENTS))
    assert "Invalid" in page
    assert "writer" in page
    opened = admin_client.get(page_of(broken))
    assert "allowed_subagents-choice" not in form_of(opened, "version")  # nothing is chosen for the person
    others = {"tools-choice": "none", "skills-choice": "all"}
    refused = resend(admin_client, page_of(broken), opened, holding="version", **others)
    assert "Choose one of the three." in text(refused)
    others["allowed_subagents-choice"] = "none"
    answer = resend(admin_client, page_of(broken), opened, holding="version", **others)
    assert answer.status_code == 302, text(answer)
    assert (stored(broken).system_prompt, stored(broken).allowed_subagents) == ("Kept.", ())


def test_a_refused_configuration_is_said_on_the_page(admin_client: Client, write_config: WriteConfig):
    make("writer")
    admin_client.get(AGENTS)
    write_config("models: [")
    assert "config.yaml is refused." in text(admin_client.get(AGENTS))
    assert "config.yaml is refused." in text(admin_client.get(page_of("writer")))


@pytest.mark.parametrize("language", ["en", "zh-hans"])
def test_every_page_opens_in_both_languages(admin_client: Client, language: str):
    make("writer", allowed_subagents=["scout", "gone"])
    admin_client.cookies["django_language"] = language
    version = f"{page_of('writer', 'history')}1/"
    for path in (AGENTS, ADD, page_of("writer"), page_of("writer", "delete"), page_of("writer", "history"), version):
        assert admin_client.get(path).status_code == 200

from __future__ import annotations

import json
import re
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.contrib.auth import get_user_model
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from runs.models import Run, Thread
from subagents import registry
from subagents.models import ManagedSubagent
from tests.subagents.admin.conftest import LIST, PageText

if TYPE_CHECKING:
    from datetime import datetime

    from django.test import Client
    from pytest_django.fixtures import Settings

    from tests.subagents.conftest import SaveManaged, WriteConfig

pytestmark = pytest.mark.django_db

CONFIG = """
models: [{name: demo, use: "engine.models.demo:DemoChatModel"}]
sandbox: {provider: local, allow_host_bash: true}
subagents:
  agents:
    bash: {max_turns: 80, timeout_seconds: 300}
  custom_agents:
    reviewer: {description: Reviews diffs., system_prompt: Review., display_name: Code reviewer}
    analyst: {description: Asks the warehouse., system_prompt: Query.}
    broken: {description: Has no prompt.}
"""


@pytest.fixture(autouse=True)
def everything(managed: SaveManaged, write_config: WriteConfig) -> None:
    """One entry of each source and state."""
    managed("analyst", display_name="Team analyst", description="Our own analyst.")
    managed("translator", description="Translates <b>prose</b>.\nSecond line, not in the list.", enabled=False)
    write_config(CONFIG)


def shown(page: str) -> list[str]:
    """The addresses of the rows, in the order of the page."""
    return re.findall(r'managedsubagent/([a-z]+-[a-z-]+)/change/[^"]*"[^>]*>\s*<span class="sa-who', page)


@pytest.mark.smoke
def test_the_whole_catalogue_is_listed_by_title_whatever_its_source(text_of: PageText):
    assert sorted(shown(text_of(LIST))) == [
        "builtin-bash",
        "builtin-general-purpose",
        "config-analyst",
        "config-broken",
        "config-reviewer",
        "managed-analyst",
        "managed-translator",
    ]


def test_each_row_says_its_source_and_its_state_in_words(text_of: PageText):
    page = text_of(LIST)
    for word in ("Built-in", "config.yaml", "Managed", "Active, overridden", "Shadowed", "Disabled", "Invalid"):
        assert re.search(rf'class="sa-badge [^>]*>(?:<span[^>]*>.</span> )?{re.escape(word)}</span>', page), word


def test_an_overridden_limit_shows_the_value_it_replaces_struck_through(text_of: PageText):
    page = text_of(LIST)
    assert "<del>60 turns</del> <ins>80 turns</ins>" in page
    assert "<del>1,800 s</del> <ins>300 s</ins>" in page


def test_only_the_first_line_of_a_description_is_shown_and_it_is_escaped(admin_client: Client):
    page = admin_client.get(LIST).content.decode()
    assert "Translates &lt;b&gt;prose&lt;/b&gt;." in page
    assert "Second line" not in page


def test_a_banner_names_the_entries_in_conflict_and_who_holds_the_name(text_of: PageText):
    page = text_of(LIST)
    assert "Name conflict." in page
    assert re.search(r"managed-analyst/change/\">analyst</a>:\s+the name is held by config.yaml", page)


def test_a_banner_shows_the_problems_of_the_file_with_line_and_path(text_of: PageText):
    assert "config.yaml:10:5 subagents.custom_agents.broken.system_prompt: required" in text_of(LIST)


def test_a_refused_file_is_announced_with_its_problems_while_the_last_good_one_is_shown(
    text_of: PageText, write_config: WriteConfig
):
    registry.current(fresh=True)
    write_config(CONFIG + "  max_turns: lots\n  unknown: 1\n")
    page = text_of(LIST)
    assert "config.yaml is refused." in page
    assert "config.yaml:11:14 subagents.max_turns" in page
    assert "config.yaml:12:3 subagents.unknown" in page
    assert "config-reviewer" in shown(page)


def test_without_a_safe_sandbox_the_list_says_why_bash_cannot_run(text_of: PageText, write_config: WriteConfig):
    write_config("sandbox: {provider: local, allow_host_bash: false}")
    page = text_of(LIST)
    reason = registry.bash_gate(registry.current().config).reason
    assert reason and f"Bash cannot run safely here: {reason}" in page
    assert "Unavailable</span>" in page


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ("q=REVIEWS", ["config-reviewer"]),
        ("q=team+own", ["managed-analyst"]),
        ("q=nothing+like+this", []),
        ("source=builtin", ["builtin-bash", "builtin-general-purpose"]),
        ("state=shadowed", ["managed-analyst"]),
        ("state=disabled&source=managed", ["managed-translator"]),
        ("state=disabled&source=config", []),
        ("state=bogus", []),
        ("model=demo", []),
        ("q=diffs&source=config", ["config-reviewer"]),
    ],
)
def test_search_and_filters_find_entries_of_every_source(text_of: PageText, query: str, rows: list[str]):
    assert shown(text_of(f"{LIST}?{query}")) == rows


def test_columns_sort_both_ways(text_of: PageText):
    by_source = shown(text_of(f"{LIST}?o=2.1"))
    assert [key.split("-")[0] for key in by_source] == sorted(key.split("-")[0] for key in by_source)
    by_source_then_name = shown(text_of(f"{LIST}?o=-2.-1"))
    assert by_source_then_name[0] == "managed-translator"
    assert by_source_then_name[-1] == "builtin-bash"


@pytest.mark.parametrize(
    "query",
    ["o=x.99.-.--1", "o=9999999999999", "o=²", "q=%00", "q=" + "x" * 5000, "q=%F0%9F%A4%96", "all=", "_facets=True"],
)
def test_odd_addresses_show_the_list(admin_client: Client, query: str):
    assert admin_client.get(f"{LIST}?{query}").status_code == 200


@pytest.mark.parametrize("query", ["p=99", "p=x", "name__exact=bash", "nonsense=1", "id__in=builtin-bash"])
def test_addresses_that_mean_nothing_lead_back_to_the_list_or_show_it(admin_client: Client, query: str):
    response = admin_client.get(f"{LIST}?{query}", follow=True)
    assert response.status_code == 200


def test_staff_without_permission_do_not_see_the_page(outsider: Client):
    assert outsider.get(LIST).status_code == 403


def test_view_only_staff_see_the_list_and_no_prompt(viewer: Client):
    page = viewer.get(LIST).content.decode()
    assert "config-reviewer" in shown(page)
    assert "You are translator." not in page


def test_nobody_sees_it_without_logging_in(client: Client):
    assert client.get(LIST).status_code == 302


@pytest.mark.parametrize("query", ["", "?q=does&o=1", "?o=-6", "?state=active&p=3"])
def test_the_page_of_a_thousand_managed_rows_asks_a_dozen_queries_at_most(editor: Client, many: None, query: str):
    editor.get(LIST)
    with CaptureQueriesContext(connection) as asked:
        assert editor.get(LIST + query).status_code == 200
    assert len(asked) <= 12, [made["sql"] for made in asked]


@pytest.fixture
def many(everything: None, backend: str, settings: Settings) -> None:
    """A thousand managed definitions, put in place of the store's own writing: that would take a minute."""
    now = timezone.now()
    for number in range(1000):
        name, texts = f"agent-{number}", {"description": f"Does {number}.", "system_prompt": "x" * 2000}
        if backend == "file":
            path = settings.DEER_FLOW_HOME / "managed-subagents" / f"{name}.json"
            path.write_text(json.dumps({"name": name, **texts}), encoding="utf-8")
        else:
            ManagedSubagent(name=name, **texts, created_at=now, updated_at=now).save(force_insert=True)
    registry.forget()
    assert len(registry.current(fresh=True).catalogue.entries) > 1000


def test_the_last_use_of_a_subagent_is_shown_and_sorted_by(admin_client: Client, text_of: PageText):
    owner = get_user_model().objects.get(username="admin")
    now = timezone.now()
    lead = run_of(owner, "lead_agent", now)
    run_of(owner, "translator", now - timedelta(days=30), parent=lead, tool_call_id="a")
    for number in range(3):
        run_of(owner, "reviewer", now - timedelta(days=number), parent=lead, tool_call_id=str(number))
    run_of(owner, "reviewer", now)  # a lead of the same name is another agent
    page = text_of(LIST)
    assert "3 runs in 7 days" in page
    assert "0 runs in 7 days" in page
    assert shown(text_of(f"{LIST}?o=-6"))[:2] == ["config-reviewer", "managed-translator"]
    detail = text_of(f"{LIST}config-reviewer/change/")
    assert len(re.findall(r"/admin/runs/run/[^/]+/change/", detail)) == 3


def run_of(owner: Any, agent: str, at: datetime, **fields: Any) -> Run:
    thread = Thread.objects.create(owner=owner, created_at=at, updated_at=at)
    root = fields["parent"].root_id if "parent" in fields else thread.pk
    return Run.objects.create(thread=thread, agent=agent, root_id=root, created_at=at, status="success", **fields)


def test_the_author_of_what_is_stored_stands_beside_the_time(text_of: PageText, managed: SaveManaged):
    assert re.search(r'class="sa-used"><time[^>]+>[^<]+</time><span class="sa-sub">test</span>', text_of(LIST))


def test_the_page_is_complete_in_chinese(admin_client: Client):
    page = admin_client.get(LIST, headers={"accept-language": "zh-hans"}).content.decode()
    for english in ("Shadowed", "Built-in", "Name conflict", "By source", "Limits"):
        assert english not in page
    for chinese in ("内置", "已停用", "名称冲突"):
        assert chinese in page

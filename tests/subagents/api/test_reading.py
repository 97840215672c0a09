"""What the catalogue says over HTTP."""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
from django.db import connection

from subagents import registry, usage
from subagents.models import ManagedSubagent
from tests.access.calling import Api, caller, is_problem
from tests.patience import PATIENCE_SECONDS
from tests.subagents.api.conftest import EVERYTHING

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.subagents.conftest import SaveManaged, WriteConfig

pytestmark = pytest.mark.django_db
CONFIG = """
sandbox: {provider: local, allow_host_bash: true}
subagents:
  agents: {bash: {max_turns: 80}, broken: {}}
  custom_agents:
    writer: {description: Writes the text., system_prompt: Write., max_turns: 7}
    broken: {description: Lacks a prompt., max_turns: many}
"""


def test_every_source_and_state_is_in_one_list(api: Api, managed: SaveManaged, write_config: WriteConfig):
    managed("writer")
    managed("asleep", enabled=False)
    write_config(CONFIG)
    found = {(entry["name"], entry["source"]): entry for entry in api.ok("/subagents")["results"]}
    assert {key: entry["state"] for key, entry in found.items()} == {
        ("asleep", "managed"): "disabled",
        ("bash", "builtin"): "overridden",
        ("broken", "config"): "invalid",
        ("general-purpose", "builtin"): "active",
        ("writer", "config"): "active",
        ("writer", "managed"): "shadowed",
    }
    twin = found["writer", "managed"]
    assert (twin["conflict"], twin["shadowed_by"], twin["editable"]) == (True, "config", True)
    assert twin["reason"]["code"] == "shadowed"
    assert [entry["editable"] for entry in found.values()].count(False) == 4
    assert found["bash", "builtin"]["overridden"] == ["max_turns"]
    assert found["bash", "builtin"]["effective"]["max_turns"] == 80
    assert found["broken", "config"]["definition"] is None
    assert found["broken", "config"]["problems"]


def test_an_address_means_the_holder_of_the_name_and_source_its_twin(
    api: Api, managed: SaveManaged, write_config: WriteConfig
):
    stored = managed("writer")
    write_config(CONFIG)
    held = api.get("/subagents/writer")
    assert held.json()["source"] == "config"
    assert "etag" not in held
    twin = api.get("/subagents/writer?source=managed")
    assert twin.json()["state"] == "shadowed"
    assert twin["etag"] == f'"{stored.version}"'
    is_problem(api.get("/subagents/writer?source=builtin"), 404, "not_found")
    assert api.ok("/subagents/%20WRITER")["name"] == "writer"


def test_every_field_is_explained_with_the_layer_that_won_and_those_below(api: Api, write_config: WriteConfig):
    write_config(CONFIG)
    fields = api.ok("/subagents/bash/effective")["fields_with_layers"]
    assert fields["max_turns"] == {
        "value": 80,
        "layer": "subagents.agents.bash.max_turns",
        "layers": [{"layer": "subagents.agents.bash.max_turns", "value": 80}, {"layer": "default", "value": 60}],
    }
    entry = next(entry for entry in registry.current().catalogue.entries if entry.name == "bash")
    assert set(fields) == set(entry.layers)
    assert "layers" not in api.ok("/subagents/bash")
    assert api.ok("/subagents/bash?expand=layers")["layers"] == fields


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("q=does+ALPHA", ["alpha"]),
        ("q=%25", []),
        ("source=builtin", ["bash", "general-purpose"]),
        ("source=managed&enabled=false", ["beta"]),
        ("state=disabled", ["beta"]),
        ("source=managed&model=gpt", ["beta"]),
        ("source=managed&ordering=-max_turns", ["beta", "alpha", "gamma"]),
        ("source=managed&ordering=name&page_size=2&page=2", ["gamma"]),
        ("conflict=true", []),
    ],
)
def test_lists_are_filtered_searched_ordered_and_paged(api: Api, managed: SaveManaged, query: str, names: list[str]):
    managed("alpha", max_turns=60)
    managed("beta", max_turns=90, enabled=False, model="gpt")
    managed("gamma")
    assert api.names(f"/subagents?{query}") == names


def test_pages_lead_to_each_other_and_keep_the_filter(api: Api, managed: SaveManaged):
    for number in range(3):
        managed(f"worker-{number}")
    first = api.ok("/subagents?source=managed&page_size=2")
    assert (first["count"], first["pages"], first["previous"]) == (3, 2, None)
    second = api.client.get(first["next"]).json()
    assert [entry["name"] for entry in second["results"]] == ["worker-2"]
    assert api.client.get(second["previous"]).json() == first
    is_problem(api.get("/subagents?page=9"), 404, "not_found")


@pytest.mark.parametrize(
    "query",
    [
        "sate=active",
        "state=asleep",
        "source=",
        "page=0",
        "page=x",
        "page_size=201",
        "enabled=perhaps",
        "ordering=prompt",
    ],
)
def test_a_parameter_that_is_none_is_refused_by_name_and_never_ignored(api: Api, query: str):
    body = is_problem(api.get(f"/subagents?{query}"), 422, "invalid")
    assert [error["pointer"] for error in body["errors"]] == [f"?{query.partition('=')[0]}"]


def test_prompts_are_for_those_who_may_read_them(managed: SaveManaged, make: Callable[..., Any], api: Api):
    secret = "the secret recipe"
    make("cook", system_prompt=secret)
    make("maitre", "/agents", system_prompt=secret)
    api("PATCH", "/subagents/cook", {"system_prompt": secret + "!"}, if_match="*")
    reader = caller("view_managedsubagent", "view_customagent", scopes=("read",))
    for path in ("/subagents", "/subagents/cook", "/subagents/cook?expand=layers", "/subagents/cook/effective",
                 "/subagents/cook/versions", "/subagents/cook/versions/1", "/agents", "/agents/maitre",
                 "/agents/maitre/versions"):  # fmt: skip
        assert secret in api.get(path).content.decode(), path
        shown = reader.get(path)
        assert shown.status_code == 200
        assert secret not in shown.content.decode(), path
    assert reader.ok("/subagents/cook")["definition"]["system_prompt"] is None
    assert reader.ok(f"/subagents?q={secret.split()[1]}")["count"] == 0


def test_a_broken_prompt_is_not_quoted_to_those_who_may_not_read_it(api: Api, write_config: WriteConfig):
    write_config("subagents: {custom_agents: {cook: {description: Cooks., system_prompt: 31337}}}")
    reader = caller("view_managedsubagent")
    assert "31337" in api.get("/subagents/cook").content.decode()
    shown = reader.ok("/subagents/cook")
    assert shown["state"] == "invalid"
    assert "31337" not in str(shown)


def test_a_conflict_shows_soon_after_the_change_of_the_file(api: Api, managed: SaveManaged, write_config: WriteConfig):
    managed("writer")
    assert api.ok("/subagents/writer")["state"] == "active"
    path = write_config("")
    api.ok("/subagents")
    changed_at = time.monotonic()
    path.write_text(CONFIG, encoding="utf-8")
    os.utime(path)
    while api.names("/subagents?conflict=true") != ["writer"]:
        assert time.monotonic() - changed_at < PATIENCE_SECONDS
    assert api.ok("/subagents/writer")["source"] == "config"


def test_a_row_with_half_a_character_or_a_number_that_is_none_hides_nothing(api: Api, managed: SaveManaged):
    managed("good")
    managed("odd", token_budget={"warn_threshold": 0.5})
    _write_past_every_check("odd")
    registry.forget()
    assert "good" in api.names("/subagents")
    for path in ("/subagents/odd", "/subagents/odd/effective", "/subagents/odd/versions"):
        api.ok(path)


def _write_past_every_check(name: str) -> None:
    """A number that only JSON can say and, where the database takes it, half a surrogate pair in a text."""
    table = ManagedSubagent._meta.db_table
    with connection.cursor() as cursor:
        cursor.execute(f"UPDATE {table} SET token_budget = %s WHERE name = %s", ['{"warn_threshold": 1e999}', name])
        if connection.vendor == "sqlite":
            half = "CAST(X'6f6b20eda0bd' AS TEXT)"
            cursor.execute(f"UPDATE {table} SET description = {half} WHERE name = %s", [name])


def test_custom_agents_show_what_their_scope_gives_now(api: Api, make: Callable[..., Any]):
    make("writer")
    make("lead", "/agents", allowed_subagents=["writer", "gone"])
    shown = api.ok("/agents/lead")
    assert (shown["resolved_subagents"], shown["missing_subagents"]) == (["writer"], ["gone"])
    assert shown["definition"]["allowed_subagents"] == ["writer", "gone"]
    make("free", "/agents", allowed_subagents=None)
    make("alone", "/agents", allowed_subagents=[], enabled=False)
    assert api.ok("/agents/alone")["definition"]["allowed_subagents"] == []
    assert api.ok("/agents/free")["definition"]["allowed_subagents"] is None
    assert api.names("/agents?enabled=false") == ["alone"]
    assert api.names("/agents?q=FREE&ordering=-name") == ["free"]
    assert api.ok("/subagents/writer/references") == {"agents": [{"name": "lead", "display_name": "Analyst"}]}


def test_a_file_that_was_never_good_is_said_and_is_no_page(api: Api, write_config: WriteConfig):
    write_config("subagents: [")
    is_problem(api.get("/subagents"), 503, "unavailable")
    assert EVERYTHING


def test_the_last_use_comes_with_each_entry(api: Api, managed: SaveManaged, monkeypatch: pytest.MonkeyPatch):
    at = datetime(2026, 1, 6, 8, tzinfo=UTC)
    managed("writer")
    asked: list[list[str]] = []

    class Source:
        def last_used(self, names: list[str]) -> dict[str, usage.Use]:
            asked.append(list(names))
            return {"writer": usage.Use(at=at, recent_runs=3)}

    monkeypatch.setattr(usage, "_sources", [Source()])
    found = {entry["name"]: entry for entry in api.ok("/subagents")["results"]}
    assert (found["writer"]["last_used_at"], found["writer"]["recent_runs"]) == ("2026-01-06T08:00:00Z", 3)
    assert (found["bash"]["last_used_at"], found["bash"]["recent_runs"]) == (None, 0)
    assert asked == [["bash", "general-purpose", "writer"]]

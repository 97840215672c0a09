from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from django.utils import timezone

from subagents.definitions import Source
from subagents.errors import InvalidDefinition, NameTaken, NotFound, StaleVersion
from subagents.kinds import KINDS, REMOTE, SUBAGENT, Kind
from subagents.models import ManagedSubagent
from subagents.registry import open_store
from subagents.stores.base import Contents, Found, Store
from subagents.stores.database import DatabaseStore

if TYPE_CHECKING:
    from subagents.registry import Backend

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("write_config")]


@pytest.fixture(params=KINDS, ids=lambda kind: kind.name)
def kind(request: pytest.FixtureRequest) -> Kind[Any]:
    return request.param


@pytest.fixture
def store(kind: Kind[Any], backend: Backend) -> Store[Any]:
    return open_store(kind, backend)


def item(kind: Kind[Any], name: str = "scout", **fields: Any) -> Any:
    own = {"graph_id": "g"} if kind is REMOTE else {"system_prompt": "Look."}
    return kind.validate({"name": name, "description": "Finds.", **own, **fields})


RICH: dict[str, Any] = {"display_name": "Späher 侦察", "enabled": False}
_PROMPTED: dict[str, Any] = {"system_prompt": "{{ x }} %s {y} <b>\r\n", "tools": [], "skills": ["a"]}
RICH_OF: dict[str, dict[str, Any]] = {
    "subagent": {**_PROMPTED, "disallowed_tools": ["bash"], "token_budget": {"max_tokens": 5000}, "max_turns": 7},
    "agent": {**_PROMPTED, "subagent_enabled": False, "allowed_subagents": ["scout", "nobody"]},
    "remote": {
        "url": "https://agents.example/x",
        "headers": {"Authorization": "Bearer a"},
        "use_env_key": False,
        "webhook": "https://hooks.example",
        "update_strategy": "enqueue",
    },
}


def test_a_definition_comes_back_as_it_was_stored_with_its_version(kind: Kind[Any], store: Store[Any]):
    written = item(kind, **RICH, **RICH_OF[kind.name])
    stored = store.put(written, expected_version=None)
    assert isinstance(stored.version, str)
    assert replace(stored, version=None, updated_at=None) == written
    assert store.all() == Contents(items=(stored,))
    assert store.get("scout") == stored
    assert store.find("scout") == Found(version=stored.version, document=kind.to_plain(written), item=stored)


@pytest.mark.parametrize("value", [None, [], ["a"]])
@pytest.mark.parametrize("field", ["tools", "skills", "allowed_subagents"])
def test_null_empty_and_a_list_stay_three_different_things(backend: Backend, field: str, value: list[str] | None):
    for kind in KINDS:
        if field in kind.fields:
            stored = open_store(kind, backend).put(item(kind, **{field: value}), expected_version=None)
            assert kind.to_plain(stored)[field] == value


def test_a_save_on_the_expected_version_makes_the_next_one(kind: Kind[Any], store: Store[Any]):
    first = store.put(item(kind), expected_version=None)
    stored = store.put(item(kind, display_name="S"), expected_version=first.version)
    assert stored.display_name == "S"
    assert stored.version != first.version


def test_a_stale_save_is_refused_and_changes_nothing(kind: Kind[Any], store: Store[Any]):
    first = store.put(item(kind), expected_version=None)
    second = store.put(item(kind, display_name="S"), expected_version=first.version)
    with pytest.raises(StaleVersion) as stale:
        store.put(item(kind, display_name="T"), expected_version=first.version)
    assert (stale.value.expected, stale.value.current) == (first.version, second.version)
    assert store.get("scout") == second


@pytest.mark.parametrize("version", ["", "x", "-1", "1.0", "９", "1" * 300, "a" * 64, "\x00"])
def test_no_text_that_is_no_version_does_any_harm(kind: Kind[Any], store: Store[Any], version: str):
    first = store.put(item(kind), expected_version=None)
    with pytest.raises(StaleVersion):
        store.put(item(kind, display_name="T"), expected_version=version)
    with pytest.raises(StaleVersion):
        store.delete("scout", expected_version=version)
    assert store.get("scout") == first


def test_saving_what_has_been_deleted_is_refused(kind: Kind[Any], store: Store[Any]):
    with pytest.raises(StaleVersion) as stale:
        store.put(item(kind), expected_version="1")
    assert stale.value.current is None


def test_a_second_definition_of_one_name_is_refused(kind: Kind[Any], store: Store[Any]):
    first = store.put(item(kind), expected_version=None)
    with pytest.raises(NameTaken) as taken:
        store.put(item(kind, display_name="Another"), expected_version=None)
    assert taken.value.source is Source.MANAGED
    assert store.all() == Contents(items=(first,))


def test_deleting_needs_the_current_version_and_happens_once(kind: Kind[Any], store: Store[Any]):
    first = store.put(item(kind), expected_version=None)
    second = store.put(item(kind, display_name="S"), expected_version=first.version)
    with pytest.raises(StaleVersion):
        store.delete("scout", expected_version=first.version)
    store.delete("scout", expected_version=second.version)
    with pytest.raises(NotFound):
        store.delete("scout", expected_version=second.version)
    with pytest.raises(NotFound):
        store.get("scout")
    assert store.find("scout") is None


def test_every_change_changes_the_signature(kind: Kind[Any], store: Store[Any]):
    signatures = [store.signature()]
    first = store.put(item(kind), expected_version=None)
    signatures.append(store.signature())
    second = store.put(item(kind, enabled=False), expected_version=first.version)
    signatures.append(store.signature())
    store.delete("scout", expected_version=second.version)
    store.put(item(kind, "ranger"), expected_version=None)
    signatures.append(store.signature())
    assert len({*signatures}) == 4
    assert store.signature() == store.signature(fresh=True) == signatures[-1]


# --- Rows of the database ---------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "columns",
    [
        {"tools": {"a": 1}},
        {"tools": "bash"},
        {"token_budget": [1]},
        {"max_turns": 5000},
        {"description": ""},
        {"skills": [1]},
        {"disallowed_tools": "x"},
    ],
)
def test_a_row_that_breaks_the_rules_is_reported_and_hides_nothing_else(columns: dict[str, object]):
    now = timezone.now()
    store = DatabaseStore(SUBAGENT)
    store.put(item(SUBAGENT), expected_version=None)
    row = {"name": "odd", "description": "x", "system_prompt": "y", "created_at": now, "updated_at": now}
    ManagedSubagent.objects.create(**(row | columns))
    contents = store.all()
    assert [each.name for each in contents.items] == ["scout"]
    assert [each.name for each in contents.invalid] == ["odd"]
    assert contents.invalid[0].problems[0].startswith(next(iter(columns)))
    with pytest.raises(InvalidDefinition):
        store.get("odd")
    repaired = store.put(item(SUBAGENT, "odd"), expected_version=contents.invalid[0].version)
    assert store.get("odd") == repaired


def test_a_row_under_a_name_that_is_not_normalised_is_reported():
    now = timezone.now()
    ManagedSubagent.objects.create(name="Scout", description="x", system_prompt="y", created_at=now, updated_at=now)
    assert [each.name for each in DatabaseStore(SUBAGENT).all().invalid] == ["Scout"]

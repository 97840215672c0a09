from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from subagents.scope import ALL_ENABLED, NOBODY, Scope, ScopeKind, only, scope_from_json
from tests.subagents.making import builtin, catalogue, definition, from_config

CATALOGUE = catalogue(builtin("alpha"), from_config("bravo", enabled=False), definition("charlie"), definition("delta"))


def test_all_means_every_enabled_entry():
    assert ALL_ENABLED.resolve(CATALOGUE) == ("alpha", "charlie", "delta")


def test_none_means_nobody():
    assert NOBODY.resolve(CATALOGUE) == ()


def test_selected_names_may_be_of_any_source_and_are_dropped_while_they_do_not_run():
    scope = only("delta", "alpha", "bravo", "gone")
    assert scope.resolve(CATALOGUE) == ("alpha", "delta")
    assert scope.missing(CATALOGUE) == ("gone",)
    assert scope.names == ("delta", "alpha", "bravo", "gone")


def test_selecting_no_name_is_not_the_same_as_all():
    assert only().resolve(CATALOGUE) == ()


@given(st.sampled_from(ScopeKind), st.lists(st.text(max_size=8), unique=True))
def test_a_scope_survives_json(kind: ScopeKind, names: list[str]):
    scope = Scope(kind, tuple(names) if kind is ScopeKind.ONLY else ())
    assert scope_from_json(json.loads(json.dumps(scope.to_json()))) == scope


@pytest.mark.parametrize(
    "value",
    [
        None,
        "all",
        [],
        {},
        {"scope": "some"},
        {"scope": "only"},
        {"scope": "only", "names": "alpha"},
        {"scope": "only", "names": [1]},
        {"scope": "all", "names": []},
        {"scope": ["all"]},
        {"scope": None},
    ],
)
def test_anything_else_is_refused_instead_of_guessed(value: object):
    with pytest.raises(ValueError, match="scope"):
        scope_from_json(value)

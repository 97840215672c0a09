from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from subagents.builtins import BUILTINS
from subagents.catalogue import Invalid, Known, State
from subagents.definitions import PRECEDENCE, Definition, Source
from tests.subagents.making import DOES_NOT, builtin, catalogue, definition, from_config

names = st.sampled_from(["alpha", "bash", "bravo", "charlie"])


@st.composite
def definitions(draw: st.DrawFn) -> list[Definition]:
    places = draw(st.lists(st.tuples(names, st.sampled_from(Source)), unique=True, max_size=12))
    return [definition(name, source, enabled=draw(st.booleans())) for name, source in places]


@st.composite
def broken(draw: st.DrawFn) -> tuple[Invalid, ...]:
    places = draw(st.lists(st.tuples(names, st.sampled_from([Source.CONFIG, Source.MANAGED])), unique=True, max_size=4))
    return tuple(Invalid(source=source, name=name, problems=("line 3: no",)) for name, source in places)


def test_a_config_entry_takes_the_name_from_a_managed_one_which_stays_listed():
    merged = catalogue(definition("scout"), from_config("scout"))
    assert [(entry.source, entry.state, entry.shadowed_by) for entry in merged.entries] == [
        (Source.CONFIG, State.ACTIVE, None),
        (Source.MANAGED, State.SHADOWED, Source.CONFIG),
    ]
    assert merged.runnable["scout"].source is Source.CONFIG
    assert [entry.key for entry in merged.conflicts] == ["managed-scout"]


def test_a_managed_entry_returns_by_itself_when_the_conflict_goes():
    assert catalogue(definition("scout")).runnable["scout"].source is Source.MANAGED


def test_entries_come_by_name_and_then_by_precedence():
    merged = catalogue(definition("b"), definition("a"), builtin("b"), from_config("b"))
    assert [entry.key for entry in merged.entries] == ["managed-a", "builtin-b", "config-b", "managed-b"]


def test_a_disabled_entry_holds_its_name_and_says_so():
    merged = catalogue(from_config("scout", enabled=False), definition("scout"))
    assert [entry.state for entry in merged.entries] == [State.DISABLED, State.SHADOWED]
    assert merged.runnable == {}
    assert "name stays taken" in str(merged.entries[0].reason)


def test_an_invalid_entry_is_listed_with_its_problems_and_holds_its_name():
    merged = catalogue(
        definition("scout"), invalid=(Invalid(source=Source.CONFIG, name="scout", problems=("line 3: no",)),)
    )
    assert [entry.state for entry in merged.entries] == [State.INVALID, State.SHADOWED]
    assert merged.entries[0].problems == ("line 3: no",)
    assert "weaker" in str(merged.entries[0].reason)
    assert merged.runnable == {}


def test_an_invalid_entry_hides_nothing_else():
    wrong = Invalid(source=Source.CONFIG, name="Not A Name", problems=("no",))
    merged = catalogue(definition("scout"), invalid=(wrong,))
    assert set(merged.runnable) == {"scout"}


def test_an_address_is_safe_for_scripts_whatever_a_broken_file_calls_an_entry():
    for name in ("Not A Name", "../../etc", "a:b", "x" * 5000, "-scout", "名", "\ud800"):
        merged = catalogue(invalid=(Invalid(source=Source.CONFIG, name=name, problems=("no",)),))
        key = merged.entries[0].key
        assert key.isascii() and key.replace("-", "").replace("_", "").isalnum() and len(key) < 80
        assert merged.by_key(key) is merged.entries[0]


def test_without_a_safe_sandbox_only_the_built_in_bash_is_unavailable_with_the_reason():
    merged = catalogue(*BUILTINS, definition("scout", tools=("bash",)), bash=DOES_NOT)
    assert set(merged.runnable) == {"general-purpose", "scout"}
    holder = merged.holder("bash")
    assert holder is not None
    assert holder.state is State.UNAVAILABLE
    assert DOES_NOT.reason in str(holder.reason)


def test_the_bash_name_stays_taken_while_bash_cannot_run():
    merged = catalogue(*BUILTINS, definition("bash"), bash=DOES_NOT)
    assert "bash" not in merged.runnable


def test_an_override_is_shown_on_the_entry_that_it_changes():
    merged = catalogue(*BUILTINS, config="subagents: {agents: {bash: {max_turns: 80, timeout_seconds: 300}}}")
    bash = merged.runnable["bash"]
    assert bash.state is State.OVERRIDDEN
    assert set(bash.overridden) == {"max_turns", "timeout_seconds"}
    assert merged.runnable["general-purpose"].state is State.ACTIVE


def test_an_override_that_cannot_be_read_leaves_its_subagent_running_with_a_warning():
    merged = catalogue(*BUILTINS, broken_overrides={"bash": ("config.yaml:3:5 no",)})
    bash = merged.runnable["bash"]
    assert [warning.code for warning in bash.warnings] == ["broken_override"]
    assert "config.yaml:3:5 no" in str(bash.warnings[0])


def test_unknown_tools_skills_and_models_are_kept_and_warned_about():
    scout = definition(
        "scout", tools=("ls", "nope", "task"), disallowed_tools=("gone",), skills=("dance",), model="gpt"
    )
    known = Known(tools=("ls",), skills=("sing",), models=("demo",))
    entry = catalogue(scout, known=known).runnable["scout"]
    assert [(warning.code, warning.facts["name"]) for warning in entry.warnings] == [
        ("denied_tool", "task"),
        ("unknown_tool", "nope"),
        ("unknown_tool", "gone"),
        ("unknown_skill", "dance"),
        ("unknown_model", "gpt"),
    ]
    assert entry.effective.tools == ("ls", "nope", "task")


def test_nothing_is_called_unknown_where_it_is_not_known_what_exists():
    assert catalogue(definition("scout", tools=("mcp_tool",), model="gpt")).runnable["scout"].warnings == ()


@given(definitions(), broken())
def test_merging_loses_nothing_and_runs_each_name_at_most_once(
    given_definitions: list[Definition], wrong: tuple[Invalid, ...]
):
    merged = catalogue(*given_definitions, invalid=wrong)
    places = {(each.source, each.name) for each in given_definitions} | {(each.source, each.name) for each in wrong}
    assert {(entry.source, entry.name) for entry in merged.entries} == places
    assert len(merged.entries) == len(places)
    running = [entry.name for entry in merged.entries if entry.runnable]
    assert len(running) == len(set(running))
    assert {entry.name: entry for entry in merged.entries if entry.runnable} == merged.runnable


@given(definitions(), broken())
def test_the_strongest_source_holds_a_name_and_the_others_say_so(
    given_definitions: list[Definition], wrong: tuple[Invalid, ...]
):
    merged = catalogue(*given_definitions, invalid=wrong)
    for entry in merged.entries:
        strongest = min((e.source for e in merged.entries if e.name == entry.name), key=PRECEDENCE.__getitem__)
        assert entry.shadowed_by == (None if entry.source is strongest else strongest)
        if entry.runnable:
            assert entry.source is strongest


@given(definitions(), names)
def test_adding_a_weaker_source_never_changes_a_stronger_one(given_definitions: list[Definition], name: str):
    stronger = [each for each in given_definitions if each.source in {Source.BUILTIN, Source.CONFIG}]
    before = catalogue(*stronger)
    after = catalogue(*stronger, definition(name))
    assert [entry for entry in after.entries if entry.source is not Source.MANAGED] == list(before.entries)


@given(definitions(), st.integers(1, 1000), names)
def test_an_override_beats_every_source(given_definitions: list[Definition], turns: int, name: str):
    merged = catalogue(*given_definitions, config=f"subagents: {{agents: {{{name}: {{max_turns: {turns}}}}}}}")
    for entry in merged.entries:
        assert (entry.effective.max_turns == turns and "max_turns" in entry.overridden) or entry.name != name


@given(definitions(), st.randoms())
def test_the_order_in_which_definitions_arrive_does_not_matter(given_definitions: list[Definition], random):  # type: ignore[no-untyped-def]
    shuffled = list(given_definitions)
    random.shuffle(shuffled)
    assert catalogue(*shuffled).entries == catalogue(*given_definitions).entries

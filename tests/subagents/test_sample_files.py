"""Files in the shapes that people post, taken whole: what reaches the catalogue, what is said of the rest."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from subagents import registry
from subagents.catalogue import State
from subagents.definitions import Source
from subagents.errors import ConfigRefused
from subagents.registry import Observer

if TYPE_CHECKING:
    from subagents.catalogue import Entry
    from tests.subagents.conftest import WriteConfig

pytestmark = pytest.mark.django_db(transaction=True)

SAMPLES = Path(__file__).parent.parent / "samples"
GOOD = "subagents: {custom_agents: {scout: {description: Finds things., system_prompt: Look.}}}"


def put(write_config: WriteConfig, name: str) -> None:
    """Save a sample over the configuration file that is in force, byte for byte."""
    write_config("").write_bytes((SAMPLES / name).read_bytes())
    registry.forget()


def report(write_config: WriteConfig, name: str) -> list[str]:
    """What a first start with this sample says before it ends."""
    put(write_config, name)
    with pytest.raises(ConfigRefused) as refused:
        Observer().current()
    return str(refused.value).splitlines()


def entry(name: str, source: Source = Source.CONFIG) -> Entry:
    return next(one for one in registry.current().catalogue.entries if (one.name, one.source) == (name, source))


def test_a_windows_file_gets_one_report_with_every_path_and_is_not_half_loaded(write_config: WriteConfig):
    lines = report(write_config, "16_deerflow_posted_windows.yaml")
    for place in (
        "config.yaml:21:22 subagents.max_total_per_run: expected a positive integer up to 50, got 60",
        "config.yaml:24:24 subagents.agents.general-purpose.timeout_seconds: expected a positive integer",
        "config.yaml:25:18 subagents.agents.general-purpose.max_turns: expected a positive integer up to 1000, got 0",
        'config.yaml:26:5 subagents.agents.Bash: the name is read as "bash"',
        "config.yaml:14:3 sandbox.mounts: a DeerFlow option that has no effect here",
    ):
        assert any(line.startswith(place) for line in lines), place
    write_config(GOOD)
    registry.current()
    put(write_config, "16_deerflow_posted_windows.yaml")
    now = registry.current()
    assert now.config_refused
    assert now.config.models == ()
    assert "scout" in now.catalogue.runnable
    assert now.catalogue.runnable["general-purpose"].overridden == ()


def test_custom_agents_say_null_empty_and_named_lists_and_one_bad_name_hides_no_other(write_config: WriteConfig):
    put(write_config, "17_deerflow_custom_agents.yaml")
    now = registry.current()
    assert not now.config_refused
    assert {name for name, one in now.catalogue.runnable.items() if one.source is Source.CONFIG} == {
        "analysis",
        "quiet",
        "open",
    }
    assert (entry("open").effective.tools, entry("quiet").effective.tools) == (None, ())
    assert entry("quiet").effective.skills == ()
    analysis = entry("analysis")
    assert analysis.definition.system_prompt == (
        "You analyse data.\n- Use {columns} and {{rows}} as they are\n- 100 % of rows, please\n"
    )
    assert "There is no tool named “write-file”. It is ignored." in [str(note) for note in analysis.warnings]
    clash = entry("general-purpose")
    assert (clash.state, clash.shadowed_by) == (State.SHADOWED, Source.BUILTIN)
    assert now.catalogue.runnable["general-purpose"].source is Source.BUILTIN
    assert entry("研究 员").state is State.INVALID
    assert "config.yaml:31" in entry("研究 员").problems[0]


def test_a_file_saved_in_another_encoding_leaves_the_last_good_one_in_force(write_config: WriteConfig):
    (line,) = report(write_config, "21_deerflow_gbk.yaml")
    assert "byte offset 2 (the bytes can be read as GBK); save the file as UTF-8" in line
    write_config(GOOD)
    registry.current()
    put(write_config, "21_deerflow_gbk.yaml")
    now = registry.current()
    assert now.config_refused
    assert "scout" in now.catalogue.runnable
    assert [str(problem) for problem in now.problems] == [line]


def test_a_file_indented_with_tabs_leaves_the_last_good_one_in_force(write_config: WriteConfig):
    lines = report(write_config, "20_deerflow_tab_indent.yaml")
    assert all(line.startswith("config.yaml:") and "tabs are not allowed" in line for line in lines)
    write_config(GOOD)
    registry.current()
    put(write_config, "20_deerflow_tab_indent.yaml")
    now = registry.current()
    assert now.config_refused
    assert "scout" in now.catalogue.runnable


def test_keys_and_values_that_yaml_turns_into_something_else_never_reach_the_registry(write_config: WriteConfig):
    lines = report(write_config, "22_deerflow_yaml11_surprises.yaml")
    for path in ("timeout_seconds", "max_turns", "token_budget.enabled", "token_budget.max_tokens"):
        assert any(f" subagents.{path}: " in line for line in lines), path
    for key in ("no", "on", "0123", "1e3", "2026-01-01", "~"):
        assert any(f" subagents.agents.{key}: a key must be text" in line for line in lines), key
    write_config("")
    before = {one.name for one in registry.current().catalogue.entries}
    put(write_config, "22_deerflow_yaml11_surprises.yaml")
    assert {one.name for one in registry.current().catalogue.entries} == before


def test_an_alias_bomb_is_refused_within_little_memory(write_config: WriteConfig):
    tracemalloc.start()
    (line,) = report(write_config, "29_alias_bomb.yaml")
    _now, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert "more than 100000 values once its aliases are expanded" in line
    assert peak < 20 << 20


def test_an_object_tag_is_refused_and_runs_nothing(write_config: WriteConfig, tmp_path: Path):
    lines = report(write_config, "30_object_tag.yaml")
    assert "the tag !!python/object/apply:os.system is not allowed" in lines[0]
    trace = tmp_path / "trace"
    write_config(f'subagents: !!python/object/apply:os.system ["touch {trace}"]')
    with pytest.raises(ConfigRefused):
        Observer().current()
    assert not trace.exists()

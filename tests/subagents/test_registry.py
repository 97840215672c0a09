from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest

from engine.config.errors import Severity
from subagents import registry
from subagents.catalogue import Entry, State
from subagents.errors import ConfigRefused, UnknownAgent
from subagents.matching import Refusal
from subagents.models import ConfigSnapshot, ManagedSubagent
from subagents.registry import RECHECK_SECONDS, Observer

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pytest_django.fixtures import Settings

    from tests.subagents.conftest import SaveManaged, WriteConfig

pytestmark = pytest.mark.django_db(transaction=True)

SCOUT = "subagents: {custom_agents: {scout: {description: Finds things., system_prompt: Look.}}}"
BROKEN = "subagents: {max_turns: lots}"


class Clock:
    """Seconds that pass when a test says so."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def dispatched(name: object, *allowed: str) -> Entry:
    found = registry.resolve_dispatch(name, allowed=allowed)
    assert isinstance(found, Entry), found.text
    return found


def refused(name: object, *allowed: str) -> str:
    found = registry.resolve_dispatch(name, allowed=allowed)
    assert isinstance(found, Refusal)
    return found.text


# --- What is seen, and when -----------------------------------------------------------------------------------
def test_built_in_config_and_managed_definitions_are_one_catalogue(managed: SaveManaged, write_config: WriteConfig):
    managed("ranger")
    write_config(SCOUT)
    assert list(registry.current().catalogue.runnable) == ["bash", "general-purpose", "ranger", "scout"]


def test_a_missing_file_is_all_defaults_and_a_problem(write_config: WriteConfig):
    write_config("").unlink()
    now = registry.current()
    assert now.config.subagents.max_total_per_run == 6
    assert [problem.severity for problem in now.problems] == [Severity.WARNING]
    assert "does not exist" in now.problems[0].message
    assert not now.config_refused


def test_a_change_of_the_file_is_seen_after_less_than_two_seconds(write_config: WriteConfig, clock: Clock):
    other_process = Observer(clock=clock)
    before = other_process.current()
    write_config(SCOUT)
    assert other_process.current() is before
    clock.now += RECHECK_SECONDS
    assert RECHECK_SECONDS < 2
    assert "scout" in other_process.current().catalogue.runnable


def test_a_change_of_a_managed_definition_is_seen_after_less_than_two_seconds(managed: SaveManaged, clock: Clock):
    other_process = Observer(clock=clock)
    other_process.current()
    managed("scout")
    clock.now += RECHECK_SECONDS
    assert "scout" in other_process.current().catalogue.runnable


def test_asking_again_within_a_second_costs_no_query_and_later_only_one(
    write_config: WriteConfig, clock: Clock, django_assert_num_queries: Callable[[int], Any]
):
    observer = Observer(clock=clock)
    first = observer.current()
    with django_assert_num_queries(0):
        assert observer.current() is first
    clock.now += RECHECK_SECONDS
    with django_assert_num_queries(1):
        assert observer.current() is first


def test_a_file_written_twice_within_one_tick_of_the_file_systems_clock_is_seen(write_config: WriteConfig):
    path = write_config("subagents: {max_turns: 11}")
    stat = path.stat()
    observer = Observer()
    assert observer.current().config.subagents.max_turns == 11
    path.write_text("subagents: {max_turns: 12}", encoding="utf-8")
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    observer.forget()
    assert observer.current().config.subagents.max_turns == 12


def test_the_signature_stays_while_nothing_changes_and_moves_when_something_does(
    managed: SaveManaged, write_config: WriteConfig
):
    first = registry.current(fresh=True).signature
    assert registry.current(fresh=True).signature == first
    managed("scout")
    second = registry.current(fresh=True).signature
    write_config("subagents: {max_turns: 12}")
    assert len({first, second, registry.current(fresh=True).signature}) == 3


# --- A broken file --------------------------------------------------------------------------------------------
def test_a_first_start_with_a_refused_file_raises_the_whole_report(write_config: WriteConfig):
    write_config("subagents: {max_turns: lots, max_total_per_run: 0}")
    with pytest.raises(ConfigRefused) as refused_file:
        Observer().current()
    assert len(refused_file.value.problems) == 2
    assert str(refused_file.value).startswith("config.yaml:1:")


def test_a_running_process_keeps_the_last_good_configuration_and_says_so(write_config: WriteConfig):
    write_config(SCOUT)
    observer = Observer()
    observer.current()
    write_config(BROKEN)
    now = observer.current(fresh=True)
    assert now.config_refused
    assert "scout" in now.catalogue.runnable
    assert [problem.severity for problem in now.problems] == [Severity.REFUSED]
    write_config("")
    recovered = observer.current(fresh=True)
    assert (recovered.config_refused, recovered.problems) == (False, ())
    assert "scout" not in recovered.catalogue.runnable


def test_a_process_born_while_the_file_is_broken_uses_the_last_good_one(write_config: WriteConfig):
    write_config(SCOUT)
    Observer().current()
    write_config(BROKEN)
    now = Observer().current()
    assert now.config_refused
    assert "scout" in now.catalogue.runnable


def test_the_last_good_file_is_the_latest_one(write_config: WriteConfig):
    for turns in (11, 12, 11, 13):
        write_config(f"# ünïcode 名\nsubagents: {{max_turns: {turns}}}")
        Observer().current()
    write_config(BROKEN)
    assert Observer().current().config.subagents.max_turns == 13
    assert ConfigSnapshot.objects.count() == 1


def test_an_accepted_file_is_stored_once_and_not_on_every_look(
    write_config: WriteConfig, django_assert_num_queries: Callable[[int], Any]
):
    write_config(SCOUT)
    observer = Observer()
    observer.current()
    accepted_at = ConfigSnapshot.objects.get().accepted_at
    with django_assert_num_queries(1):
        observer.current(fresh=True)
    Observer().current()
    assert ConfigSnapshot.objects.get().accepted_at == accepted_at


@pytest.mark.parametrize("content", [b"\xff\xfe\x00", b"a: \x00", b"a: [", b"\t- x", b"x" * 3_000_000, b"&a [*a]"])
def test_no_content_of_the_file_raises_anything_but_the_report(write_config: WriteConfig, content: bytes):
    write_config("").write_bytes(content)
    with pytest.raises(ConfigRefused):
        Observer().current()


def test_a_folder_in_the_files_place_is_a_refused_file(write_config: WriteConfig):
    path = write_config("")
    path.unlink()
    path.mkdir()
    with pytest.raises(ConfigRefused, match="cannot be read"):
        Observer().current()


def test_an_entry_that_cannot_be_read_is_listed_and_the_rest_is_in_force(write_config: WriteConfig):
    write_config(
        "subagents:\n  max_turns: 12\n  custom_agents:\n    scout: {description: Finds.}\n    Bad Name: {}\n"
        "  agents:\n    bash: {timeout_seconds: 5m}\n"
    )
    now = registry.current()
    states = {entry.name: entry.state for entry in now.catalogue.entries}
    assert states["scout"] is states["Bad Name"] is State.INVALID
    assert now.catalogue.runnable["general-purpose"].effective.max_turns == 12
    bash = now.catalogue.holder("bash")
    assert bash is not None
    assert [warning.code for warning in bash.warnings] == ["broken_override"]
    scout = now.catalogue.holder("scout")
    assert scout is not None
    assert scout.problems[0].startswith("config.yaml:4:5 subagents.custom_agents.scout.system_prompt")


def test_the_backend_changes_with_the_file_and_without_a_restart(
    managed: SaveManaged, write_config: WriteConfig, clock: Clock, tmp_path: Path, settings: Settings
):
    settings.DEER_FLOW_HOME = tmp_path
    elsewhere = Observer(clock=clock)  # another process
    managed("in-database")
    assert "in-database" in elsewhere.current().catalogue.runnable
    path = write_config("agent_storage: {backend: file}")
    managed("in-file")
    clock.now += RECHECK_SECONDS
    assert set(elsewhere.current().catalogue.runnable) == {"bash", "general-purpose", "in-file"}
    assert registry.current().problems == ()
    path.write_text("")
    clock.now += RECHECK_SECONDS
    assert set(elsewhere.current().catalogue.runnable) == {"bash", "general-purpose", "in-database"}


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("acp_agents: {codex: {command: npx, description: Work on a repository}}", "acp_agents"),
        ("mcp_servers: {files: {command: npx}}", "mcp_servers"),
    ],
)
def test_what_this_version_does_not_do_yet_is_said_when_it_is_asked_for(
    write_config: WriteConfig, text: str, path: str
):
    write_config(text)
    assert [problem.path for problem in registry.current().problems] == [path]


def test_skills_that_exist_are_known(managed: SaveManaged, write_config: WriteConfig):
    folder = write_config("").parent / "skills" / "sing"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text("---\nname: sing\n---\n", encoding="utf-8")
    managed("scout", skills=["sing", "dance"])
    warnings = registry.current().catalogue.runnable["scout"].warnings
    assert [each.facts.get("name") for each in warnings if each.code == "unknown_skill"] == ["dance"]


# --- Dispatch -------------------------------------------------------------------------------------------------
def test_a_permitted_name_is_dispatched_with_what_it_runs_with_now(managed: SaveManaged, write_config: WriteConfig):
    managed("scout")
    write_config("subagents: {agents: {scout: {max_turns: 7}}}")
    assert dispatched(" `Scout` ", "scout").effective.max_turns == 7


def test_a_name_outside_the_snapshot_is_refused_and_not_disclosed(managed: SaveManaged):
    managed("scout")
    managed("secret-agent")
    outside, unknown = refused("secret-agent", "scout"), refused("nobody-here", "scout")
    assert outside.replace("secret-agent", "") == unknown.replace("nobody-here", "")
    assert "Permitted subagents: scout." in outside
    assert "secret" not in refused("x", "scout")


def test_with_an_empty_snapshot_nobody_is_permitted(write_config: WriteConfig):
    assert "No subagent is permitted" in refused("general-purpose")


def test_disabling_a_subagent_stops_the_next_dispatch_at_once(managed: SaveManaged):
    managed("scout")
    assert dispatched("scout", "scout")
    ManagedSubagent.objects.update(enabled=False, version=2)
    text = refused("scout", "scout", "general-purpose")
    assert "switched off" in text
    assert "Permitted subagents: general-purpose." in text


def test_a_subagent_that_config_yaml_has_shadowed_since_gives_way_to_the_stronger_one(
    managed: SaveManaged, write_config: WriteConfig
):
    managed("scout")
    write_config(SCOUT)
    assert dispatched("scout", "scout").source.value == "config"


def test_a_removed_subagent_is_refused(managed: SaveManaged):
    managed("scout")
    ManagedSubagent.objects.all().delete()
    assert "gone" in refused("scout", "scout")


def test_the_bash_gate_is_asked_at_the_moment_of_dispatch(write_config: WriteConfig):
    write_config("sandbox: {provider: local, allow_host_bash: true}")
    assert dispatched("bash", "bash", "general-purpose")
    write_config("sandbox: {provider: local, allow_host_bash: false}")
    text = refused("bash", "bash", "general-purpose")
    assert "cannot run safely" in text
    assert "Permitted subagents: general-purpose." in text
    holder = registry.current().catalogue.holder("bash")
    assert holder is not None
    assert holder.state is State.UNAVAILABLE


@pytest.mark.parametrize("name", [None, 7, [], {}, "\x00", "\ud800", "x" * 1_000_000, ["a", "b"]])
def test_no_name_that_a_model_writes_raises(write_config: WriteConfig, name: object):
    assert "Permitted subagents: general-purpose." in refused(name, "general-purpose")


# --- Leads ----------------------------------------------------------------------------------------------------
def test_the_default_lead_sees_every_enabled_entry(managed: SaveManaged):
    managed("scout")
    managed("ranger", enabled=False)
    lead = registry.lead("lead_agent")
    resolved = lead.scope.resolve(registry.current().catalogue)
    assert lead.subagent_enabled
    assert resolved == ("bash", "general-purpose", "scout")


@pytest.mark.parametrize("agent", ["", "nobody", None, ["lead_agent"]])
def test_another_agent_is_unknown(agent: Any):
    with pytest.raises(UnknownAgent):
        registry.lead(agent)


def test_before_the_first_migration_the_file_can_be_read(write_config: WriteConfig, tmp_path: Path):
    import subprocess
    import sys

    write_config(SCOUT)
    code = (
        "import django; django.setup(); from subagents import registry;"
        "print(list(registry.current().catalogue.runnable))"
    )
    environment = {
        **{key: value for key, value in os.environ.items() if key != "DATABASE_URL"},
        "DEER_FLOW_HOME": str(tmp_path / "empty"),
        "DEER_FLOW_CONFIG": str(tmp_path / "config.yaml"),
        "DJANGO_SETTINGS_MODULE": "deerflow_site.settings",
    }
    ran = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert (ran.returncode, "scout" in ran.stdout) == (0, True), ran.stderr

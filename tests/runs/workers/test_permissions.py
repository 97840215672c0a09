"""What an agent may do is checked where it does it, not only where it is told."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from engine.tools.names import DELEGATION_TOOLS
from runs.statuses import RunStatus
from tests.runs.workers.house import Worker
from tests.scripted_model import scripts

if TYPE_CHECKING:
    from runs.models import Run
    from tests.runs.workers.house import House
    from tests.scripted_model import ScriptedModel
    from tests.scripted_model.calls import ModelCall


def scout_that(house: House, *steps: dict[str, object]) -> Run:
    """The run of the scout that a lead has sent off to play these steps."""
    child = scripts.script(*steps, {"text": "Done."})
    lead = house.answer(scripts.delegate_to([child], "scout")[1])
    assert lead.status == RunStatus.SUCCESS, lead.error
    (run,) = house.children(lead)
    return run


def offered(model: ScriptedModel) -> set[str]:
    """The tools of the scout's own requests."""
    return {name for call in model.requests if "You are scout." in call.system_text for name in call.tool_names}


@pytest.mark.parametrize(
    ("tools", "expected"),
    [
        (None, {"ls", "read_file", "write_file", "str_replace", "glob", "grep"}),
        ([], set()),
        (["ls"], {"ls"}),
        (["ls", "read-file", "web_scraper"], {"ls"}),
    ],
)
def test_null_none_and_a_list_of_tools_are_three_things_and_a_wrong_name_widens_nothing(
    house: House, model: ScriptedModel, tools: list[str] | None, expected: set[str]
):
    house.manage("scout", tools=tools)
    run = scout_that(house)
    assert run.status == RunStatus.SUCCESS
    assert set(run.definition["tools"]) == expected
    assert offered(model) == expected
    assert not expected & set(DELEGATION_TOOLS)


@pytest.mark.parametrize("fields", [{"tools": ["ls"]}, {"disallowed_tools": ["write_file", "mcp__files__write"]}])
@pytest.mark.parametrize("tool", ["write_file", "mcp__files__write"])
def test_a_tool_that_was_not_given_is_refused_when_it_is_called_all_the_same(
    house: House, model: ScriptedModel, fields: dict[str, list[str]], tool: str
):
    house.manage("scout", **fields)
    run = scout_that(house, {"calls": [scripts.call(tool, path="a.md", content="x")]})
    (result,) = house.results(run)
    assert result["status"] == "error"
    assert f'there is no tool "{tool}"' in str(result["content"])
    assert not house.file(run, "a.md").exists()
    assert tool not in offered(model)
    assert house.said(run) == "Done."


def rosters(call: ModelCall) -> tuple[set[str], set[str]]:
    """The names that the lead's prompt and the description of its `task` tool list."""
    task = next((tool["function"] for tool in call.body["tools"] if tool["function"]["name"] == "task"), None)
    assert task is not None
    return names_in(call.system_text), names_in(task["description"])


def names_in(text: str) -> set[str]:
    return set(re.findall(r"^- ([a-z0-9-]+): ", text, re.MULTILINE))


def test_prompt_tool_and_catalogue_name_the_same_subagents_after_every_change(house: House, model: ScriptedModel):
    from subagents import registry

    def asked() -> None:
        run = house.answer(scripts.says("ok")[1])
        runnable = set(registry.current(fresh=True).catalogue.runnable)
        in_prompt, in_tool = rosters(model.requests[-1])
        assert in_prompt == in_tool == runnable == set(run.metadata["allowed_subagents"])

    asked()
    house.manage("scout")
    house.manage("writer")
    asked()
    house.manage("scout", enabled=False)
    asked()
    house.manage("scout", description="Looks for things elsewhere.")
    house.configure(
        subagents={"custom_agents": {"writer": {"description": "Writes letters.", "system_prompt": "Write."}}}
    )
    asked()
    assert "- writer: Writes letters." in model.requests[-1].system_text
    assert "- scout: Looks for things elsewhere." in model.requests[-1].system_text


def test_a_running_run_keeps_what_it_began_with_and_the_next_one_has_what_was_changed(
    house: House, model: ScriptedModel
):
    house.manage("scout", system_prompt="The first words.")
    house.configure(subagents={"agents": {"scout": {"timeout_seconds": 900, "max_turns": 9}}})
    child_id, child_prompt = scripts.gated("changed")
    first = house.ask(scripts.delegate_to([(child_id, child_prompt)], "scout")[1])
    with Worker():
        house.until_calls(child_id)
        house.manage("scout", system_prompt="The second words.")
        house.configure(subagents={"agents": {"scout": {"timeout_seconds": 30, "max_turns": 3}}})
        model.open_gate("changed")
        house.until_ended(first)
        second = house.ask(scripts.delegate_to([scripts.instant()], "scout")[1])
        house.until_ended(second)
    (before,), (after,) = house.children(first), house.children(second)
    limits = [run.definition["limits"] for run in (before, after)]
    assert [(one["timeout_seconds"], one["max_turns"]) for one in limits] == [(900, 9), (30, 3)]
    assert [run.definition["system_prompt"] for run in (before, after)] == ["The first words.", "The second words."]
    assert before.definition["version"] != after.definition["version"]

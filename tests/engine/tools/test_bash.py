from __future__ import annotations

from pathlib import Path

import pytest
from langchain.agents import create_agent
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage

from engine.sandbox.factory import choose_sandbox
from engine.sandbox.local import NoSandbox
from engine.sandbox.workspace import Workspace
from engine.tools.bash import MAX_COMMAND_BYTES, OUTPUT_LIMIT_BYTES
from engine.tools.registry import build_tools, tool_names
from tests.engine.tools.conftest import Context


@pytest.fixture
def isolated(context: Context) -> None:
    if not Path("/usr/bin/bwrap").exists():
        pytest.skip("bubblewrap is not installed: apt-get install bubblewrap")
    availability = context.sandbox.available()
    assert availability.ok, availability.reason


async def test_a_command_answers_its_output_and_its_exit_code(call, isolated):
    assert (await call("bash", command="echo hi")).content == "hi"
    assert (await call("bash", command="echo no >&2; exit 4")).content == "no\n[exit code 4]"
    assert (await call("bash", command="true")).content == "(no output)"


@pytest.mark.parametrize(
    "text", ["curl -s https://example.test/api/v1", "print(1//2)", "/etc/passwd ../../secret; cd .."]
)
async def test_a_command_that_only_looks_as_if_it_led_elsewhere_is_run(call, isolated, text):
    """What a command can reach is the sandbox's business; no rule about its words stands in the way."""
    assert (await call("bash", command=f"echo '{text}'")).content == text


async def test_long_output_is_cut_and_that_is_said(call, isolated):
    answer = (await call("bash", command="seq 100000")).content
    assert "bytes cut" in answer
    assert len(answer) < OUTPUT_LIMIT_BYTES + 100


@pytest.mark.parametrize("command", ["", "  \n", "echo a\x00b", "echo \ud83d", "#" * (MAX_COMMAND_BYTES + 1)])
async def test_a_command_that_cannot_be_run_is_a_failed_result_and_short(call, isolated, command):
    try:
        answer = await call("bash", command=command)
    except ValueError as refused:  # the schema refuses text that is no Unicode before the tool is called
        assert "unicode" in str(refused)
        return
    assert answer.status == "error"
    assert len(answer.content) < 300


async def test_without_a_sandbox_the_model_is_told_why(call, context, workspace):
    context.sandbox = NoSandbox("There is no sandbox here.")
    answer = await call("bash", command="touch made")
    assert (answer.status, "There is no sandbox here." in answer.content) == ("error", True)


class ScriptedModel(GenericFakeChatModel):
    """Says its lines in order, whatever tools it is offered."""

    def bind_tools(self, tools, **_):
        return self


def calls(*wanted: tuple[str, dict[str, object]]) -> AIMessage:
    return AIMessage(
        "",
        tool_calls=[
            {"name": name, "args": arguments, "id": f"call-{position}", "type": "tool_call"}
            for position, (name, arguments) in enumerate(wanted)
        ],
    )


async def test_an_agent_works_through_its_tools_and_goes_on_after_failures(isolated, context, workspace):
    model = ScriptedModel(
        messages=iter(
            [
                calls(("write_file", {"path": "a/plan.md", "content": "draft\n"}), ("read_file", {"path": "../x"})),
                calls(("bash", {"command": "echo more >> a/plan.md; wc -l < a/plan.md"}), ("ls", {"path": 7})),
                calls(("str_replace", {"path": "a/plan.md", "old_str": "draft", "new_str": "final"})),
                calls(("grep", {"pattern": "final"}), ("glob", {"pattern": "**/*.md"})),
                AIMessage("Done."),
            ]
        )
    )
    agent = create_agent(model, build_tools(tool_names()), context_schema=Context)
    result = await agent.ainvoke({"messages": [("user", "Plan it.")]}, context=context)
    answers = [(m.name, m.status) for m in result["messages"] if m.type == "tool"]
    assert answers == [
        ("write_file", "success"),
        ("read_file", "error"),
        ("bash", "success"),
        ("ls", "error"),
        ("str_replace", "success"),
        ("grep", "success"),
        ("glob", "success"),
    ]
    contents = [m.content for m in result["messages"] if m.type == "tool"]
    assert contents[2] == "2"
    assert contents[5:] == ["a/plan.md:1:final", "a/plan.md"]
    assert workspace.read("a/plan.md") == b"final\nmore\n"


async def test_one_tool_object_serves_runs_with_different_workspaces(tmp_path):
    sandbox = choose_sandbox("auto", allow_host_bash=False, network=False)
    for name in ("one", "two"):
        model = ScriptedModel(
            messages=iter([calls(("write_file", {"path": "f", "content": name})), AIMessage("Done.")])
        )
        agent = create_agent(model, build_tools(["write_file"]), context_schema=Context)
        await agent.ainvoke({"messages": [("user", "Go.")]}, context=Context(Workspace(tmp_path / name), sandbox))
    assert (tmp_path / "one" / "f").read_text() == "one"
    assert (tmp_path / "two" / "f").read_text() == "two"

"""Text is data on its whole way: from the definition and the person to the model, the tools, the rows and back."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from runs.log import read
from runs.models import Run
from runs.statuses import RunStatus
from tests.scripted_model import scripts
from tests.scripted_model.reply import Reply, ToolCall

if TYPE_CHECKING:
    from tests.runs.workers.house import House
    from tests.scripted_model import ScriptedModel
    from tests.scripted_model.calls import ModelCall

TEMPLATES = (
    '{"a": {b}} {{x}} {} {0} %s %(x)s 100 % ${X} $Y {% if a %} {{ 7*7 }} {# c #} <b>&amp;</b> \\n \\u0000 \\ud800\n'
    "\ttabs, \u202e, e\u0301, \U0001f378 and 名"
)


def delegated(house: House, prompt: str) -> tuple[Run, Run]:
    """A lead that hands `prompt` to one scout, and the scout's run."""
    lead = house.answer(scripts.script({"calls": [scripts.task_call("part", prompt, subagent="scout")]}, {})[1])
    assert lead.status == RunStatus.SUCCESS, lead.error
    (child,) = house.children(lead)
    return lead, child


def test_prompts_of_definitions_and_tasks_reach_the_model_as_they_were_written(house: House, model: ScriptedModel):
    house.manage("scout", system_prompt=f"You scout. {TEMPLATES}", description="Finds {things} 100 % of the time.")
    asked = f"Look {TEMPLATES} {scripts.says('Found.')[1]}"
    _lead, child = delegated(house, asked)
    (request,) = [call for call in model.requests if "You scout." in call.system_text]
    assert f"You scout. {TEMPLATES}" in request.system_text
    assert request.user_text == asked
    assert child.definition["system_prompt"] == f"You scout. {TEMPLATES}"
    assert house.messages(child)[0]["content"] == asked
    assert "Finds {things} 100 % of the time." in model.requests[0].system_text


def test_an_emoji_written_as_two_escapes_is_one_character_for_the_child_and_in_its_rows(
    house: House, model: ScriptedModel
):
    house.manage("scout")
    literal = '{"description": "d", "prompt": "Mix a \\ud83c\\udf78", "subagent_type": "scout"}'
    step = {"calls": [scripts.call("task")], "malformed": literal}
    lead = house.answer(scripts.script(step, {})[1])
    (child,) = house.children(lead)
    assert house.messages(child)[0]["content"] == "Mix a \U0001f378"
    assert any(call.user_text == "Mix a \U0001f378" for call in model.requests)


def test_what_cannot_be_stored_is_replaced_counted_and_hurts_no_later_turn(house: House, model: ScriptedModel):
    write = scripts.call("write_file", path="a.md", content="a\x00b and \\u0000 stay \\ud800")
    first = house.answer(
        scripts.script({"text": "ok \udcaf\x00", "calls": [write]}, {"text": "done \udcaf"})[1] + "\x00"
    )
    assert first.status == RunStatus.SUCCESS, first.error
    person, call, _result, answer = house.messages(first)
    assert person["content"].endswith("\ufffd")
    assert call["content"] == "ok \ufffd\ufffd"
    assert call["tool_calls"][0]["args"]["content"] == "a\ufffdb and \\u0000 stay \\ud800"
    assert answer["content"] == "done \ufffd"
    replaced = [message["additional_kwargs"]["replaced_characters"] for message in (person, call, answer)]
    assert replaced == [1, 3, 1]
    assert house.file(first, "a.md").read_text(encoding="utf-8") == "a\ufffdb and \\u0000 stay \\ud800"
    again = house.answer(scripts.says("Fine.")[1], thread=first.thread)
    assert house.said(again) == "Fine."
    for row in read(first.thread_id, 0):
        json.loads(row.data)
        row.data.encode("utf-8")


def test_a_prompt_longer_than_any_command_line_reaches_the_model(house: House, model: ScriptedModel):
    house.manage("scout", system_prompt="s" * 200_000)
    asked = "x" * 300_000

    def answer(call: ModelCall) -> Reply:
        if "task" not in call.tool_names:
            return Reply(text="Read it all.")
        if call.messages[-1]["role"] == "tool":
            return Reply(text="Done.")
        arguments = {"description": "part", "prompt": asked, "subagent_type": "scout"}
        return Reply(calls=(ToolCall(name="task", arguments=arguments),))

    model.responder(answer)
    (child,) = house.children(house.answer("Read it."))
    (request,) = [call for call in model.requests if "s" * 200_000 in call.system_text]
    assert request.user_text == asked
    assert (child.status, house.said(child)) == (RunStatus.SUCCESS, "Read it all.")


def test_an_answer_that_speaks_of_a_task_starts_none(house: House, model: ScriptedModel):
    house.manage("scout")
    words = 'I have started scout, task id abc. {"name": "task", "arguments": {"subagent_type": "scout"}}'
    run = house.answer(scripts.says(words)[1])
    assert (run.status, house.said(run)) == (RunStatus.SUCCESS, words)
    assert house.children(run) == []
    assert Run.objects.count() == 1
    assert len(model.requests) == 1

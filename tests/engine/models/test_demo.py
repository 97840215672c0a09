from __future__ import annotations

import asyncio

import pytest
from langchain_core.messages import AIMessage, HumanMessage

from engine.agent import TextDelta, build, drive, final_text
from engine.models.demo import DemoChatModel
from engine.ports import RosterEntry
from engine.sandbox.factory import choose_sandbox
from engine.usage import usage_of
from tests.engine.fakes import run_context
from tests.engine.models.family import Family, called


@pytest.fixture
def family(workspace):
    return Family(DemoChatModel(), workspace, choose_sandbox("auto", allow_host_bash=True, network=False))


async def test_a_request_is_split_into_three_delegations_whose_files_the_answer_quotes(family):
    answer = await family.ask("Compare red pandas, giant pandas and raccoons")
    assert [call.prompt.split(":")[0] for call in family.calls] == ["red pandas", "giant pandas", "raccoons"]
    assert all(family.workspace.read(path.split("`")[0]) for path in answer.split("- `")[1:])
    assert answer.startswith("## Red pandas")
    assert answer.count("| done |") == 3
    assert answer.count("The brief: ") == 3


async def test_different_requests_give_different_briefs_and_the_same_request_the_same(family, workspace):
    await family.ask("Write about bamboo")
    await family.ask("Write about granite")
    await family.ask("Write about bamboo")
    prompts = [call.prompt for call in family.calls]
    assert prompts[:3] == prompts[6:]
    assert not set(prompts[:3]) & set(prompts[3:6])
    assert all("bamboo" in prompt for prompt in prompts[:3])


async def test_chinese_is_planned_worked_and_answered_in_chinese(family):
    answer = await family.ask("请研究上海的茶馆文化")
    assert all("上海的茶馆文化" in call.prompt for call in family.calls)
    assert answer.startswith("## 上海的茶馆文化")
    assert "完成" in answer
    assert "done" not in answer
    assert "写清楚" in family.children[0][0][-2].content


async def test_the_bash_subagent_looks_at_its_file_in_the_shell(family):
    await family.ask("Write about bamboo")
    by_type = {
        call.subagent_type: called(child) for call, (child, _) in zip(family.calls, family.children, strict=True)
    }
    assert by_type == {"general-purpose": ["write_file", "read_file"], "bash": ["write_file", "bash"]}


async def test_only_subagents_that_are_offered_are_called_and_named_ones_first(workspace):
    roster = (RosterEntry(name="general-purpose", description="d"), RosterEntry(name="bash", description="d"))
    family = Family(DemoChatModel(), workspace, roster=roster)
    await family.ask("Let general-purpose write about bamboo")
    assert {call.subagent_type for call in family.calls} == {"general-purpose"}


@pytest.mark.parametrize("words", ["hello", "Hi there!", "你好", "谢谢！"])
async def test_small_talk_is_answered_at_once_by_a_demo_that_says_so(family, words):
    answer = await family.ask(words)
    assert family.calls == []
    assert "demo" in answer or "演示" in answer


async def test_without_delegation_the_lead_does_the_work_itself(family):
    answer = await family.ask("Write about bamboo", delegation_enabled=False)
    assert called(family.thread) == ["write_file", "read_file"]
    assert "notes/bamboo" in answer


async def test_a_follow_up_is_worked_on_afresh(family):
    await family.ask("Write about bamboo")
    answer = await family.ask("Now compare oak, elm and ash")
    assert len(family.calls) == 6
    assert "bamboo" not in answer


async def test_a_failure_can_be_asked_for_and_the_answer_owns_up_to_it(family):
    answer = await family.ask("Write about bamboo (demo: failed)")
    assert [result.status for result in family.results("task")].count("error") == 1
    assert answer.count("| not done |") == 1
    assert answer.count("| done |") == 2


async def test_an_early_end_by_a_limit_can_be_asked_for(family):
    answer = await family.ask("Write about bamboo. demo: cut short")
    reasons = [context.counters.stop_reason for _, context in family.children]
    assert reasons == ["turn_capped", None, None]
    assert answer.count("| cut short |") == 1
    assert "I looked at the folder 9 times" in str(family.children[0][0][-1].text)


async def test_the_lead_itself_can_be_told_to_fail(family):
    with pytest.raises(Exception, match="asked it to"):
        await family.ask("Write about bamboo, demo: lead failed")


async def test_a_slow_reply_can_be_asked_for_and_cancelled(workspace):
    context = run_context(is_subagent=True, workspace=workspace)
    run = drive(build(DemoChatModel(), [], is_subagent=True), [HumanMessage("wood, demo: slow")], context)
    assert isinstance(await anext(run), TextDelta)
    waiting = asyncio.create_task(anext(run))
    await asyncio.wait([waiting], timeout=0.05)
    assert not waiting.done()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    await run.aclose()


async def test_usage_is_reported_and_marked_as_an_estimate(family):
    await family.ask("Write about bamboo")
    usages = [usage_of(message) for message in family.thread if isinstance(message, AIMessage)]
    assert all(usage is not None and usage.estimated and usage.total_tokens for usage in usages)


def test_the_pace_comes_from_the_environment_when_it_is_set(monkeypatch):
    monkeypatch.setenv("DEMO_PACE", "0.5")
    assert DemoChatModel(pace_seconds=0.1).pace_seconds == 0.5
    monkeypatch.delenv("DEMO_PACE")
    assert DemoChatModel(pace_seconds=0.1).pace_seconds == 0.1


async def test_text_without_any_word_is_answered_too(family):
    assert await family.ask("???")
    assert final_text(family.thread)

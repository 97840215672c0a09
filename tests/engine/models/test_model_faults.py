"""What model servers do wrong, over HTTP, through langchain_openai and through the thin model: the same outcome."""

from __future__ import annotations

import asyncio
from contextlib import aclosing

import pytest
from langchain_core.messages import AIMessage, HumanMessage

from engine.agent import Step, Summary, TextDelta, build, drive, final_text, refusal_of_last
from engine.config.schema import ModelConfig
from engine.errors import explain_model_error
from engine.limits import LoopLimit
from engine.models import gate as gates
from engine.models.registry import ModelRegistry
from engine.ports import Pause
from tests.engine.fakes import echo, limits, run_context
from tests.engine.models.test_openai_wire import USES
from tests.scripted_model import Reply, ToolCall

KEY = "sk-test-0123456789abcdef"
GO = (HumanMessage("Go."),)
ECHO = ToolCall(name="echo", arguments={"text": "a"})


@pytest.fixture(autouse=True)
def hasty(monkeypatch):
    """Waits of a millisecond where a server does not ask for longer ones."""
    usual = gates.backoff_seconds
    monkeypatch.setattr(gates, "backoff_seconds", lambda attempt, _first: usual(attempt, 0.001))


@pytest.fixture(params=USES, ids=["openai", "thin"])
def asked(request, scripted_model):
    """Drives a run against the server; gives what was yielded and, when the run failed, the fault."""

    class Asked:
        yielded = ()
        fault = None
        context = None

        async def __call__(self, *, messages=GO, context=None, **model):
            fields = {"name": "gpt", "use": request.param, "model": "m", "api_key": KEY, "base_url": scripted_model.url}
            models = ModelRegistry([ModelConfig(**(fields | model))], {})
            self.context = context or run_context(is_subagent=True)
            agent = build(models.chat_model("gpt"), [echo], is_subagent=True, gate=models.gate("gpt"))
            self.yielded = []
            try:
                async with aclosing(drive(agent, list(messages), self.context)) as parts:
                    async for part in parts:
                        self.yielded.append(part)
            except Exception as error:  # noqa: BLE001 - whatever it raises is what is looked at
                self.fault = explain_model_error(error)
                assert KEY not in self.fault.sentence
            finally:
                await models.aclose()
            return self

        @property
        def messages(self):
            return [message for one in self.yielded if isinstance(one, Step) for message in one.messages]

        @property
        def screen(self):
            """What somebody who follows sees of the reply under way."""
            text = ""
            for one in self.yielded:
                if isinstance(one, TextDelta):
                    text = one.text if one.restarts else text + one.text
            return text

    return Asked()


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504, 529])
async def test_a_status_that_may_pass_is_tried_again(scripted_model, asked, status):
    scripted_model.responder(lambda call: Reply(fail_statuses=(status,)) if call.number == 1 else Reply(text="Done."))
    await asked()
    assert final_text(asked.messages) == "Done."
    assert len(scripted_model.requests) == 2


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (400, "model_bad_request"),
        (401, "model_refused_key"),
        (402, "model_quota_used_up"),
        (403, "model_refused_key"),
        (404, "model_unknown"),
        (422, "model_bad_request"),
    ],
)
async def test_a_status_that_will_not_pass_is_not(scripted_model, asked, status, code):
    scripted_model.replies([Reply(fail_statuses=(status,) * 9)] * 9)
    await asked()
    assert asked.fault.code == code
    assert len(scripted_model.requests) == 1


@pytest.mark.parametrize(("status", "code"), [(429, "model_rate_limited"), (529, "model_server_error")])
async def test_a_fault_that_stays_is_named_after_three_attempts(scripted_model, asked, status, code):
    scripted_model.responder(lambda call: Reply(fail_statuses=(status,)))
    await asked()
    assert asked.fault.code == code
    assert len(scripted_model.requests) == 3
    assert asked.messages == []


async def test_a_used_up_quota_is_no_rush_hour(scripted_model, asked):
    scripted_model.responder(lambda call: Reply(fail_statuses=(429,), fail_code="insufficient_quota"))
    await asked()
    assert asked.fault.code == "model_quota_used_up"
    assert len(scripted_model.requests) == 1


async def test_retry_after_is_obeyed(scripted_model, asked):
    first = Reply(fail_statuses=(429,), retry_after_seconds=0.2)
    scripted_model.responder(lambda call: first if call.number == 1 else Reply(text="Done."))
    await asked()
    one, two = scripted_model.requests
    assert two.started_at - one.started_at >= 0.2


@pytest.mark.parametrize("end", ["cut_after", "close_after", "error_after"])
async def test_an_answer_that_breaks_off_is_asked_for_again_and_shown_once(scripted_model, asked, end):
    scripted_model.responder(lambda call: Reply(tokens=5, **{end: 3}) if call.number == 1 else Reply(tokens=5))
    await asked()
    assert final_text(asked.messages) == asked.screen == "t0 t1 t2 t3 t4 "
    ids = {one.message_id for one in asked.yielded if isinstance(one, TextDelta)}
    assert ids == {asked.messages[-1].id}


@pytest.mark.parametrize(
    ("end", "code"),
    [("cut_after", "model_stream_cut"), ("close_after", "model_stream_cut"), ("error_after", "model_server_error")],
)
async def test_an_answer_that_always_breaks_off_is_a_named_fault_that_keeps_the_last_words(
    scripted_model, asked, end, code
):
    scripted_model.responder(lambda call: Reply(tokens=9, **{end: call.number}))
    await asked()
    assert asked.fault.code == code
    assert asked.screen == "t0 t1 t2 "
    assert asked.messages == []


async def test_a_stalled_answer_is_noticed_and_asked_for_again(scripted_model, asked):
    scripted_model.responder(lambda call: Reply(tokens=5, stall_after=2) if call.number == 1 else Reply(text="Done."))
    await asked(timeout_seconds=1)
    assert final_text(asked.messages) == asked.screen == "Done."
    await scripted_model.until(lambda model: model.requests[0].disconnected_at is not None)


async def test_an_answer_that_always_stalls_is_called_that(scripted_model, asked):
    scripted_model.responder(lambda call: Reply(tokens=5, stall_after=2))
    await asked(timeout_seconds=1, max_retries=0)
    assert asked.fault.code == "model_stalled"
    assert "nothing came for 1 s" in asked.fault.sentence


async def test_an_answer_that_is_no_answer_at_all_is_unreadable(scripted_model, asked):
    scripted_model.responder(lambda call: Reply(garbage=True))
    await asked()
    assert asked.fault.code in ("model_unreadable", "model_stream_cut")


@pytest.mark.parametrize("reply", [Reply(text=""), Reply(text="  \n "), Reply(text="", reasoning="Hm, so …")])
async def test_an_empty_answer_is_asked_for_once_more(scripted_model, asked, reply):
    scripted_model.responder(lambda call: reply if call.number == 1 else Reply(text="Here."))
    await asked()
    assert final_text(asked.messages) == "Here."
    second = scripted_model.requests[1]
    assert "Your last reply was empty" in second.user_text
    assert asked.context.counters.model_calls == 2
    assert asked.context.counters.tokens == sum(one.usage_metadata["total_tokens"] for one in asked.messages)


async def test_an_answer_that_stays_empty_is_none(scripted_model, asked):
    scripted_model.responder(lambda call: Reply(text=""))
    await asked()
    assert len(scripted_model.requests) == 2
    assert final_text(asked.messages) == ""


async def test_a_run_without_a_turn_left_is_not_asked_again(scripted_model, asked):
    scripted_model.responder(lambda call: Reply(text=""))
    await asked(context=run_context(is_subagent=True, limits=limits(max_turns=1)))
    assert len(scripted_model.requests) == 1


async def test_an_answer_that_a_safety_filter_stopped_is_no_success(scripted_model, asked):
    scripted_model.replies([Reply(text="Well, ", finish_reason="content_filter")])
    await asked()
    fault = refusal_of_last(asked.messages)
    assert (fault.code, "safety filter" in fault.sentence) == ("model_refusal", True)
    assert len(scripted_model.requests) == 1


async def test_a_model_that_declines_gave_no_answer(scripted_model, asked, request):
    scripted_model.responder(lambda call: Reply(text="", refusal="I cannot help with that."))
    await asked()
    assert final_text(asked.messages) == ""
    fault = refusal_of_last(asked.messages)
    if "thin" in request.node.callspec.id:
        assert fault.sentence == "The model declined to answer: I cannot help with that."
        assert len(scripted_model.requests) == 1
    else:  # langchain_openai drops these words of a streamed answer, so that it is an empty one
        assert fault is None
        assert len(scripted_model.requests) == 2


async def test_half_a_call_that_was_stopped_for_safety_is_not_run(scripted_model, asked):
    scripted_model.replies([Reply(text="Now", calls=(ECHO,), finish_reason="content_filter")])
    await asked()
    assert [one.type for one in asked.messages] == ["ai"]
    assert asked.messages[0].tool_calls == []
    assert refusal_of_last(asked.messages).code == "model_refusal"


async def test_an_answer_cut_by_the_output_limit_says_so(scripted_model, asked):
    scripted_model.replies([Reply(text="The first half", finish_reason="length")])
    await asked()
    assert final_text(asked.messages).startswith("The first half\n\n[Cut off here")


async def test_arguments_cut_by_the_output_limit_are_not_run(scripted_model, asked):
    cut = Reply(calls=(ECHO,), malformed='{"text": "ab', finish_reason="length")
    scripted_model.responder(lambda call: cut if call.number == 1 else Reply(text="Shorter."))
    await asked()
    assert asked.messages[1].status == "error"
    assert final_text(asked.messages) == "Shorter."


async def test_arguments_that_never_parse_end_by_the_loop_limit(scripted_model, asked):
    scripted_model.responder(lambda call: Reply(calls=(ECHO,), malformed=True))
    await asked(context=run_context(is_subagent=True, limits=limits(loops=LoopLimit())))
    assert len(scripted_model.requests) == 6
    assert asked.context.counters.stop_reason == "loop_capped"


# Too long for the model

LONG = [HumanMessage("first"), *[AIMessage(f"word {n} " * 20) for n in range(30)], HumanMessage("And now?")]
OVERFLOW = Reply(
    fail_statuses=(400,) * 9,
    fail_message="This model's maximum context length is 100 tokens.",
    fail_code="context_length_exceeded",
)


async def test_a_request_that_is_too_long_is_made_once_more_without_its_beginning(scripted_model, asked):
    scripted_model.responder(lambda call: OVERFLOW if call.message_count > 10 else Reply(text="Short enough."))
    await asked(messages=LONG)
    assert final_text(asked.messages) == "Short enough."
    first, second = scripted_model.requests
    assert second.message_count < first.message_count
    assert second.user_text == "And now?"
    (summary,) = [one for one in asked.yielded if isinstance(one, Summary)]
    assert (summary.model, summary.seen) == ("", len(LONG))


async def test_one_that_is_still_too_long_is_a_named_fault(scripted_model, asked):
    scripted_model.responder(lambda call: OVERFLOW)
    await asked(messages=LONG)
    assert asked.fault.code == "model_context_overflow"
    assert len(scripted_model.requests) == 2


async def test_a_single_request_that_is_too_long_cannot_be_shortened(scripted_model, asked):
    scripted_model.responder(lambda call: OVERFLOW)
    await asked(messages=[HumanMessage("x" * 9000)])
    assert asked.fault.code == "model_context_overflow"
    assert len(scripted_model.requests) == 1


async def test_a_long_result_is_cut_when_nothing_else_can_go(scripted_model, asked):
    call = {"type": "tool_call", "id": "c", "name": "echo", "args": {"text": "x"}}
    from langchain_core.messages import ToolMessage

    history = [HumanMessage("Go."), AIMessage("", tool_calls=[call]), ToolMessage("y" * 60_000, tool_call_id="c")]
    scripted_model.responder(lambda call: OVERFLOW if call.body_bytes > 20_000 else Reply(text="Fits."))
    await asked(messages=history)
    assert final_text(asked.messages) == "Fits."
    assert len(history[2].content) == 60_000


# At the same time


async def test_a_model_that_allows_three_calls_at_the_same_time_never_gets_a_fourth(scripted_model, asked):
    scripted_model.responder(lambda call: Reply(text="ok", sleep_seconds=0.02))
    fields = {"name": "gpt", "use": USES[1], "model": "m", "api_key": KEY, "base_url": scripted_model.url}
    models = ModelRegistry([ModelConfig(**fields, max_concurrency=3)], {})
    agent = build(models.chat_model("gpt"), [echo], is_subagent=True, gate=models.gate("gpt"))

    async def one():
        return [part async for part in drive(agent, [HumanMessage("Go.")], run_context(is_subagent=True))]

    answers = await asyncio.gather(*(one() for _ in range(9)))
    await models.aclose()
    assert len(answers) == 9
    assert scripted_model.max_in_flight <= 3


def test_every_reason_to_pause_has_a_word_of_the_platform():
    from runs.statuses import WaitingFor

    assert {WaitingFor(pause.value) for pause in Pause} == {WaitingFor.MODEL, WaitingFor.RETRY}

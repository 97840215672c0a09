"""The web process ends while an answer is being written: workers go on, and whoever followed misses nothing."""

from __future__ import annotations

import json
import re
import signal
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from tests.e2e.house import NAME, House, log_of
from tests.patience import PATIENCE_SECONDS
from tests.scripted_model import scripts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Page

    from tests.scripted_model import ScriptedModel

pytestmark = [pytest.mark.e2e, pytest.mark.workers, pytest.mark.faults]
TOKENS, BEFORE = 300, 60
SLOW = 60_000  # milliseconds; a busy machine starts a web process slowly
_ANSWER = "article.msg.ai .prose:not([hidden])"


def _shows(page: Page, word: str) -> None:
    page.wait_for_function(
        "([answer, word]) => [...document.querySelectorAll(answer)].some(one => one.innerText.includes(word))",
        arg=[_ANSWER, word],
        timeout=SLOW,
    )


def _pieces(lines: Iterator[str], last_id: list[str]) -> Iterator[str]:
    """The texts that a stream of `messages-tuple` adds to the reply; `last_id` holds the newest event's id."""
    event: dict[str, str] = {}
    for line in lines:
        if line:
            name, _colon, value = line.partition(": ")
            event[name] = value
            continue
        last_id[:] = [event.get("id", *last_id)]
        if event.get("event") == "messages":
            chunk: dict[str, Any] = json.loads(event["data"])[0]
            if chunk["type"] == "AIMessageChunk":
                yield chunk["content"]
        event = {}


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_an_answer_is_written_on_without_the_web_process_and_page_and_stream_take_up_where_they_were(
    house: House, page: Page, model: ScriptedModel, number: signal.Signals
):
    key = json.loads(house.manage("apikeys", "create", "--user", NAME, "--scope", "run", "--json"))["key"]
    script_id, prompt = scripts.script({"tokens": TOKENS, "gate": "go", "gate_after": BEFORE})
    thread = house.new_chat(page, prompt)
    _shows(page, f"t{BEFORE - 1}")
    (run,) = {frame["run_id"] for frame in log_of(page, house, thread)}
    address = f"{house.url}/langgraph/threads/{thread}/runs/{run}/stream"
    last_id = [""]
    told: list[str] = []
    with httpx.Client(
        headers={"x-api-key": key}, params={"stream_mode": "messages-tuple"}, timeout=PATIENCE_SECONDS
    ) as client:
        with client.stream("GET", address) as stream:
            pieces = _pieces(stream.iter_lines(), last_id)
            while f"t{BEFORE - 1}" not in "".join(told):
                told.append(next(pieces))
            house.end_web(number)
            model.open_gate("go")
            model.wait_for(lambda model: model.calls_of(script_id)[-1].ended_at is not None)
        house.until_web_answers()
        with client.stream("GET", address, headers={"last-event-id": last_id[0]}) as stream:
            told.extend(_pieces(stream.iter_lines(), last_id))
    whole = [f"t{token}" for token in range(TOKENS)]
    assert "".join(told).split() == whole

    _shows(page, whole[-1])
    page.wait_for_selector("[data-part=strip]", state="hidden", timeout=SLOW)
    assert re.findall(r"t\d+", page.locator(_ANSWER).last.inner_text()) == whole
    frames = log_of(page, house, thread)
    assert [frame["type"] for frame in frames].count("run.ended") == 1
    assert house.ask("[[r.status, r.attempt, r.lost_workers] for r in Run.objects.all()]") == [["success", 1, 0]]

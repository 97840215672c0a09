"""A person, a browser, a lead, three subagents, real workers, a provider package on a scripted HTTP server."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from tests.e2e.house import House, log_of
from tests.scripted_model import scripts

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from tests.scripted_model import ScriptedModel

pytestmark = [pytest.mark.e2e, pytest.mark.workers]
CARD = "article.task"
SLOW = 40_000  # milliseconds; a busy machine starts workers and imports slowly


def _done(page: Page, count: int) -> None:
    page.wait_for_function(
        "count => document.querySelectorAll('article.task[data-status=done]').length === count", arg=count, timeout=SLOW
    )


def _titles(page: Page) -> list[str]:
    return page.locator(f"{CARD} h3").all_inner_texts()


def _final_answer(page: Page) -> str:
    page.wait_for_selector("[data-part=strip]", state="hidden", timeout=SLOW)  # nothing runs any more
    return page.locator("article.msg.ai .prose:not([hidden])").last.inner_text()


@pytest.mark.parametrize(
    ("prompt", "word"),
    [
        ("Plan a small vegetable garden, a rain barrel and a compost heap", "compost"),
        ("比较三种中国茶的产地、口味和价格", "茶"),
    ],
)
def test_three_children_write_files_from_the_prompts_words_and_the_lead_answers_from_them(
    house: House, page: Page, prompt: str, word: str
):
    thread = house.new_chat(page, prompt)
    _done(page, 3)
    answer = _final_answer(page)

    frames = log_of(page, house, thread)
    created = [frame for frame in frames if frame["type"] == "task.created"]
    assert len({frame["prompt"] for frame in created}) == 3
    assert any(word in frame["prompt"] for frame in created)
    written = house.ask("[t.parent_run_id and t.title for t in Thread.objects.filter(parent_run__isnull=False)]")
    assert len(written) == 3
    read = [call for frame in frames for call in frame.get("calls", ()) if call["name"] == "read_file"]
    assert len(read) >= 3
    assert word in answer
    assert all(re.search(re.escape(frame["title"]), " ".join(_titles(page))) for frame in created)


@pytest.mark.faults
def test_a_killed_worker_costs_nothing_and_the_page_shows_what_the_log_says(
    house: House, page: Page, model: ScriptedModel
):
    children = [scripts.append_line(f"line-{number}.txt", gate="all appended") for number in range(3)]
    lead, prompt = scripts.delegate_to(children)
    thread = house.new_chat(page, prompt)
    for child, _ in children:  # each has appended its line and waits for its next reply
        model.wait_for(lambda seen, child=child: len(seen.calls_of(child)) == 2)
    victim = house.ask("Run.objects.filter(depth=1, status='running').first().worker")
    house.kill_worker(victim)
    model.open_gate("all appended")
    _done(page, 3)
    page.wait_for_selector(f"text=ok:{lead}", timeout=SLOW)

    frames = log_of(page, house, thread)
    assert [frame["seq"] for frame in frames] == sorted({frame["seq"] for frame in frames})
    created = [frame for frame in frames if frame["type"] == "task.created"]
    ended = {frame["task"]: frame for frame in frames if frame["type"] == "task.ended"}
    assert set(ended) == {frame["task"] for frame in created}
    for frame in created:
        card = page.locator(CARD).filter(has=page.locator(f"text={frame['title']}"))
        assert card.get_attribute("data-status") == "done"
        assert str(ended[frame["task"]]["result"]) in card.inner_text()
    assert len([frame for frame in frames if frame["type"] == "run.ended"]) == 1
    workspace = house.home / "workspaces" / thread
    lines = [(workspace / f"line-{number}.txt").read_text(encoding="utf-8").splitlines() for number in range(3)]
    assert lines == [[child] for child, _ in children]
    assert house.ask("[r.status for r in Run.objects.all()]") == ["success"] * 4
    assert any(frame.get("worker") == victim for frame in frames if frame["type"] == "task.started")


def test_one_child_can_be_cancelled_and_the_lead_goes_on_with_the_others(
    house: House, page: Page, model: ScriptedModel
):
    stuck, quick = scripts.gated("never"), scripts.instant()
    lead, prompt = scripts.delegate_to([stuck, quick])
    house.new_chat(page, prompt)
    _done(page, 1)
    running = page.locator(f"{CARD}:not([data-status=done])")
    running.get_by_role("button", name=re.compile("Cancel")).first.click()
    page.wait_for_selector(f"{CARD}[data-status=cancelled_by]", timeout=SLOW)
    page.wait_for_selector(f"text=ok:{lead}", timeout=SLOW)


def test_a_message_sent_meanwhile_waits_behind_the_answer_and_can_be_sent_now(
    house: House, page: Page, model: ScriptedModel
):
    _stuck, first = scripts.gated("never")
    house.new_chat(page, first)
    page.wait_for_selector("[data-part=strip]", timeout=SLOW)
    second, prompt = scripts.instant()
    house.send(page, prompt)
    page.wait_for_selector(".msg.user.waiting", timeout=SLOW)
    page.get_by_role("button", name="Send now").click()
    page.wait_for_selector(f"text=ok:{second}", timeout=SLOW)
    assert page.locator(".msg.user.waiting").count() == 0

"""Steering a task, continuing what was stopped, and waiting in line, in a real browser."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from asgiref.sync import sync_to_async
from playwright.async_api import expect

from runs import queue
from runs.event_types import RunEnded, RunStarted, TaskEnded, TaskStarted, TaskSteerRead
from runs.models import Run
from runs.statuses import RunStatus
from tests.web import histories
from tests.web.browsing import opened
from tests.web.log_writer import LogWriter

if TYPE_CHECKING:
    from runs.models import Thread

pytestmark = [pytest.mark.e2e, pytest.mark.django_db(transaction=True)]
CALL = {"id": "c1", "name": "task", "args": {"description": "Read plan A"}}


class Delegation:
    """A lead with one child at work, with the rows that the actions of the page need."""

    def __init__(self, owner: Any, *, status: str = "running") -> None:
        self.log = LogWriter(owner, at=datetime.now(UTC))
        self.lead = self.log.run(attempt=1)
        child_log = LogWriter(owner, at=datetime.now(UTC))
        self.child: Run = child_log.run(
            status=status, root_id=self.lead.pk, parent=self.lead, tool_call_id="c1", depth=1, agent="coder"
        )
        self.log.message(self.lead.pk, {"type": "human", "content": "Compare both plans"})
        self.log.fact(self.lead.pk, RunStarted(attempt=1, worker="w"))
        self.log.message(self.lead.pk, {"type": "ai", "id": "a1", "content": "I ask.", "tool_calls": [CALL]})
        histories.task(self.log, self.lead.pk, "c1", "coder", "Coder", "Read plan A", task=str(self.child.pk))

    @property
    def thread(self) -> Thread:
        return self.log.thread

    def childs_log(self) -> LogWriter:
        """A log for the child's own conversation."""
        log = LogWriter(self.log.thread.owner, at=datetime.now(UTC))
        log.thread.parent_run = self.lead
        log.thread.save()
        leased = queue.add({self.child.pk: datetime.now(UTC) + timedelta(hours=1)})  # a worker has it
        Run.objects.filter(pk=self.child.pk).update(thread=log.thread, queue_id=leased[self.child.pk])
        return log

    def read_again(self, log: LogWriter) -> None:
        """Others have written to its thread meanwhile."""
        log.thread.refresh_from_db()


async def test_a_running_task_is_told_something_and_says_when_it_heard(tab, owner):
    made = await sync_to_async(Delegation)(owner)
    write = sync_to_async(made.log.fact)
    await write(made.lead.pk, TaskStarted(task=str(made.child.pk), attempt=1, worker="w"))
    page = await opened(tab, made.log)
    card = page.locator("article.task")
    await card.get_by_role("button", name="Show details").click()
    box = card.get_by_role("textbox", name="Message to Read plan A")
    await box.fill("Look at <b>2024</b> too")
    await box.press("Enter")
    await expect(card.locator(".steps .said")).to_have_text("lin Look at <b>2024</b> too")
    await expect(card.locator(".steps")).to_contain_text("waits for its next turn")
    await expect(box).to_have_value("")
    (message,) = (await sync_to_async(Run.objects.get)(pk=made.child.pk)).steers
    made.log.thread = await sync_to_async(type(made.thread).objects.get)(pk=made.thread.pk)
    await write(made.lead.pk, TaskSteerRead(task=str(made.child.pk), id=message["id"], turn=4))
    await expect(card.locator(".steps")).to_contain_text("picked up at turn 4")


async def test_one_that_comes_too_late_is_refused_in_words(tab, owner):
    made = await sync_to_async(Delegation)(owner)
    await sync_to_async(made.log.fact)(made.lead.pk, TaskStarted(task=str(made.child.pk), attempt=1, worker="w"))
    page = await opened(tab, made.log)
    card = page.locator("article.task")
    await card.get_by_role("button", name="Show details").click()
    await sync_to_async(Run.objects.filter(pk=made.child.pk).update)(status=RunStatus.SUCCESS)
    box = card.get_by_role("textbox", name="Message to Read plan A")
    await box.fill("too late")
    await box.press("Enter")
    await expect(page.locator("[data-part=tell]")).to_contain_text("It has ended")
    await expect(box).to_have_value("too late")  # nothing a person typed is lost


async def test_a_capped_answer_is_continued_with_the_limit_the_button_names(tab, owner):
    log = await sync_to_async(LogWriter)(owner, at=datetime.now(UTC))
    lead = await sync_to_async(log.run)(attempt=1)
    detail = {"limit": 50, "layer": "runs.max_turns"}
    await sync_to_async(log.message)(lead.pk, {"type": "human", "content": "Compare both plans"})
    await sync_to_async(log.fact)(lead.pk, RunStarted(attempt=1, worker="w"))
    await sync_to_async(log.fact)(
        lead.pk, RunEnded(status="success", stop_reason="turn_capped", detail=detail, model_calls=50)
    )
    await sync_to_async(Run.objects.filter(pk=lead.pk).update)(
        status="success", stop_reason="turn_capped", stop_detail=detail
    )
    page = await opened(tab, log)
    ending = page.locator(".ending")
    await expect(ending).to_contain_text("runs.max_turns")
    await ending.get_by_role("button", name="Continue with 100 turns").click()
    await expect(page.locator(".msg.user p").last).to_have_text("Continue where it stopped")
    newest = await sync_to_async(lambda: Run.objects.latest("created_at"))()
    assert (newest.continues_id, newest.options["raised"]) == (lead.pk, {"max_turns": 100})
    await expect(ending.get_by_role("button")).to_be_hidden()
    await expect(page.locator("[data-part=waiting]")).to_contain_text("No worker is running. Place 1 in line.")


async def test_a_task_that_was_cut_short_offers_to_go_on_and_one_that_is_done_does_not(tab, owner):
    made = await sync_to_async(Delegation)(owner)
    task = str(made.child.pk)
    write = sync_to_async(made.log.fact)
    await write(made.lead.pk, TaskStarted(task=task, attempt=1, worker="w"))
    detail = {"limit": 1_000_000, "layer": "subagents.token_budget.max_tokens"}
    await write(
        made.lead.pk,
        TaskEnded(task=task, status="success", stop_reason="token_capped", detail=detail, result="Half", seconds=9.0),
    )
    page = await opened(tab, made.log)
    button = page.locator("article.task .why").get_by_role("button")
    await expect(button).to_have_text("Continue with 2M tokens")


async def test_stopping_says_what_was_stopped(tab, owner):
    made = await sync_to_async(Delegation)(owner)
    await sync_to_async(Run.objects.filter(pk=made.child.pk).update)(title="Read plan A")
    page = await opened(tab, made.log)
    await page.locator("[data-part=stop-answer]").click()
    await expect(page.locator("[data-part=tell]")).to_have_text("Told to stop: the answer · coder: Read plan A")


async def test_a_subagents_own_page_has_a_line_for_it_as_long_as_it_works(tab, owner):
    made = await sync_to_async(Delegation)(owner)
    log = await sync_to_async(made.childs_log)()
    await sync_to_async(log.fact)(made.child.pk, RunStarted(attempt=1, worker="w"))
    page = await opened(tab, log)
    box = page.get_by_role("textbox", name="Message")
    await box.fill("Look at <b>2024</b> too")
    await box.press("Enter")
    await expect(page.locator("[data-steer]")).to_contain_text("Look at <b>2024</b> too")
    await expect(page.locator("[data-steer]")).to_contain_text("waits for its next turn")
    await expect(box).to_have_value("")
    (message,) = (await sync_to_async(Run.objects.get)(pk=made.child.pk)).steers
    assert message["content"] == "Look at <b>2024</b> too"
    await page.get_by_role("button", name="Cancel").click()
    await expect(page.get_by_role("button", name="Stopping")).to_be_disabled()
    await expect(page.locator("[data-part=tell]")).to_contain_text("Told to stop")
    await sync_to_async(made.read_again)(log)
    await sync_to_async(log.fact)(made.child.pk, RunEnded(status="cancelled", cancelled_by="lin"))
    await expect(box).to_be_hidden()
    await expect(page.locator(".hint")).to_be_visible()

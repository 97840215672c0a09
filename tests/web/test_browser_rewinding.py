"""A conversation that goes back to an earlier point, on a page that is open and on one that is opened later."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
from asgiref.sync import sync_to_async
from playwright.async_api import expect

from runs.event_types import RunEnded, RunStarted
from runs.lifecycle import Rewind, commit_one
from runs.lifecycle.rewinding import NO_RUN
from runs.models import Thread
from tests.web.browsing import opened
from tests.web.log_writer import LogWriter

if TYPE_CHECKING:
    from uuid import UUID

pytestmark = [pytest.mark.e2e, pytest.mark.django_db(transaction=True)]


def talked(owner: Any) -> tuple[LogWriter, list[int]]:
    """Two questions with their answers, and the numbers of the messages."""
    log = LogWriter(owner, at=datetime.now(UTC))
    seqs = []
    for question, answer in (("Which plan?", "Plan **A**."), ("Are you sure?", "No.")):
        run = log.run(status="success", attempt=1)
        seqs.append(log.message(run.pk, {"type": "human", "content": question}))
        log.fact(run.pk, RunStarted(attempt=1, worker="w"))
        seqs.append(log.message(run.pk, {"type": "ai", "content": answer}))
        log.fact(run.pk, RunEnded(status="success"))
    return log, seqs


def gone_back(thread_id: UUID, owner_id: int, to: int) -> None:
    commit_one(Rewind(thread_id=thread_id, owner_id=owner_id, to=to))


async def test_what_was_left_disappears_and_the_page_says_so_also_when_it_is_opened_later(tab, owner):
    log, seqs = await sync_to_async(talked)(owner)
    page = await opened(tab, log)
    messages = page.locator("article.msg")
    await expect(messages).to_have_count(4)
    await sync_to_async(gone_back)(log.thread.pk, owner.pk, seqs[1])
    await expect(messages).to_have_count(2)
    await expect(page.locator(".evt")).to_have_text("Went on from an earlier point of the conversation")
    log.thread = await sync_to_async(Thread.objects.get)(pk=log.thread.pk)
    await sync_to_async(log.message)(NO_RUN, {"type": "human", "content": "Then plan B?"})
    await expect(messages.last).to_have_text("Then plan B?")
    if folder := os.environ.get("SCREENSHOTS"):
        await page.screenshot(path=f"{folder}/rewound.png")
    await page.reload()
    await expect(messages).to_have_count(3)
    await expect(page.locator("body")).not_to_contain_text("Are you sure?")

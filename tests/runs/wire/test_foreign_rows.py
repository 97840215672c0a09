"""Rows that did not come through this house: what no reader takes is replaced, and hides nothing beside it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING
from uuid import UUID

import pytest
from django.db import DatabaseError, connection, transaction

from runs.event_types import EventType
from runs.models import Event, Message, Run, Thread
from tests.runs.wire.callers import contents, in_database, said, stream_of
from tests.scripted_model import scripts

if TYPE_CHECKING:
    from tests.runs.wire.callers import Caller

pytestmark = pytest.mark.usefixtures("transactional_db", "worker")

HALF = "\\ud83d"  # as it stands in JSON: half of an emoji


def spoil(thread_id: str) -> None:
    """Put halves of characters and NaN where only another program could have put them."""
    messages = Message.objects.filter(thread_id=thread_id)
    newest = messages.order_by("-seq").values_list("seq", flat=True)[0]
    messages.filter(seq=newest).update(data=f'{{"type": "ai", "id": "odd", "content": "half {HALF}", "rate": NaN}}')
    deltas = Event.objects.filter(thread_id=thread_id, type=EventType.DELTA)
    deltas.update(data=f'{{"id": "odd", "text": "piece {HALF}"}}')
    if connection.vendor == "sqlite":  # PostgreSQL's own JSON type refuses such text
        for model in (Thread, Run):
            rows = model.objects.filter(pk=thread_id) if model is Thread else model.objects.filter(thread_id=thread_id)
            for row in rows:
                with connection.cursor() as cursor:
                    statement = f"UPDATE {model._meta.db_table} SET metadata = %s WHERE id = %s"
                    cursor.execute(statement, [f'{{"note{HALF}": "{HALF}"}}', row.pk.hex])


async def test_a_row_that_no_encoder_takes_hides_neither_itself_nor_its_neighbours(anna: Caller):
    thread_id = await anna.thread()
    await anna.sdk.runs.wait(thread_id, "lead_agent", input=said(scripts.says("First.")[1]))
    await in_database(spoil, thread_id)
    for path in ("", "/runs"):
        answer = await anna.http.get(f"/threads/{thread_id}{path}")
        assert answer.status_code == 200, (path, answer.text)
        json.loads(answer.content)
    (run,) = await anna.sdk.runs.list(thread_id)
    parts = await stream_of(anna, f"/threads/{thread_id}/runs/{run['run_id']}", "messages-tuple", "updates", "values")
    assert parts[-1].name == "end"
    assert any("half \ufffd" in str(part.data) for part in parts if part.name == "messages")
    values = await anna.sdk.runs.wait(thread_id, "lead_agent", input=said(scripts.says("Second.")[1]))
    assert contents(values)[-1] == "Second."


async def test_a_number_that_json_cannot_say_is_refused_by_the_database_and_the_list_stays_whole(anna: Caller):
    thread_id = await anna.thread()

    def write() -> None:
        with pytest.raises((DatabaseError, ValueError)), transaction.atomic():
            Thread.objects.filter(pk=UUID(thread_id)).update(metadata={"rate": float("nan")})

    await in_database(write)
    answer = await anna.http.get(f"/threads/{thread_id}")
    assert (answer.status_code, answer.json()["metadata"]) == (200, {})

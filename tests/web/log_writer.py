"""Writes a thread's log as the product stores it, so that pages can be shown any history."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import orjson
from django.contrib.auth import get_user_model
from django.db import transaction

from runs.event_types import EventType, Fact
from runs.models import Event, Message, Run, Thread
from runs.transcript import to_row

START = datetime(2026, 3, 1, 9, 0, tzinfo=UTC)


class LogWriter:
    """Appends to one thread; `at` advances by `seconds` of each entry."""

    def __init__(self, owner: Any, *, title: str = "A conversation", at: datetime = START) -> None:
        self.at = at
        self.thread = Thread.objects.create(owner=owner, title=title, created_at=at, updated_at=at)

    def run(self, *, status: str = "running", **fields: Any) -> Run:
        fields.setdefault("agent", "lead_agent")
        run = Run(thread=self.thread, status=status, created_at=self.at, **fields)
        run.root_id = fields.get("root_id", run.pk)
        run.save()
        return run

    def fact(self, run_id: UUID, fact: Fact, *, seconds: float = 1.0) -> int:
        return self.event(run_id, fact.type, orjson.dumps(fact.payload()).decode(), seconds=seconds)

    def message(self, run_id: UUID, wire: dict[str, Any], *, seconds: float = 1.0) -> int:
        wire = {"id": str(uuid4()), **wire}
        with transaction.atomic():
            seq = self.event(run_id, EventType.MESSAGE, "", seconds=seconds)
            Message.objects.create(thread=self.thread, seq=seq, run_id=run_id, data=to_row(wire))
        return seq

    def event(self, run_id: UUID, kind: str, data: str, *, seconds: float = 1.0) -> int:
        self.at += timedelta(seconds=seconds)
        self.thread.last_seq += 1
        self.thread.updated_at = self.at
        self.thread.save(update_fields=["last_seq", "updated_at"])
        Event.objects.create(
            thread=self.thread, seq=self.thread.last_seq, run_id=run_id, type=str(kind), at=self.at, data=data
        )
        return self.thread.last_seq


def person(name: str, **fields: Any) -> Any:
    """Without a password unless one is given: making one takes longer than most tests."""
    return get_user_model().objects.create_user(name, **fields)

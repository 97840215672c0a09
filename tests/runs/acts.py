"""What workers do to runs, one step at a time, without a worker."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from django.utils import timezone
from django_q.models import OrmQ

from runs.event_types import Delta, EventType
from runs.lifecycle import Ending, Finish, Held, Progress, StartChild, claims, commit_one
from runs.models import Event, Message, Run, Thread, new_id
from runs.statuses import RunStatus
from runs.transcript import load, text_of

if TYPE_CHECKING:
    from uuid import UUID

CARD = {"display_name": "Scout", "max_turns": 50, "timeout_seconds": 1800}


def claim(*, free: int = 10, most: int = 10, workers: int = 1, max_attempts: int = 3, worker: str = "w1") -> Any:
    """What one claim of one worker brings."""
    return claims.claim(
        free=free, most=most, workers=workers, worker=worker, lease_seconds=8, max_attempts=max_attempts
    )


def claimed(run: Run, **choices: Any) -> Held:
    """Claim what waits and give the lease of `run`."""
    return next(one.held for one in claim(**choices).runs if one.run.pk == run.pk)


def lose_lease(*runs: Run | Held) -> None:
    """As if the leases had run out: their worker died."""
    run_ids = [run.run_id if isinstance(run, Held) else run.pk for run in runs]
    held = Run.objects.filter(pk__in=run_ids).values_list("queue_id", flat=True)
    OrmQ.objects.filter(pk__in=list(held)).update(lock=timezone.now() - timedelta(seconds=1))


def ai(text: str) -> dict[str, Any]:
    return {"type": "ai", "id": str(new_id()), "content": text}


def delta(text: str = "piece") -> Delta:
    return Delta(id="m", text=text)


def say(held: Held, text: str) -> None:
    commit_one(Progress(held=held, entries=[ai(text)]))


def finish(held: Held, status: RunStatus = RunStatus.SUCCESS, *, answer: str = "") -> None:
    entries = [ai(answer)] if answer else []
    commit_one(Finish(held=held, ending=Ending(status=status, result=answer), entries=entries))


def child_verb(parent: Held, call_id: str = "call-1", **fields: Any) -> StartChild:
    wanted: dict[str, Any] = {
        "agent": "scout",
        "title": "Find sources",
        "prompt": "Find three sources",
        "definition": {"limits": {"max_turns": 50, "timeout_seconds": 1800}},
        "model": "demo",
        "card": CARD,
    }
    return StartChild(parent=parent, tool_call_id=call_id, **{**wanted, **fields})


def start_child(parent: Held, call_id: str = "call-1", **fields: Any) -> Run:
    child: Run = commit_one(child_verb(parent, call_id, **fields))[0]
    return child


def transcript(thread: Thread | UUID) -> list[str]:
    thread_id = thread.pk if isinstance(thread, Thread) else thread
    return [f"{m['type']}: {text_of(m)}" for m in load([thread_id]).get(thread_id, [])]


def events(thread: Thread, *kinds: EventType) -> list[Event]:
    rows = Event.objects.filter(thread=thread).order_by("seq")
    return list(rows.filter(type__in=kinds) if kinds else rows)


def status(run: Run | Held) -> str:
    return Run.objects.values_list("status", flat=True).get(pk=run.run_id if isinstance(run, Held) else run.pk)


def stored() -> tuple[int, int]:
    """How many events and messages there are: for "nothing was written"."""
    return Event.objects.count(), Message.objects.count()

"""What every edge calls: one verb, keyword arguments, one transaction. Permissions are the edge's business."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from django.db import IntegrityError, transaction
from django.utils.translation import gettext as _

from engine.text import REPLACED, clean, count_replaced
from runs import queue
from runs.errors import BadInput, RunNotFound, ThreadExists, ThreadNotFound
from runs.graphs.asking import OPTION, graph_options
from runs.lifecycle import Cancel, OpenThread, Start, Steer, Verb, commit, commit_one, start_instead
from runs.lifecycle.commit import again_after_deadlock
from runs.models import Run, Thread, new_id
from runs.options import agent_name, clean_options
from runs.statuses import RunStatus
from subagents.leads import DEFAULT_LEAD

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from uuid import UUID

    from django.contrib.auth.models import AbstractBaseUser

    from runs.transcript import WireMessage

LEAD_AGENT = DEFAULT_LEAD
_TITLE_LENGTH = 200
_WHO_LENGTH = 150
_AN_INSTANT = timedelta(microseconds=1)
MAX_TEXT_LENGTH = 200_000  # characters of one message a person or program sends


class MultitaskStrategy(StrEnum):
    """What happens to a message while the thread's run is active."""

    ENQUEUE = "enqueue"
    REJECT = "reject"
    INTERRUPT = "interrupt"
    ROLLBACK = "rollback"  # what the thread is at goes, and all it has said


@dataclass(frozen=True, slots=True)
class Stopped:
    """Something that was told to stop."""

    run_id: UUID
    kind: str  # "answer" of a lead, "task" of a subagent, or "message" that had not had its turn
    agent: str
    title: str  # a task's; empty otherwise


def create_thread(
    *,
    owner: AbstractBaseUser,
    title: str = "",
    thread_id: UUID | None = None,
    metadata: Mapping[str, Any] | None = None,
) -> Thread:
    """Make a thread. Raises ThreadExists when the wanted id is taken, by whomever."""
    wanted = thread_id or new_id()
    try:
        thread: Thread = commit_one(
            OpenThread(owner_id=owner.pk, thread_id=wanted, title=title[:_TITLE_LENGTH], metadata=metadata or {})
        )
    except IntegrityError:
        if thread_id is None:
            raise
        raise ThreadExists(thread_id) from None
    return thread


def user_message(text: str, *, field: str = "text") -> WireMessage:
    """A person's words as a wire message. Raises BadInput for no words or too many."""
    if not isinstance(text, str):
        raise BadInput(field, _("expected text"))
    if not text.strip():
        raise BadInput(field, _("the message is empty"))
    if len(text) > MAX_TEXT_LENGTH:
        said = _("the message has %(count)s characters; at most %(limit)s are allowed")
        raise BadInput(field, said % {"count": f"{len(text):,}", "limit": f"{MAX_TEXT_LENGTH:,}"})
    message: WireMessage = {"type": "human", "id": str(new_id()), "content": text}
    if replaced := count_replaced(text):
        message["additional_kwargs"] = {REPLACED: replaced}
    return message


def start_verb(
    *,
    thread_id: UUID,
    owner_id: int,
    messages: Sequence[WireMessage],
    agent: str | None = None,
    options: Mapping[str, Any] | None = None,
    multitask: MultitaskStrategy = MultitaskStrategy.ENQUEUE,
) -> Start:
    """A checked Start, for callers that commit it themselves. Raises BadInput with the field's path.

    The option `agent_name` goes before `agent`; without either, the thread goes on with the agent it had.
    """
    if not messages:
        raise BadInput("messages", _("there is no message"))
    named = None if agent is None else agent_name(agent, "agent")
    cleaned, clamped = clean_options({} if options is None else options)
    return Start(
        thread_id=thread_id,
        owner_id=owner_id,
        agent=cleaned.get("agent_name", named),
        messages=messages,
        options=cleaned,
        metadata={"clamped": clamped} if clamped else {},
        reject=multitask == MultitaskStrategy.REJECT,
    )


def graph_start_verb(
    *,
    thread_id: UUID,
    owner_id: int,
    agent: str,
    messages: Sequence[WireMessage],
    graph: Mapping[str, Any],
    options: Mapping[str, Any] | None = None,
    multitask: MultitaskStrategy = MultitaskStrategy.ENQUEUE,
) -> Start:
    """A checked Start of a run of a graph: it may come without a message. `graph`: see runs.graphs.asking."""
    cleaned, clamped = clean_options(options or {})
    return Start(
        thread_id=thread_id,
        owner_id=owner_id,
        agent=agent,
        messages=messages,
        options={**cleaned, OPTION: graph_options(graph)},
        metadata={"clamped": clamped} if clamped else {},
        reject=multitask == MultitaskStrategy.REJECT,
    )


def start_run(
    *,
    thread: Thread,
    text: str,
    agent: str | None = None,
    options: Mapping[str, Any] | None = None,
    multitask: MultitaskStrategy = MultitaskStrategy.ENQUEUE,
) -> Run:
    """Record a message, a pending run and its queue row, all or nothing.

    Behind an active run it waits for its turn (`enqueue`), is refused with ThreadBusy (`reject`), interrupts it, or
    takes its place (`rollback`).
    """
    start = start_verb(
        thread_id=thread.pk,
        owner_id=thread.owner_id,
        messages=[user_message(text)],
        agent=agent,
        options=options,
        multitask=multitask,
    )
    return begin(start, multitask)


def begin(start: Start, multitask: MultitaskStrategy) -> Run:
    """Start a run and do to what its thread is at what the strategy says, at once. Raises what Start raises."""
    if multitask == MultitaskStrategy.ROLLBACK:
        return start_instead(start, by="")
    verbs: list[Verb] = [start]
    if multitask == MultitaskStrategy.INTERRUPT:
        verbs.extend(interrupts(start.thread_id))
    run, *_rest = commit(verbs)
    if isinstance(run, Exception):
        raise run
    started: Run = run
    return started


def interrupts(thread_id: UUID, *, by: str = "", waiting_too: bool = True) -> list[Cancel]:
    """Verbs that end the thread's active run and its unfinished children; what is finished is kept.

    Messages that wait are superseded with it, which keeps their words in the conversation; or left in their places.
    """
    runs = Run.objects.active().filter(thread_id=thread_id).order_by("created_at", "pk")
    if not waiting_too:
        runs = runs.filter(queue_id__isnull=False)
    return [verb for pk in runs.values_list("pk", flat=True) for verb in _cancels(pk, RunStatus.INTERRUPTED, by)]


def _cancels(run_id: UUID, status: RunStatus, by: str) -> list[Cancel]:
    """Verbs for a run and its active children, each with the threads it has to lock."""
    by = clean(by)[:_WHO_LENGTH]
    own = Run.objects.filter(pk=run_id).values_list("pk", "thread_id", "parent__thread_id")
    awaited = Run.objects.active().filter(parent_id=run_id, continues__isnull=True)
    verbs = []
    for pk, thread_id, upper in [*own, *awaited.values_list("pk", "thread_id", "parent__thread_id")]:
        threads = (thread_id,) if upper is None else (thread_id, upper)
        if pk == run_id:
            verbs.append(Cancel(run_id=pk, lock_threads=threads, status=status, by=by))
        else:
            verbs.append(Cancel(run_id=pk, lock_threads=threads, by="parent"))
    return verbs


def cancel_run(*, run_id: UUID, by: str, status: RunStatus = RunStatus.CANCELLED) -> bool:
    """Ask a run and the children it waits for to end. False: it had ended before. Raises RunNotFound.

    The answer comes before the end: the worker that executes the run keeps the partial work and writes the end.
    """
    return run_id in [one.run_id for one in stop_run(run_id=run_id, by=by, status=status)]


def stop_run(*, run_id: UUID, by: str, status: RunStatus = RunStatus.CANCELLED) -> list[Stopped]:
    """As `cancel_run`; says what was told to stop, the run itself first. Nothing: all of it had ended before."""
    verbs = _cancels(run_id, status, by)
    if not verbs:
        raise RunNotFound(run_id)
    return _told(verbs)


def cancel_children(run_id: UUID) -> int:
    """Ask every active child of a run to stop. Returns how many were asked."""
    verbs = [verb for verb in _cancels(run_id, RunStatus.CANCELLED, "parent") if verb.run_id != run_id]
    return sum(result is True for result in commit(verbs)) if verbs else 0


def steer_run(*, run_id: UUID, text: str, by: str) -> UUID:
    """Leave a message for a run that works or is about to: it picks it up before its next model call.

    Returns the message's id; the receipt is an event with that id. Raises NotSteerable, RunNotFound and BadInput.
    """
    message = user_message(text)
    found = Run.objects.filter(pk=run_id).values_list("thread_id", "parent__thread_id").first()
    if found is None:
        raise RunNotFound(run_id)
    threads = tuple(thread_id for thread_id in found if thread_id is not None)
    steered: UUID = commit_one(
        Steer(run_id=run_id, lock_threads=threads, text=str(message["content"]), by=clean(by)[:_WHO_LENGTH])
    )
    return steered


def remove_queued(*, run_id: UUID, by: str) -> bool:
    """Take back a message that still waits for its turn. False: its turn has come, or it has ended."""
    thread_ids = tuple(Run.objects.filter(pk=run_id).values_list("thread_id", flat=True))
    if not thread_ids:
        return False
    who = clean(by)[:_WHO_LENGTH]
    return commit([Cancel(run_id=run_id, lock_threads=thread_ids, by=who, only_waiting=True)]) == [True]


def send_now(*, run_id: UUID, by: str) -> bool:
    """Bring a waiting message to its turn: interrupt what runs, keeping its finished children, and drop no message.

    Only the first in line has its turn next; the others keep their order behind it. False: it no longer waits.
    """
    run = Run.objects.filter(pk=run_id, status=RunStatus.PENDING, queue_id__isnull=True).first()
    if run is None:
        return False
    first = Run.objects.filter(thread_id=run.thread_id, status=RunStatus.PENDING, queue_id__isnull=True)
    head = first.order_by("created_at", "pk").first()
    if head is not None and head.pk != run.pk:
        # created_at is the place in line: going first means being older than whoever was first.
        Run.objects.filter(pk=run.pk, status=RunStatus.PENDING, queue_id__isnull=True).update(
            created_at=head.created_at - _AN_INSTANT
        )
    verbs = interrupts(run.thread_id, by=by, waiting_too=False)
    if verbs:
        commit(verbs)
    return True


def stop_all(*, thread_id: UUID, by: str) -> list[Stopped]:
    """Stop everything of a thread: the running answer, every task below it and the messages that wait.

    Returns what was told to stop, the newest message first and each answer before its tasks.
    """
    if not Thread.objects.filter(pk=thread_id).exists():
        raise ThreadNotFound(thread_id)
    own = list(Run.objects.active().filter(thread_id=thread_id).order_by("-created_at").values_list("pk", flat=True))
    verbs = [verb for pk in own for verb in _cancels(pk, RunStatus.CANCELLED, by)]
    known = {verb.run_id for verb in verbs}
    # A continued task is nobody's child in waiting: its lead has ended, or goes on without it.
    continued = Run.objects.active().filter(parent__thread_id=thread_id, continues__isnull=False).exclude(pk__in=known)
    for pk in continued.values_list("pk", flat=True):
        verbs.extend(_cancels(pk, RunStatus.CANCELLED, by))
    return _told(verbs)


def _told(verbs: Sequence[Cancel]) -> list[Stopped]:
    """Commit cancels; what they reached."""
    asked = commit(verbs) if verbs else []
    run_ids = [verb.run_id for verb, answer in zip(verbs, asked, strict=True) if answer is True]
    runs = Run.objects.only("agent", "title", "depth", "attempt", "started_at").in_bulk(run_ids)
    kinds = {pk: "task" if run.depth else "answer" if run.attempt else "message" for pk, run in runs.items()}
    return [Stopped(pk, kinds[pk], runs[pk].agent, runs[pk].title) for pk in run_ids if pk in runs]


def checked_title(title: Any) -> str:
    """A thread's title on one line, in 1 to 200 characters. Raises BadInput."""
    if not isinstance(title, str):
        raise BadInput("title", _("expected text"))
    title = " ".join(clean(title).split())
    if not title:
        raise BadInput("title", _("the title is empty"))
    if len(title) > _TITLE_LENGTH:
        said = _("the title has %(count)s characters; at most %(limit)s are allowed")
        raise BadInput("title", said % {"count": len(title), "limit": _TITLE_LENGTH})
    return title


def rename_thread(*, thread_id: UUID, title: str) -> None:
    title = checked_title(title)
    if not Thread.objects.filter(pk=thread_id).update(title=title):
        raise ThreadNotFound(thread_id)


def delete_thread(*, thread_id: UUID, by: str) -> None:
    """Stop the thread's work, then remove it with its children's threads, its log and its workspace."""
    from runs.workspaces import remove_workspace

    stop_all(thread_id=thread_id, by=by)
    again_after_deadlock(lambda: _delete_tree(thread_id))
    remove_workspace(thread_id)


@transaction.atomic
def _delete_tree(thread_id: UUID) -> None:
    # Locked first: a worker that appends between the deletes would leave rows without their thread.
    tree = _tree(thread_id)
    queue.lock(list(Run.objects.active().filter(thread_id__in=tree).values_list("pk", flat=True)))
    locked = Thread.objects.select_for_update().filter(pk__in=tree).order_by("pk")
    thread_ids = list(locked.values_list("pk", flat=True))
    # Without its queue row a worker loses the lease at the next renewal and stops.
    held = Run.objects.filter(thread_id__in=thread_ids, queue_id__isnull=False)
    queue.drop(pk for pk in held.values_list("queue_id", flat=True) if pk is not None)
    Thread.objects.filter(pk__in=thread_ids).delete()


def _tree(thread_id: UUID) -> set[UUID]:
    """A thread and the threads of all runs below it."""
    found, level = {thread_id}, {thread_id}
    while level:
        below = Thread.objects.filter(parent_run__thread_id__in=level).values_list("pk", flat=True)
        level = set(below) - found
        found |= level
    return found

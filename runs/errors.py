"""What this app raises on purpose. Edges translate; nothing else is caught broadly."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from uuid import UUID


class RunsError(Exception):
    """Base of everything this app raises on purpose."""


class ThreadNotFound(RunsError):
    """No such thread, or not one this person may see."""

    def __init__(self, thread_id: UUID) -> None:
        super().__init__(f"no thread {thread_id}")
        self.thread_id = thread_id


class ThreadExists(RunsError):
    """A thread with the wanted id is there already."""

    def __init__(self, thread_id: UUID) -> None:
        super().__init__(f"thread {thread_id} exists already")
        self.thread_id = thread_id


class RunNotFound(RunsError):
    """No such run, or not one this person may see."""

    def __init__(self, run_id: UUID) -> None:
        super().__init__(f"no run {run_id}")
        self.run_id = run_id


class CheckpointNotFound(RunsError):
    """No such step in the thread's history, or one that a rollback took away."""

    def __init__(self, thread_id: UUID) -> None:
        super().__init__(f"thread {thread_id} has no such checkpoint")
        self.thread_id = thread_id


class ThreadBusy(RunsError):
    """The thread already has an active run and the request asked not to wait."""

    def __init__(self, thread_id: UUID) -> None:
        super().__init__(f"thread {thread_id} already has an active run")
        self.thread_id = thread_id


class NotSteerable(RunsError):
    """A message for a running run that cannot reach it. `reason` is one of ended, stopping, waiting."""

    SENTENCES: ClassVar[dict[str, str]] = {
        "ended": "it has ended",
        "stopping": "it is being stopped",
        "waiting": "it has not begun: it waits behind another run of its thread",
    }

    def __init__(self, run_id: UUID, reason: str) -> None:
        super().__init__(f"run {run_id} cannot take a message: {self.SENTENCES[reason]}")
        self.run_id = run_id
        self.reason = reason


class NotContinuable(RunsError):
    """A run that no other run can go on from. `message` says why, a sentence in the language of who asked."""

    def __init__(self, run_id: UUID, message: str) -> None:
        super().__init__(f"run {run_id} cannot be continued: {message}")
        self.run_id = run_id
        self.message = message


class TooManyPending(RunsError):
    """One person has as many runs waiting to be executed as runs.max_pending_per_owner allows."""

    field = "runs.max_pending_per_owner"
    retry_after_seconds = 5

    def __init__(self, limit: int) -> None:
        super().__init__(f"{limit} runs are waiting already; {self.field} allows no more. Wait until some have begun.")
        self.limit = limit


class Steered(RunsError):
    """The run may not end yet: a message came for it that it has not picked up."""


class BadInput(RunsError):
    """Something a caller sent cannot be taken. `field` is its path, `message` a sentence without the path."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(f"{field}: {message}")
        self.field = field
        self.message = message


class Fenced(RunsError):
    """Somebody else holds the run now, or it has ended: write nothing more and end quietly."""


class IllegalMove(RunsError):
    """A status change that the table of moves does not have: a mistake in our own code."""


class DatabaseLost(RunsError):
    """The connection broke while a transaction was under way: whether it was committed is unknown."""

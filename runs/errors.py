"""What this app raises on purpose. Edges translate; nothing else is caught broadly."""

from __future__ import annotations

from typing import TYPE_CHECKING

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


class ThreadBusy(RunsError):
    """The thread already has an active run and the request asked not to wait."""

    def __init__(self, thread_id: UUID) -> None:
        super().__init__(f"thread {thread_id} already has an active run")
        self.thread_id = thread_id


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

"""What all addresses of threads and runs share: who sees what, and how this app's refusals are answered."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

from django.utils.translation import gettext

from access.api.permissions import Need
from access.api.problems import FieldProblem, Problem, pointer
from access.api.views import ApiView
from access.keys import Scope
from runs import models
from runs.errors import (
    BadInput,
    Fenced,
    NotContinuable,
    NotSteerable,
    RunNotFound,
    RunsError,
    ThreadBusy,
    ThreadNotFound,
    TooManyPending,
)
from runs.refusals import in_words

if TYPE_CHECKING:
    from collections.abc import Collection
    from uuid import UUID

READ: Final = Need(Scope.READ)
WORK: Final = Need(Scope.RUN)
ACT_ON_ANY: Final = "runs.change_run"
_CODES: Final[dict[type[RunsError], str]] = {
    TooManyPending: "too_many_pending",
    NotSteerable: "not_steerable",
    NotContinuable: "not_continuable",
    ThreadBusy: "thread_busy",
    ThreadNotFound: "not_found",
    RunNotFound: "not_found",
    Fenced: "not_found",  # deleted while it was asked for
}


class RunsView(ApiView):
    """A thread is its owner's alone. A run's facts are also seen by whoever may see all runs."""

    def problem_of(self, fault: Exception) -> Problem | None:
        if isinstance(fault, BadInput):
            return _invalid(fault)
        code = _CODES.get(type(fault)) if isinstance(fault, RunsError) else None
        if code is None:
            return None
        headers = {"Retry-After": str(fault.retry_after_seconds)} if isinstance(fault, TooManyPending) else None
        said = in_words(cast("RunsError", fault))
        if isinstance(fault, NotSteerable):
            return Problem(code, said, reason=fault.reason)
        return Problem(code, said, headers=headers)

    @property
    def who(self) -> str:
        """The name shown beside what was stopped or said."""
        return str(self.request.user.get_username())

    def own_thread(self, thread_id: UUID) -> models.Thread:
        thread = models.Thread.objects.visible_to(self.request.user).filter(pk=thread_id).first()
        if thread is None:
            raise ThreadNotFound(thread_id)
        return cast("models.Thread", thread)

    def run(self, run_id: UUID) -> models.Run:
        found = models.Run.objects.facts_visible_to(self.request.user).select_related("thread__owner")
        run = found.filter(pk=run_id).first()
        if run is None:
            raise RunNotFound(run_id)
        return cast("models.Run", run)

    def run_to_act_on(self, run_id: UUID, *, by_owner_only: bool = False) -> models.Run:
        """One's own run, or anybody's with the permission. What one does not even see is not found."""
        run = self.run(run_id)
        if run.thread.owner_id == self.request.user.pk:
            return run
        if by_owner_only:
            raise Problem("forbidden", gettext("Only the owner of a conversation says something in it."))
        if not self.request.user.has_perm(ACT_ON_ANY):
            raise Problem("forbidden", gettext("This needs the permission %(name)s.") % {"name": ACT_ON_ANY})
        return run


def _invalid(fault: BadInput) -> Problem:
    said = f"{fault.field}: {fault.message}" if fault.field else fault.message
    return Problem("invalid", said, errors=[FieldProblem(pointer(fault.field), fault.message)])


def body_of(request: Any, known: Collection[str]) -> dict[str, Any]:
    """The object in a request's body. Raises BadInput for another value or a field that nobody would read."""
    body = request.data
    if not isinstance(body, dict):
        raise BadInput("", gettext("The request must be a JSON object."))
    for name in body:
        if name not in known:
            raise BadInput(name[:80], gettext("There is no such field."))
    return body

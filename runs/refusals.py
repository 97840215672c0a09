"""What people are told when something they asked for cannot be done, in the active language, whichever edge says it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.utils.translation import gettext as _

from runs.errors import BadInput, NotContinuable, NotSteerable, RunNotFound, ThreadBusy, ThreadNotFound, TooManyPending

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from runs.errors import RunsError

_NOT_STEERABLE: Mapping[str, Callable[[], str]] = {
    "ended": lambda: _("It has ended; nobody would read this. Continue it, or send the lead a message."),
    "stopping": lambda: _("It is being stopped; nobody would read this."),
    "waiting": lambda: _("It has not begun yet."),
}


def in_words(fault: RunsError) -> str:
    """One sentence; empty for an error that no person caused."""
    match fault:
        case BadInput():
            return fault.message
        case TooManyPending():
            said = _(
                "You have %(limit)s runs waiting already, which is the limit (%(field)s). Wait until some have begun."
            )
            return said % {"limit": f"{fault.limit:,}", "field": fault.field}
        case NotSteerable():
            return _NOT_STEERABLE[fault.reason]()
        case NotContinuable():
            return fault.message
        case ThreadBusy():
            return _("This conversation already has an active run.")
        case ThreadNotFound():
            return _("This conversation does not exist.")
        case RunNotFound():
            return _("This run does not exist.")
    return ""

"""How actions answer a page: JSON, and for a refusal a problem (RFC 9457) with a stable `code` and the field."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from runs.errors import (
    BadInput,
    NotContinuable,
    NotSteerable,
    RunNotFound,
    RunsError,
    ThreadBusy,
    ThreadNotFound,
    TooManyPending,
)
from runs.refusals import in_words
from runs.web.forms import MAX_BODY_BYTES, BodyTooLarge

Arguments = ParamSpec("Arguments")
View = Callable[Concatenate[HttpRequest, Arguments], HttpResponse]


def problem(status: int, code: str, detail: str, *, field: str = "", limit: int | None = None) -> JsonResponse:
    """A refusal. `detail` is a sentence for the person; `field` names what they sent, or the setting of `limit`."""
    content: dict[str, object] = {"status": status, "code": code, "title": code.replace("_", " "), "detail": detail}
    if field:
        content["field"] = field
    if limit is not None:
        content["limit"] = limit
    return JsonResponse(content, status=status, content_type="application/problem+json")


def signed_out() -> JsonResponse:
    return problem(401, "not_signed_in", _("Your session has ended. Sign in again; what you wrote is kept."))


def no_such_thread() -> JsonResponse:
    return problem(404, "thread_not_found", _("This conversation does not exist."))


def too_many_pending(fault: TooManyPending) -> JsonResponse:
    answer = problem(429, "too_many_pending", in_words(fault), field=fault.field, limit=fault.limit)
    answer["Retry-After"] = str(fault.retry_after_seconds)
    return answer


def refusal_of(fault: RunsError) -> JsonResponse | None:
    """The answer to an error of this app; None for one that no person caused."""
    match fault:
        case BadInput():
            return problem(422, "invalid", fault.message, field=fault.field)
        case TooManyPending():
            return too_many_pending(fault)
        case NotSteerable():
            return problem(409, f"run_{fault.reason}", in_words(fault))
        case NotContinuable():
            return problem(409, "not_continuable", in_words(fault))
        case ThreadBusy():
            return problem(409, "thread_busy", in_words(fault))
        case ThreadNotFound():
            return no_such_thread()
        case RunNotFound():
            return problem(404, "run_not_found", in_words(fault))
    return None


def action(view: View[Arguments]) -> View[Arguments]:
    """A POST by a signed-in person, answered in JSON whatever happens that we know of."""

    @require_POST
    @wraps(view)
    def answer(request: HttpRequest, /, *args: Arguments.args, **kwargs: Arguments.kwargs) -> HttpResponse:
        if not request.user.is_authenticated:
            return signed_out()
        try:
            return view(request, *args, **kwargs)
        except BodyTooLarge:
            return problem(413, "too_large", _("This is too large to send."), field="text")
        except RunsError as fault:
            refusal = refusal_of(fault)
            if refusal is None:
                raise
            return refusal

    return answer


def body_of(request: HttpRequest) -> bytes:
    """The request's body. Raises BodyTooLarge before reading one that says it is."""
    length = request.headers.get("Content-Length", "")
    if length.isdigit() and int(length) > MAX_BODY_BYTES:
        raise BodyTooLarge
    body = request.read(MAX_BODY_BYTES + 1)
    if len(body) > MAX_BODY_BYTES:
        raise BodyTooLarge
    return body

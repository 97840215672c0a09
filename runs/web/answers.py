"""How actions answer a page: JSON, and for a refusal a problem (RFC 9457) with a stable `code` and the field."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from runs.errors import BadInput, RunNotFound, ThreadBusy, ThreadNotFound
from runs.web.forms import MAX_BODY_BYTES, BodyTooLarge

Arguments = ParamSpec("Arguments")
View = Callable[Concatenate[HttpRequest, Arguments], HttpResponse]


def problem(status: int, code: str, detail: str, *, field: str = "") -> JsonResponse:
    """A refusal. `detail` is a sentence for the person; `field` names what they sent, when it was one thing."""
    content = {"status": status, "code": code, "title": code.replace("_", " "), "detail": detail}
    if field:
        content["field"] = field
    return JsonResponse(content, status=status, content_type="application/problem+json")


def signed_out() -> JsonResponse:
    return problem(401, "not_signed_in", _("Your session has ended. Sign in again; what you wrote is kept."))


def no_such_thread() -> JsonResponse:
    return problem(404, "thread_not_found", _("This conversation does not exist."))


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
        except BadInput as fault:
            return problem(422, "invalid", fault.message, field=fault.field)
        except ThreadBusy:
            return problem(409, "thread_busy", _("This conversation already has an active run."))
        except ThreadNotFound:
            return no_such_thread()
        except RunNotFound:
            return problem(404, "run_not_found", _("This run does not exist."))

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

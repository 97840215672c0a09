"""Errors of the API, in the one shape of RFC 9457, whatever went wrong and whoever asked."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from django.core.exceptions import PermissionDenied, RequestDataTooBig, SuspiciousOperation
from django.db import InterfaceError, OperationalError
from django.http import Http404, HttpResponse, UnreadablePostError
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from rest_framework import exceptions
from rest_framework.response import Response

from access.api.rendering import SafeJSONRenderer
from access.middleware import request_id

if TYPE_CHECKING:
    from django.http import HttpRequest

logger = logging.getLogger(__name__)

MEDIA_TYPE: Final = "application/problem+json"

# Every code there is, with its status and its title. Codes never change; titles are for people.
CODES: Final[Mapping[str, tuple[int, Any]]] = {
    "invalid_json": (400, _("The body is not JSON")),
    "bad_request": (400, _("The request cannot be understood")),
    "not_authenticated": (401, _("Log in or send an API key")),
    "bad_key": (401, _("The API key is not valid")),
    "csrf_failed": (403, _("The request does not come from a page of this site")),
    "scope_missing": (403, _("The API key lacks a scope")),
    "forbidden": (403, _("You may not do this")),
    "not_found": (404, _("There is no such thing")),
    "method_not_allowed": (405, _("This address does not take this method")),
    "read_only": (409, _("This entry cannot be changed here")),
    "name_taken": (409, _("The name is taken")),
    "thread_busy": (409, _("The conversation already has an active run")),
    "not_steerable": (409, _("The run takes no message any more")),
    "not_continuable": (409, _("The run cannot be continued")),
    "stale_version": (412, _("Somebody else saved it in between")),
    "too_large": (413, _("The body is too large")),
    "unsupported_media_type": (415, _("The body has to be application/json")),
    "invalid": (422, _("Some values break the rules")),
    "idempotency_key_reused": (422, _("The key came with another request before")),
    "if_match_missing": (428, _("Say which version you change")),
    "throttled": (429, _("Too many requests")),
    "too_many_pending": (429, _("Too many of your runs are waiting")),
    "internal": (500, _("Something went wrong on our side")),
    "unavailable": (503, _("This cannot be answered right now")),
}


@dataclass(frozen=True, slots=True)
class FieldProblem:
    """One thing wrong: `pointer` is a JSON pointer into the body, or `?name` for a parameter of the address."""

    pointer: str
    detail: str
    code: str = "invalid"


class Problem(Exception):
    """An answer that is an error. `detail` is a sentence in the caller's language; `more` adds members."""

    def __init__(
        self,
        code: str,
        detail: str = "",
        *,
        errors: Sequence[FieldProblem] = (),
        headers: Mapping[str, str] | None = None,
        **more: object,
    ) -> None:
        super().__init__(code, detail)
        self.code = code
        self.status, self.title = CODES[code]
        self.detail = detail
        self.errors = tuple(errors)
        self.headers = dict(headers or {})
        self.more = more

    def body(self, request: Any) -> dict[str, object]:
        title = str(self.title)
        shown: dict[str, object] = {
            "type": f"urn:problem:{self.code}",
            "title": title,
            "status": self.status,
            "detail": self.detail or title,
            "code": self.code,
            "request_id": request_id(request),
        }
        if self.errors:
            shown["errors"] = [
                {"pointer": error.pointer, "code": error.code, "detail": error.detail} for error in self.errors
            ]
        return shown | self.more


def pointer(path: str) -> str:
    """A JSON pointer (RFC 6901) for a field's path such as `token_budget.max_tokens`; "" for the whole body."""
    return "".join(f"/{step.replace('~', '~0').replace('/', '~1')}" for step in path.split(".")) if path else ""


def exception_handler(fault: Exception, context: Mapping[str, Any]) -> Response:
    """Answer whatever an API view raised. Never None: nothing of an API is ever answered by a page."""
    request = context["request"]
    problem = fault if isinstance(fault, Problem) else _known(fault)
    if problem is None:
        logger.error("request %s failed", request_id(request), exc_info=fault)
        problem = Problem("internal", gettext("The fault is in the log under the request's id."))
    return Response(problem.body(request), status=problem.status, headers=problem.headers, content_type=MEDIA_TYPE)


def plain_answer(request: HttpRequest, problem: Problem) -> HttpResponse:
    """The same answer where no API view was reached."""
    content = SafeJSONRenderer().render(problem.body(request))
    return HttpResponse(content, status=problem.status, content_type=MEDIA_TYPE, headers=problem.headers)


def _known(fault: Exception) -> Problem | None:
    """The problem that an exception of Django or of the REST framework means."""
    if isinstance(fault, exceptions.ValidationError):
        return Problem("invalid", errors=_field_problems(fault.detail, ""))
    if isinstance(fault, exceptions.Throttled):
        wait = max(1, int(fault.wait or 1))
        return Problem(
            "throttled",
            gettext("Try again in %(seconds)d s.") % {"seconds": wait},
            headers={"Retry-After": str(wait)},
        )
    if isinstance(fault, exceptions.MethodNotAllowed):
        return Problem("method_not_allowed", str(fault.detail))
    for kind, code in _BY_KIND:
        if isinstance(fault, kind):
            challenge = {"WWW-Authenticate": "Bearer"} if CODES[code][0] == 401 else None
            return Problem(code, headers=challenge)
    return None


_BY_KIND: Final[tuple[tuple[type[Exception], str], ...]] = (
    (exceptions.NotAuthenticated, "not_authenticated"),
    (exceptions.AuthenticationFailed, "bad_key"),
    (exceptions.PermissionDenied, "forbidden"),
    (exceptions.UnsupportedMediaType, "unsupported_media_type"),
    (exceptions.NotFound, "not_found"),
    (exceptions.ParseError, "invalid_json"),
    (PermissionDenied, "forbidden"),
    (Http404, "not_found"),
    (RequestDataTooBig, "too_large"),
    (UnreadablePostError, "bad_request"),
    (SuspiciousOperation, "bad_request"),
    (OperationalError, "unavailable"),
    (InterfaceError, "unavailable"),
)


def _field_problems(detail: Any, at: str) -> list[FieldProblem]:
    """The leaves of the REST framework's nested details, each with its place."""
    if isinstance(detail, Mapping):
        return [
            found for key, value in detail.items() for found in _field_problems(value, f"{at}.{key}" if at else key)
        ]
    if isinstance(detail, list):
        return [found for value in detail for found in _field_problems(value, at)]
    return [FieldProblem(pointer(at), str(detail), getattr(detail, "code", "invalid"))]

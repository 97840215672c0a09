"""What nobody answered: a problem document below `/api/`, a page everywhere else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.views import defaults

from access.api.problems import Problem, plain_answer

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    return (
        plain_answer(request, Problem("bad_request")) if _of_api(request) else defaults.bad_request(request, exception)
    )


def permission_denied(request: HttpRequest, exception: Exception) -> HttpResponse:
    if _of_api(request):
        return plain_answer(request, Problem("forbidden"))
    return defaults.permission_denied(request, exception)


def page_not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    return (
        plain_answer(request, Problem("not_found")) if _of_api(request) else defaults.page_not_found(request, exception)
    )


def server_error(request: HttpRequest, *_args: Any) -> HttpResponse:
    return plain_answer(request, Problem("internal")) if _of_api(request) else defaults.server_error(request)


def _of_api(request: HttpRequest) -> bool:
    return request.path_info.startswith("/api/")

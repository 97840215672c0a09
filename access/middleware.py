"""Every answer bears an id, which an error repeats, so that a person's report leads to the log line."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

import uuid_utils
from asgiref.sync import iscoroutinefunction, markcoroutinefunction
from django.http import HttpRequest, HttpResponseBase
from django.utils.decorators import sync_and_async_middleware

HEADER: Final = "X-Request-ID"
_ACCEPTABLE: Final = re.compile(r"[A-Za-z0-9._-]{1,64}\Z")

type_get_response = Callable[[HttpRequest], Any]


def request_id(request: Any) -> str:
    """The id of a request; a new one where no middleware has given it any."""
    known: str | None = getattr(request, "request_id", None)
    return known or str(uuid_utils.uuid7())


@sync_and_async_middleware
def give_request_id(get_response: type_get_response) -> type_get_response:
    """Take the id that a proxy gave, when it is one, or make one."""
    if iscoroutinefunction(get_response):

        async def answer(request: HttpRequest) -> HttpResponseBase:
            _note(request)
            return _bear(request, await get_response(request))

        markcoroutinefunction(answer)
        return answer

    def answer_sync(request: HttpRequest) -> HttpResponseBase:
        _note(request)
        return _bear(request, get_response(request))

    return answer_sync


def _note(request: HttpRequest) -> None:
    given = request.headers.get(HEADER, "")
    request.request_id = given if _ACCEPTABLE.match(given) else str(uuid_utils.uuid7())  # type: ignore[attr-defined]


def _bear(request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
    response.headers[HEADER] = request_id(request)
    return response

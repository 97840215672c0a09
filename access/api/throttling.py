"""Callers are held back by scope: reading, running and changing have limits of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.conf import settings
from rest_framework.throttling import BaseThrottle

from access import allowance
from access.api.permissions import need_of

if TYPE_CHECKING:
    from access.allowance import Answer


class ScopeThrottle(BaseThrottle):
    """`settings.API_REQUESTS_PER_MINUTE[scope]` for each key, and for each person's sessions together."""

    def __init__(self) -> None:
        self._answer: Answer | None = None

    def allow_request(self, request: Any, view: Any) -> bool:
        need = need_of(view, request.method)
        if need is None:
            return True
        caller = f"key {request.auth.key_id}" if request.auth is not None else f"user {request.user.pk}"
        limit = settings.API_REQUESTS_PER_MINUTE[need.scope.value]
        self._answer = allowance.take(f"{need.scope.value} {caller}", limit)
        request.allowance = self._answer
        return self._answer.granted

    def wait(self) -> float | None:
        return self._answer.reset_seconds if self._answer else None


def headers_of(answer: Answer) -> dict[str, str]:
    return {
        "RateLimit-Limit": str(answer.limit),
        "RateLimit-Remaining": str(answer.remaining),
        "RateLimit-Reset": str(answer.reset_seconds),
    }

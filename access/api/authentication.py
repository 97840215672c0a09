"""Who asks: a program by its key, a browser by its session."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib.auth import get_user_model
from rest_framework import authentication, exceptions

from access import keys
from access.api.problems import Problem

if TYPE_CHECKING:
    from access.keys import Caller


class KeyAuthentication(authentication.BaseAuthentication):
    """`Authorization: Bearer …` or `x-api-key: …`. `request.auth` is the Caller, `request.user` the key's owner."""

    def authenticate(self, request: Any) -> tuple[Any, Caller] | None:
        key = _key_in(request)
        if not key:
            return None
        caller = keys.authenticate(key)
        # Read again for each request: permissions hold at the moment of use, not when the key was made.
        owner = get_user_model().objects.filter(pk=caller.owner_id, is_active=True).first() if caller else None
        if caller is None or owner is None:
            raise exceptions.AuthenticationFailed
        return owner, caller

    def authenticate_header(self, request: Any) -> str:
        return "Bearer"


class SessionAuthentication(authentication.SessionAuthentication):
    """The browser's session; whatever changes something needs the CSRF token."""

    def enforce_csrf(self, request: Any) -> None:
        try:
            super().enforce_csrf(request)
        except exceptions.PermissionDenied:
            raise Problem("csrf_failed") from None


def _key_in(request: Any) -> str:
    given: str = request.headers.get("x-api-key", "").strip()
    if given:
        return given
    kind, _space, value = request.headers.get("authorization", "").partition(" ")
    return value.strip() if kind.lower() == "bearer" else ""

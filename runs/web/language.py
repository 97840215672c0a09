"""The language of whoever reads a socket: the same cookie and header that choose a page's language."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.http import HttpRequest
from django.utils import translation

if TYPE_CHECKING:
    from collections.abc import Mapping


def language_of(scope: Mapping[str, Any]) -> str:
    """The language code for an ASGI connection whose cookies Channels has read."""
    request = HttpRequest()
    request.COOKIES = dict(scope.get("cookies") or {})
    headers = dict(scope.get("headers") or ())
    request.META["HTTP_ACCEPT_LANGUAGE"] = headers.get(b"accept-language", b"").decode("latin-1")
    return translation.get_language_from_request(request)

"""Keeps an open page current: the page asks whether anything changed, and fetches itself anew when it did."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.http import HttpResponse, JsonResponse
from django.utils.cache import add_never_cache_headers

from subagents import registry
from subagents.errors import ConfigRefused

if TYPE_CHECKING:
    from django.http import HttpRequest

    from subagents.registry import Registry


def context(now: Registry) -> dict[str, Any]:
    """What a page says about itself: the signature of what it shows."""
    return {"signature": now.signature}


def answer(request: HttpRequest) -> HttpResponse:
    """Say 204 while the signature in the address is still the one in force, else the new one.

    The registry is looked at anew: together with the page's own pace a change is seen within two seconds.
    """
    try:
        signature = registry.current(max_age=0).signature
    except ConfigRefused:
        signature = "refused"
    is_same = request.GET.get("signature") == signature
    reply = HttpResponse(status=204) if is_same else JsonResponse({"signature": signature})
    add_never_cache_headers(reply)
    return reply

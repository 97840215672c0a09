"""`Idempotency-Key` on what starts work: done and remembered in one transaction, or neither."""

from __future__ import annotations

import json
from functools import wraps
from typing import TYPE_CHECKING, Any, Final

from django.db import transaction
from django.utils.translation import gettext
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiExample, OpenApiParameter
from rest_framework.response import Response

from access import idempotency
from access.api.problems import Problem
from access.api.rendering import SafeJSONRenderer
from access.errors import BadIdempotencyKey, KeyReused

if TYPE_CHECKING:
    from collections.abc import Callable

HEADER: Final = "Idempotency-Key"
REPLAYED: Final = "Idempotent-Replayed"
IDEMPOTENCY_KEY: Final = OpenApiParameter(
    HEADER,
    OpenApiTypes.STR,
    OpenApiParameter.HEADER,
    description="Any text of yours, 1 to 255 characters. Sent again within a day, the same request gets the same answer"
    " and starts nothing.",
    examples=[OpenApiExample("a key", value="order-4711")],
)
PROBLEMS: Final = ("bad_request", "idempotency_key_reused")


def once(method: Callable[..., Response]) -> Callable[..., Response]:
    """Do what a view's method does at most once for each key. Only what went well is remembered."""

    @wraps(method)
    def answer(view: Any, request: Any, *args: Any, **kwargs: Any) -> Response:
        key = request.headers.get(HEADER)
        if key is None:
            return method(view, request, *args, **kwargs)
        raw = request._request.body  # read before the parser takes the stream
        with transaction.atomic():
            kept = _claim(request, key, raw)
            if kept.status:
                headers = {REPLAYED: "true", **({"Location": kept.location} if kept.location else {})}
                return Response(json.loads(kept.body), status=kept.status, headers=headers)
            response = method(view, request, *args, **kwargs)
            body = SafeJSONRenderer().render(response.data).decode()
            location = response.headers.get("Location", "")
            idempotency.keep(kept, status=response.status_code, body=body, location=location)
        return response

    return answer


def _claim(request: Any, key: str, body: bytes) -> Any:
    try:
        return idempotency.claim(
            owner_id=request.user.pk, key=key, method=request.method, address=request.path, body=body
        )
    except BadIdempotencyKey:
        detail = gettext("An Idempotency-Key has 1 to 255 printable ASCII characters.")
        raise Problem("bad_request", detail) from None
    except KeyReused:
        raise Problem("idempotency_key_reused", gettext("Use a new key for another request.")) from None

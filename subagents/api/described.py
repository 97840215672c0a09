"""Parameters that the operations of both kinds take."""

from __future__ import annotations

from typing import Final

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiExample, OpenApiParameter

IF_MATCH: Final = OpenApiParameter(
    "If-Match",
    OpenApiTypes.STR,
    OpenApiParameter.HEADER,
    required=True,
    description="The ETag that you got when you read it, or `*`.",
    examples=[OpenApiExample("a version", value='"7"')],
)
SOURCE: Final = OpenApiParameter(
    "source",
    OpenApiTypes.STR,
    enum=["builtin", "config", "managed"],
    description="Which entry of this name; without it the one that holds the name.",
)

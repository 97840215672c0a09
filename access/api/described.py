"""How operations are described: summary, parameters, the shapes of body and answer, and an example of each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiExample, OpenApiParameter, OpenApiResponse, extend_schema

if TYPE_CHECKING:
    from collections.abc import Callable

_ETAG: Final = OpenApiParameter(
    "ETag", OpenApiTypes.STR, OpenApiParameter.HEADER, response=[200, 201], description="The version, in quotes."
)


def operation(
    summary: str,
    *,
    answer: Any = None,
    shows: Any = None,
    body: Any = None,
    sends: Any = None,
    status: int = 200,
    parameters: tuple[Any, ...] = (),
    versioned: bool = False,
    **options: Any,
) -> Callable[[Any], Any]:
    """Describe one operation; `shows` and `sends` are the examples of its answer and its body."""
    examples = [] if shows is None else [_example(summary, shows, response_only=True, status_codes=[str(status)])]
    if sends is not None:
        examples.append(_example(summary, sends, request_only=True))
    return extend_schema(  # type: ignore[no-any-return]
        summary=summary,
        request=body,
        responses={status: answer if answer is not None else OpenApiResponse(description="Done.")},
        parameters=[*parameters, *([_ETAG] if versioned else [])],
        examples=examples,
        **options,
    )


def _example(name: str, value: Any, **only: Any) -> OpenApiExample:
    return OpenApiExample(name, value=value, media_type="application/json", **only)

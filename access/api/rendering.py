"""Answers as JSON that every client can read, whatever is stored."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.renderers import JSONRenderer

from engine.text import clean_json

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class SafeJSONRenderer(JSONRenderer):
    """A half of a surrogate pair becomes U+FFFD and NaN null: one bad row must not take the list with it."""

    charset = None

    def render(
        self, data: Any, accepted_media_type: str | None = None, renderer_context: Mapping[str, Any] | None = None
    ) -> bytes:
        return super().render(clean_json(data), accepted_media_type, dict(renderer_context or {}))  # type: ignore[no-any-return]


class AlwaysJSON(BaseContentNegotiation):
    """Answers are JSON whatever `Accept` asks for: a browser's default header must not turn an error into another."""

    def select_parser(self, request: Any, parsers: Sequence[Any]) -> Any:
        kind = request.content_type.partition(";")[0].strip().lower()
        return next((parser for parser in parsers if parser.takes(kind)), None)

    def select_renderer(self, request: Any, renderers: Sequence[Any], format_suffix: str | None = None) -> Any:
        return renderers[0], renderers[0].media_type

"""How the API describes itself: the two ways in, and the errors that every operation may answer with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.urls import get_script_prefix
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.utils import OpenApiExample, OpenApiResponse
from rest_framework import serializers

from access.api.permissions import need_of
from access.api.problems import CODES, MEDIA_TYPE

if TYPE_CHECKING:
    from collections.abc import Iterable

_EVERYWHERE: Final = ("not_authenticated", "bad_key", "scope_missing", "forbidden", "throttled")
PROBLEM_CODES: Final = tuple((code, code) for code in sorted(CODES))
_WHAT_GOES: Final = ("csrf_failed", "invalid_json", "too_large", "unsupported_media_type")


class FieldProblemSerializer(serializers.Serializer):  # type: ignore[type-arg]
    pointer = serializers.CharField(help_text="JSON pointer into the body, or `?name` for a parameter.")
    code = serializers.CharField()
    detail = serializers.CharField()


class ProblemSerializer(serializers.Serializer):  # type: ignore[type-arg]
    """An error in the shape of RFC 9457."""

    type = serializers.CharField()
    title = serializers.CharField(help_text="In the language of `Accept-Language`.")
    status = serializers.IntegerField()
    detail = serializers.CharField(help_text="One sentence, in the language of `Accept-Language`.")
    code = serializers.ChoiceField(choices=PROBLEM_CODES, help_text="Never changes and is never translated.")
    request_id = serializers.CharField(help_text="Also in the header `X-Request-ID`.")
    errors = FieldProblemSerializer(many=True, required=False)


class ApiSchema(AutoSchema):
    """Adds to each operation the errors that come from below its view."""

    def _get_response_bodies(self, direction: Any = "response") -> dict[str, Any]:
        """The view's own answers and errors, each error status with the codes it may carry as examples."""
        bodies: dict[str, Any] = super()._get_response_bodies(direction)
        method = self.method.upper()
        codes = [*_EVERYWHERE] if need_of(self.view, method) else []
        codes += _WHAT_GOES if method in {"POST", "PUT", "PATCH"} and codes else []
        codes += ["csrf_failed"] if method == "DELETE" and codes else []
        codes += getattr(self.view, "problems", {}).get(method, ())
        by_status: dict[int, list[str]] = {}
        for code in dict.fromkeys(codes):
            by_status.setdefault(CODES[code][0], []).append(code)
        for status, found in sorted(by_status.items()):
            bodies[str(status)] = self._get_response_for_code(_described(status, found), str(status), [MEDIA_TYPE])
        return bodies


def _described(status: int, codes: Iterable[str]) -> OpenApiResponse:
    names = list(codes)
    return OpenApiResponse(
        ProblemSerializer,
        description=" ".join(f"`{code}`: {CODES[code][1]}." for code in names),
        examples=[
            OpenApiExample(
                code,
                value={
                    "type": f"urn:problem:{code}",
                    "title": str(CODES[code][1]),
                    "status": status,
                    "detail": str(CODES[code][1]),
                    "code": code,
                    "request_id": "0199a7f2-6a0e-7cc2-8f4e-3a1c5f0f9d10",
                },
                media_type=MEDIA_TYPE,
                status_codes=[str(status)],
                response_only=True,
            )
            for code in names
        ],
    )


class Generator(SchemaGenerator):
    """Names the sub-path below which this site is served, so that "Try it out" reaches it."""

    def get_schema(self, request: Any = None, public: bool = False) -> Any:
        schema = super().get_schema(request=request, public=public)
        if request is not None:
            schema["servers"] = [{"url": get_script_prefix().rstrip("/") or "/"}]
        return schema


class KeyScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    target_class = "access.api.authentication.KeyAuthentication"
    name = ["bearer", "apiKey"]

    def get_security_definition(self, auto_schema: Any) -> Any:
        return [
            {"type": "http", "scheme": "bearer", "description": "An API key, `sa_live_…`."},
            {"type": "apiKey", "in": "header", "name": "x-api-key", "description": "The same key in a header."},
        ]

    def get_security_requirement(self, auto_schema: Any) -> Any:
        return [{name: []} for name in self.name]  # one or the other


class SessionScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    target_class = "access.api.authentication.SessionAuthentication"
    name = "session"

    def get_security_definition(self, auto_schema: Any) -> Any:
        from django.conf import settings

        return {
            "type": "apiKey",
            "in": "cookie",
            "name": settings.SESSION_COOKIE_NAME,
            "description": "The browser's session; changes need the header `X-CSRFToken`.",
        }

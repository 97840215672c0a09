"""The base of every API view, and the answers of addresses that are none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rest_framework.views import APIView

from access.api.problems import Problem, plain_answer
from access.api.throttling import headers_of

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

    from access.api.permissions import Need


class ApiView(APIView):
    """`needs` says what each method takes; `problem_of` turns an app's own exceptions into problems."""

    needs: dict[str, Need] = {}
    http_method_names = ["get", "head", "post", "put", "patch", "delete"]

    def problem_of(self, fault: Exception) -> Problem | None:
        return None

    def handle_exception(self, exc: Exception) -> Any:
        return super().handle_exception(self.problem_of(exc) or exc)

    def finalize_response(self, request: Any, response: Any, *args: Any, **kwargs: Any) -> Any:
        response = super().finalize_response(request, response, *args, **kwargs)
        # What one person may see is nobody else's to keep.
        response.headers.setdefault("Cache-Control", "no-store")
        if allowance := getattr(request, "allowance", None):
            for name, value in headers_of(allowance).items():
                response.headers[name] = value
        return response


def no_such_address(request: HttpRequest, **_path: Any) -> HttpResponse:
    """404 of the API for whatever no route takes."""
    return plain_answer(request, Problem("not_found"))

"""Content security policy by area: the admin skin's Alpine evaluates expressions, nothing else may."""

from __future__ import annotations

from typing import TYPE_CHECKING

from csp.constants import SELF, UNSAFE_EVAL
from csp.middleware import CSPMiddleware, PolicyParts
from django.urls import reverse

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponseBase


class PolicyByArea(CSPMiddleware):
    """The strict policy of settings.CONTENT_SECURITY_POLICY, loosened under the admin only."""

    def get_policy_parts(
        self, request: HttpRequest, response: HttpResponseBase, report_only: bool = False
    ) -> PolicyParts:
        parts = super().get_policy_parts(request, response, report_only)
        if not report_only and request.path.startswith(reverse("admin:index")):
            parts.replace = {"script-src": [SELF, UNSAFE_EVAL]} | (parts.replace or {})
        return parts

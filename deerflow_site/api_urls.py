from __future__ import annotations

from django.urls import include, path, re_path
from drf_spectacular.views import SpectacularJSONAPIView, SpectacularSwaggerSplitView

from access.api.views import no_such_address

urlpatterns = [
    path("v1/", include("subagents.api.urls")),
    path("v1/", include("runs.api.urls")),
    path("schema", SpectacularJSONAPIView.as_view(), name="schema"),
    path("docs", SpectacularSwaggerSplitView.as_view(url_name="schema"), name="api-docs"),
    re_path("", no_such_address),
]

"""WebSocket addresses. The site wraps them in its Origin check and session login."""

from __future__ import annotations

from django.urls import URLPattern, path

from runs.consumers import ThreadConsumer

websocket_urlpatterns: list[URLPattern] = [
    path("ws/threads/<uuid:thread_id>/", ThreadConsumer.as_asgi()),  # type: ignore[arg-type]
]

"""The store in this protocol's shapes: what is not there is an error, and namespaces are a bare list."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runs.agent_protocol import store_views
from runs.agent_protocol.errors import Refused
from runs.agent_protocol.shapes import json_response
from runs.transcript import from_json

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response


async def get_item(request: Request) -> Response:
    answer = await store_views.get_item(request)
    if from_json(bytes(answer.body)) is None:
        raise Refused(404, "not_found", "the store has no such item")
    return answer


async def list_namespaces(request: Request) -> Response:
    answer = await store_views.list_namespaces(request)
    return json_response(from_json(bytes(answer.body))["namespaces"])

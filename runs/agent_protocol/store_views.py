"""The endpoints of the store."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from starlette.responses import Response

from access.keys import Scope
from engine.text import clean
from runs.agent_protocol import store_items
from runs.agent_protocol.access import asked, caller_of, database
from runs.agent_protocol.bodies import an_object, json_body
from runs.agent_protocol.errors import Refused
from runs.agent_protocol.fields import a_count, a_page
from runs.agent_protocol.shapes import json_response
from runs.agent_protocol.store_items import SEPARATOR, Shape, labels_of
from runs.errors import BadInput
from runs.keeping import MAX_TTL_MINUTES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.requests import Request

    from access.keys import Caller
    from runs.agent_protocol.store_items import Namespace
    from runs.models import StoreItem

_MAX_LABELS: Final = 20
_LABEL_LENGTH, _KEY_LENGTH, _NAMESPACE_LENGTH = 200, 300, 1000
_NO = frozenset({"0", "false"})
_CONTROL: Final = frozenset(map(chr, range(32)))


async def put_item(request: Request) -> Response:
    caller = await caller_of(request, Scope.RUN)
    body = await json_body(request)
    namespace, key = _place(body)
    if not isinstance(body.get("value"), dict):
        raise BadInput("value", "expected an object")
    ttl = _ttl(body)
    await database().call(store_items.put_item, caller.owner_id, namespace, key, body["value"], ttl)
    return Response(status_code=204)


async def get_item(request: Request) -> Response:
    """The item, or null: a value that is not there is no error."""
    query = request.query_params
    parts = query.getlist("namespace")
    labels = parts[0].split(".") if len(parts) == 1 and parts[0] else [label for label in parts if label]
    refresh = query.get("refresh_ttl", "").lower() not in _NO

    def found(caller: Caller) -> dict[str, Any] | None:
        namespace, key = _place({"namespace": labels, "key": query.get("key")})
        item = store_items.get_item(caller.owner_id, namespace, key, refresh_ttl=refresh)
        return item_object(item) if item else None

    return json_response(await asked(request, Scope.READ, found))


async def delete_item(request: Request) -> Response:
    caller = await caller_of(request, Scope.RUN)
    namespace, key = _place(await json_body(request))
    await database().call(store_items.delete_item, caller.owner_id, namespace, key)
    return Response(status_code=204)


async def search_items(request: Request) -> Response:
    caller = await caller_of(request, Scope.READ)
    body = await json_body(request)
    prefix, wanted, page = _labels(body, "namespace_prefix"), an_object(body, "filter"), a_page(body)
    store_items.check_filter(wanted)
    refresh = body.get("refresh_ttl") is not False

    def found() -> list[dict[str, Any]]:
        items = store_items.search_items(caller.owner_id, prefix, wanted, page, refresh_ttl=refresh)
        # No index of meanings is kept here, so that a `query` orders nothing.
        return [{**item_object(item), "score": None} for item in items]

    return json_response({"items": await database().call(found)})


async def list_namespaces(request: Request) -> Response:
    caller = await caller_of(request, Scope.READ)
    body = await json_body(request)
    shape = Shape(
        prefix=_labels(body, "prefix"),
        suffix=_labels(body, "suffix"),
        max_depth=a_count(body, "max_depth", _MAX_LABELS, least=1),
    )
    found = await database().call(store_items.list_namespaces, caller.owner_id, shape, a_page(body, limit=100))
    return json_response({"namespaces": found})


def item_object(item: StoreItem) -> dict[str, Any]:
    return {
        "namespace": labels_of(item.namespace),
        "key": item.key,
        "value": item.value,
        "created_at": item.created_at.isoformat(),
        "updated_at": item.updated_at.isoformat(),
    }


def _place(body: Mapping[str, Any]) -> tuple[Namespace, str]:
    namespace = _labels(body, "namespace")
    if not namespace:
        raise Refused(400, "invalid", "Namespace cannot be empty.", field="namespace")
    key = body.get("key")
    if not isinstance(key, str) or not 0 < len(key) <= _KEY_LENGTH:
        raise BadInput("key", f"expected text of 1 to {_KEY_LENGTH} characters")
    return namespace, clean(key)


def _labels(body: Mapping[str, Any], field: str) -> Namespace:
    value = body.get(field)
    if value is None:
        return ()
    if isinstance(value, str):
        value = value.split(".") if value else []
    if not isinstance(value, list) or len(value) > _MAX_LABELS:
        raise BadInput(field, f"expected a list of at most {_MAX_LABELS} labels")
    for place, label in enumerate(value):
        if not isinstance(label, str) or not 0 < len(label) <= _LABEL_LENGTH:
            raise BadInput(f"{field}[{place}]", f"expected text of 1 to {_LABEL_LENGTH} characters")
        if "." in label or not _CONTROL.isdisjoint(label):
            raise BadInput(f"{field}[{place}]", "a label has neither periods nor control characters")
    if len(SEPARATOR.join(value)) >= _NAMESPACE_LENGTH:
        raise BadInput(field, f"it has more than {_NAMESPACE_LENGTH:,} characters")
    return tuple(value)


def _ttl(body: Mapping[str, Any]) -> float | None:
    value = body.get("ttl")
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= MAX_TTL_MINUTES:
        raise BadInput("ttl", f"expected minutes, more than 0 and at most {MAX_TTL_MINUTES:,}")
    return float(value)

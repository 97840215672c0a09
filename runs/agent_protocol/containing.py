"""Rows whose JSON column contains an object: `@>` of PostgreSQL, and the same on SQLite, which has no such thing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson
from django.db import connection

if TYPE_CHECKING:
    from collections.abc import Mapping

    from django.db.models import QuerySet


def containing(found: QuerySet[Any], column: str, wanted: Mapping[str, Any]) -> QuerySet[Any]:
    """Those of `found` whose `column` has every field of `wanted`, objects and lists in it contained likewise."""
    if not wanted:
        return found
    name = f"{connection.ops.quote_name(found.model._meta.db_table)}.{connection.ops.quote_name(column)}"
    text = orjson.dumps(wanted).decode()
    if connection.vendor == "postgresql":
        return found.extra(where=[f"{name} @> %s::jsonb"], params=[text])
    connection.ensure_connection()
    assert connection.connection is not None
    connection.connection.create_function("json_contained", 2, _contained_text, deterministic=True)
    return found.extra(where=[f"json_contained({name}, %s)"], params=[text])


def _contained_text(stored: str, wanted: str) -> bool:
    return contains(orjson.loads(stored), orjson.loads(wanted))


def contains(stored: Any, wanted: Any) -> bool:
    """Whether JSON contains JSON, by the rules of PostgreSQL's `@>`."""
    if isinstance(wanted, dict):
        return isinstance(stored, dict) and all(
            key in stored and contains(stored[key], value) for key, value in wanted.items()
        )
    if isinstance(wanted, list):
        return isinstance(stored, list) and all(any(contains(one, value) for one in stored) for value in wanted)
    if isinstance(wanted, bool) or isinstance(stored, bool):
        return wanted is stored
    return bool(stored == wanted)

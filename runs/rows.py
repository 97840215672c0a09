"""Rows read, added and changed by statements that are built once.

The query builder takes most of the time of a small transaction, and every step of every run is one. These statements
do what `select_for_update().filter(pk__in=…)`, `bulk_create` and `update` would do, with the fields' own conversions.

PostgreSQL takes any number of rows as one JSON parameter: one statement for each shape, which it prepares once,
instead of one for each number of rows.
"""

from __future__ import annotations

import json
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import UUID

import orjson
from django.db import DEFAULT_DB_ALIAS, connection, connections, models

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

Row = TypeVar("Row", bound=models.Model)
_UUIDS = models.UUIDField()
_ROWS_PER_INSERT = 200
_TEXT: frozenset[type[Any]] = frozenset({str, type(None)})
_NUMBER: frozenset[type[Any]] = frozenset({int, type(None)})
# What a database takes just as it is, by the exact class of a field: its own conversion would change nothing.
_TAKEN_AS_IT_IS: dict[type[Any], frozenset[type[Any]]] = {
    models.CharField: _TEXT,
    models.TextField: _TEXT,
    models.BooleanField: frozenset({bool, type(None)}),
    models.IntegerField: _NUMBER,
    models.BigIntegerField: _NUMBER,
    models.PositiveIntegerField: _NUMBER,
    models.PositiveSmallIntegerField: _NUMBER,
}
# And what a JSON parameter takes besides.
_TAKEN_BY_JSON: dict[type[Any], frozenset[type[Any]]] = {
    **_TAKEN_AS_IT_IS,
    models.UUIDField: frozenset({UUID, type(None)}),
    models.ForeignKey: frozenset({UUID, int, type(None)}),
    models.DateTimeField: frozenset({datetime, type(None)}),
    models.JSONField: frozenset({dict, list}),
}
_NOTHING: frozenset[type[Any]] = frozenset()


def as_uuid(value: Any) -> UUID:
    """What a statement of ours returned for a UUID column: SQLite keeps them as text."""
    return value if isinstance(value, UUID) else UUID(value)


def key_of(value: UUID) -> Any:
    """A UUID as a parameter of a statement of ours; the inverse of `as_uuid`."""
    return _UUIDS.get_db_prep_value(value, _here())


def _here() -> Any:
    """This thread's connection itself: each look through Django's proxy costs more than most of what is asked of it."""
    return connections[DEFAULT_DB_ALIAS]


def among(column: str, ids: Sequence[UUID]) -> tuple[str, list[Any]]:
    """The condition that a UUID column has one of these values, and its parameters."""
    if _here().vendor == "postgresql":  # one parameter: one statement, however many there are
        return f"{column} = ANY(%s)", [list(ids)]
    return f"{column} IN ({', '.join(['%s'] * len(ids))})", [key_of(value) for value in ids]


@dataclass(frozen=True, slots=True)
class Wanted:
    """Rows of a model by primary key. Fields named in `left_out` are deferred: read when they are asked for."""

    model: type[models.Model]
    ids: Sequence[Any]
    left_out: tuple[str, ...] = ()


def locked(*wanted: Wanted) -> list[dict[Any, Any]]:
    """Rows by primary key, locked until the transaction ends: model after model, each in the order of its keys."""
    with in_one_go():
        answer = ask(*wanted)
    return answer()


def ask(*wanted: Wanted) -> Callable[[], list[dict[Any, Any]]]:
    """`locked` within a block of `in_one_go`: what this returns gives the rows after the block."""
    cursors = [_ask(one) if one.ids else None for one in wanted]

    def answer() -> list[dict[Any, Any]]:
        return [{} if cursor is None else _rows(one, cursor) for one, cursor in zip(wanted, cursors, strict=True)]

    return answer


def _ask(wanted: Wanted) -> Any:
    here, key = _here(), wanted.model._meta.pk
    ids = [key.get_db_prep_value(value, here) for value in wanted.ids]
    column = here.ops.quote_name(key.column)
    if here.vendor == "postgresql":
        condition, values = f"{column} = ANY(%s) ORDER BY {column} FOR NO KEY UPDATE", [ids]
    else:  # the transaction holds the one write lock
        condition, values = f"{column} IN ({', '.join(['%s'] * len(ids))}) ORDER BY {column}", ids
    cursor = here.cursor()
    cursor.execute(_selection(wanted.model, wanted.left_out) + condition, values)
    return cursor


def _rows(wanted: Wanted, cursor: Any) -> dict[Any, Any]:
    return {row.pk: row for row in _fetched(wanted.model, wanted.left_out, cursor)}


def read(model: type[Row], condition: str, values: Sequence[Any], *, left_out: tuple[str, ...] = ()) -> list[Row]:
    """The rows for which `condition` (SQL) holds; `values` are its parameters as the database takes them."""
    with _here().cursor() as cursor:
        cursor.execute(_selection(model, left_out) + condition, values)
        return _fetched(model, left_out, cursor)


def _fetched(model: type[Row], left_out: tuple[str, ...], cursor: Any) -> list[Row]:
    names, converters = _reading(model, left_out, _here().vendor)
    with cursor:
        found = cursor.fetchall()
    return [model.from_db(DEFAULT_DB_ALIAS, names, _converted(values, converters)) for values in found]


def add(model: type[Row], rows: Sequence[Row], *, unless_there: bool = False) -> None:
    """INSERT new rows that bring all their values, primary key included."""
    if not rows:
        return
    here, fields = _here(), _stored_fields(model)
    if here.vendor == "postgresql":
        records = [{field.column: _for_json(field, row, here) for field in fields} for row in rows]
        with here.cursor() as cursor:
            cursor.execute(_insertion_of_json(model, unless_there), [_to_json(records)])
        return
    for start in range(0, len(rows), _ROWS_PER_INSERT):
        part = rows[start : start + _ROWS_PER_INSERT]
        values = [_for_statement(field, getattr(row, field.attname), here) for row in part for field in fields]
        with here.cursor() as cursor:
            cursor.execute(_insertion(model, len(part), unless_there), values)


class Matched:
    """How many rows updates have matched; to be asked after `in_one_go` has ended."""

    def __init__(self) -> None:
        self._cursors: list[Any] = []

    def add(self, cursor: Any) -> None:
        self._cursors.append(cursor)

    def total(self) -> int:
        return sum(cursor.rowcount for cursor in self._cursors)


@contextmanager
def in_one_go() -> Iterator[Matched]:
    """Send the statements of this block without waiting for the answer to each. What fails is raised at its end.

    What they return may be read afterwards. SQLite has no round trips to save.
    """
    here = _here()
    here.ensure_connection()
    pipeline = here.connection.pipeline() if here.vendor == "postgresql" else nullcontext()
    with here.wrap_database_errors, pipeline:
        yield Matched()


def change(
    model: type[Row],
    rows: Sequence[Row],
    names: Sequence[str],
    *,
    guard_fields: Sequence[str] = (),
    guards: Sequence[tuple[Any, ...]] = (),
    matched: Matched | None = None,
) -> None:
    """UPDATE each row by primary key, only where the guard fields still hold; `matched` counts the rows that did."""
    if not rows:
        return
    here, guards = _here(), guards or [()] * len(rows)
    fields: list[Any] = [model._meta.get_field(name) for name in names]
    conditions: list[Any] = [model._meta.pk, *(model._meta.get_field(name) for name in guard_fields)]
    if here.vendor == "postgresql":
        columns = _columns_of_change(len(fields), len(conditions))
        records = [
            dict(zip(columns, (*(_for_json(f, row, here) for f in fields), row.pk, *guard), strict=True))
            for row, guard in zip(rows, guards, strict=True)
        ]
        statements = [(_update_from_json(model, tuple(names), tuple(guard_fields)), [_to_json(records)])]
    else:
        update = _update(model, tuple(names), tuple(guard_fields))
        statements = [
            (
                update,
                [
                    *(_for_statement(f, getattr(row, f.attname), here) for f in fields),
                    *(f.get_db_prep_value(v, here) for f, v in zip(conditions, (row.pk, *guard), strict=True)),
                ],
            )
            for row, guard in zip(rows, guards, strict=True)
        ]
    for statement, values in statements:
        cursor = here.cursor()
        cursor.execute(statement, values)
        if matched is not None:
            matched.add(cursor)


def take_off_line(thread_id: UUID, at: int, after: int) -> None:
    """The messages past number `after` leave the thread's state with event `at`."""
    _relined("left_at = %s", [at], thread_id, "seq > %s AND seq < %s AND left_at IS NULL", [after, at])


def put_on_line(thread_id: UUID, line: Sequence[tuple[int, int]]) -> None:
    """The messages with numbers in these ranges are part of the thread's state again."""
    for first, last in line:
        _relined("left_at = NULL", [], thread_id, "seq BETWEEN %s AND %s AND left_at IS NOT NULL", [first, last])


def _relined(change: str, new: list[int], thread_id: UUID, which: str, values: list[int]) -> None:
    with _here().cursor() as cursor:
        statement = f"UPDATE runs_message SET {change} WHERE thread_id = %s AND {which}"
        cursor.execute(statement, [*new, key_of(thread_id), *values])


# --- values -------------------------------------------------------------------------------------------------------
def _for_statement(field: Any, value: Any, here: Any) -> Any:
    if type(value) in _TAKEN_AS_IT_IS.get(type(field), _NOTHING):
        return value
    return field.get_db_prep_save(value, here)


def _for_json(field: Any, row: Any, here: Any) -> Any:
    value = getattr(row, field.attname)
    if type(value) in _TAKEN_BY_JSON.get(type(field), _NOTHING):
        return value
    return value if isinstance(field, models.JSONField) else field.get_db_prep_save(value, here)


def _to_json(records: Sequence[dict[str, Any]]) -> str:
    try:
        return orjson.dumps(records, default=str).decode()
    except TypeError:  # whole numbers past 64 bits, keys that are no text
        return json.dumps(records, ensure_ascii=False, default=str)


def _converted(values: Sequence[Any], converters: Sequence[tuple[int, Any, Any]]) -> Sequence[Any]:
    if not converters:
        return values
    here, row = _here(), list(values)
    for place, convert, column in converters:
        row[place] = convert(row[place], column, here)
    return row


# --- statements, each built once ----------------------------------------------------------------------------------
@lru_cache(maxsize=64)
def _stored_fields(model: type[models.Model]) -> list[Any]:
    return [field for field in model._meta.concrete_fields if field.column is not None]


@lru_cache(maxsize=64)
def _selected_fields(model: type[models.Model], left_out: tuple[str, ...]) -> list[Any]:
    return [field for field in _stored_fields(model) if field.name not in left_out]


@lru_cache(maxsize=64)
def _selection(model: type[models.Model], left_out: tuple[str, ...]) -> str:
    quote = connection.ops.quote_name
    columns = ", ".join(quote(field.column) for field in _selected_fields(model, left_out))
    return f"SELECT {columns} FROM {quote(model._meta.db_table)} WHERE "


@lru_cache(maxsize=64)
def _reading(
    model: type[models.Model], left_out: tuple[str, ...], vendor: str
) -> tuple[list[str], list[tuple[int, Any, Any]]]:
    """The fields' names, and (place, conversion, column) for each value that needs one."""
    fields, here = _selected_fields(model, left_out), connections[DEFAULT_DB_ALIAS]
    assert here.vendor == vendor
    columns = [field.get_col(model._meta.db_table) for field in fields]
    converters = [
        (place, convert, column)
        for place, column in enumerate(columns)
        for convert in (*here.ops.get_db_converters(column), *column.get_db_converters(here))
    ]
    return [field.attname for field in fields], converters


@lru_cache(maxsize=512)
def _insertion(model: type[models.Model], count: int, unless_there: bool) -> str:
    row = f"({', '.join(['%s'] * len(_stored_fields(model)))})"
    return f"{_insert_into(model)} VALUES {', '.join([row] * count)}{_on_conflict(unless_there)}"


@lru_cache(maxsize=64)
def _insertion_of_json(model: type[models.Model], unless_there: bool) -> str:
    quote = connection.ops.quote_name
    columns = ", ".join(quote(field.column) for field in _stored_fields(model))
    source = f"json_populate_recordset(NULL::{quote(model._meta.db_table)}, %s::json)"
    return f"{_insert_into(model)} SELECT {columns} FROM {source}{_on_conflict(unless_there)}"


def _insert_into(model: type[models.Model]) -> str:
    quote = connection.ops.quote_name
    columns = ", ".join(quote(field.column) for field in _stored_fields(model))
    return f"INSERT INTO {quote(model._meta.db_table)} ({columns})"


def _on_conflict(unless_there: bool) -> str:
    return " ON CONFLICT DO NOTHING" if unless_there else ""


@lru_cache(maxsize=512)
def _update(model: type[models.Model], names: tuple[str, ...], guard_fields: tuple[str, ...]) -> str:
    meta, quote = model._meta, connection.ops.quote_name
    changes = ", ".join(f"{quote(_field(model, name).column)} = %s" for name in names)
    conditions = [quote(str(meta.pk.column)), *(quote(_field(model, name).column) for name in guard_fields)]
    where = " AND ".join(f"{column} = %s" for column in conditions)
    return f"UPDATE {quote(meta.db_table)} SET {changes} WHERE {where}"


@lru_cache(maxsize=512)
def _update_from_json(model: type[models.Model], names: tuple[str, ...], guard_fields: tuple[str, ...]) -> str:
    quote, table = connection.ops.quote_name, connection.ops.quote_name(model._meta.db_table)
    changed = [_field(model, name) for name in names]
    kept = [model._meta.pk, *(_field(model, name) for name in guard_fields)]
    columns = _columns_of_change(len(changed), len(kept))
    pairs = list(zip((quote(field.column) for field in (*changed, *kept)), columns, strict=True))
    changes = ", ".join(f"{column} = new.{name}" for column, name in pairs[: len(changed)])
    where = " AND ".join(f"{table}.{column} = new.{name}" for column, name in pairs[len(changed) :])
    types = zip(columns, (field.db_type(connection) for field in (*changed, *kept)), strict=True)
    record = ", ".join(f"{name} {kind}" for name, kind in types)
    return f"UPDATE {table} SET {changes} FROM json_to_recordset(%s::json) AS new({record}) WHERE {where}"


@lru_cache(maxsize=64)
def _columns_of_change(changed: int, kept: int) -> list[str]:
    """A field may be changed and be a guard as well, so the new values and the guards have names of their own."""
    return [*(f"v{place}" for place in range(changed)), *(f"k{place}" for place in range(kept))]


def _field(model: type[models.Model], name: str) -> Any:
    return model._meta.get_field(name)

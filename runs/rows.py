"""Rows read, added and changed by statements that are built once.

The query builder takes most of the time of a small transaction, and every step of every run is one. These statements
do what `select_for_update().filter(pk__in=…)`, `bulk_create` and `update` would do, with the fields' own conversions.
"""

from __future__ import annotations

from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import UUID

from django.db import connection, models

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

Row = TypeVar("Row", bound=models.Model)
_UUIDS = models.UUIDField()
_ROWS_PER_INSERT = 200


def as_uuid(value: Any) -> UUID:
    """What a statement of ours returned for a UUID column: SQLite keeps them as text."""
    return value if isinstance(value, UUID) else UUID(value)


def key_of(value: UUID) -> Any:
    """A UUID as a parameter of a statement of ours; the inverse of `as_uuid`."""
    return _UUIDS.get_db_prep_value(value, connection)


@dataclass(frozen=True, slots=True)
class Wanted:
    """Rows of a model by primary key. Fields named in `left_out` are deferred: read when they are asked for."""

    model: type[models.Model]
    ids: Sequence[Any]
    left_out: tuple[str, ...] = ()


def locked(*wanted: Wanted) -> list[dict[Any, Any]]:
    """Rows by primary key, locked until the transaction ends: model after model, each in the order of its keys."""
    with in_one_go():
        answers = [_ask(one) if one.ids else None for one in wanted]
    return [{} if answer is None else _rows(one, answer) for one, answer in zip(wanted, answers, strict=True)]


def _ask(wanted: Wanted) -> Any:
    statement, _fields, _converters = _selection(wanted.model, connection.vendor, len(wanted.ids), wanted.left_out)
    key = wanted.model._meta.pk
    cursor = connection.cursor()
    cursor.execute(statement, [key.get_db_prep_value(value, connection) for value in wanted.ids])
    return cursor


def _rows(wanted: Wanted, cursor: Any) -> dict[Any, Any]:
    _statement, fields, converters = _selection(wanted.model, connection.vendor, len(wanted.ids), wanted.left_out)
    names = [field.attname for field in fields]
    with cursor:
        found = cursor.fetchall()
    rows = (wanted.model.from_db(connection.alias, names, _converted(values, converters)) for values in found)
    return {row.pk: row for row in rows}


def add(model: type[Row], rows: Sequence[Row], *, unless_there: bool = False) -> None:
    """INSERT new rows that bring all their values, primary key included."""
    fields = _stored_fields(model)
    for start in range(0, len(rows), _ROWS_PER_INSERT):
        part = rows[start : start + _ROWS_PER_INSERT]
        values = [f.get_db_prep_save(getattr(row, f.attname), connection) for row in part for f in fields]
        with connection.cursor() as cursor:
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
    connection.ensure_connection()
    pipeline = connection.connection.pipeline() if connection.vendor == "postgresql" else nullcontext()
    with connection.wrap_database_errors, pipeline:
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
    fields: list[Any] = [model._meta.get_field(name) for name in names]
    conditions: list[Any] = [model._meta.pk, *(model._meta.get_field(name) for name in guard_fields)]
    statement = _update(model, tuple(names), tuple(guard_fields))
    for row, guard in zip(rows, guards or [()] * len(rows), strict=True):
        values = [f.get_db_prep_save(getattr(row, f.attname), connection) for f in fields]
        keys = zip(conditions, (row.pk, *guard), strict=True)
        cursor = connection.cursor()
        cursor.execute(statement, [*values, *(f.get_db_prep_value(value, connection) for f, value in keys)])
        if matched is not None:
            matched.add(cursor)


def _stored_fields(model: type[models.Model]) -> list[Any]:
    return [field for field in model._meta.concrete_fields if field.column is not None]


def _converted(values: Sequence[Any], converters: Sequence[tuple[int, Any, Any]]) -> list[Any]:
    row = list(values)
    for place, convert, column in converters:
        row[place] = convert(row[place], column, connection)
    return row


@lru_cache(maxsize=512)
def _selection(
    model: type[models.Model], vendor: str, count: int, left_out: tuple[str, ...]
) -> tuple[str, list[Any], list[tuple[int, Any, Any]]]:
    """The statement, its fields, and (place, conversion, column) for each value that needs one."""
    fields = [field for field in _stored_fields(model) if field.name not in left_out]
    quote = connection.ops.quote_name
    table = quote(model._meta.db_table)
    lock = " FOR NO KEY UPDATE" if vendor == "postgresql" else ""  # SQLite: the transaction holds the one write lock
    key = quote(str(model._meta.pk.column))
    statement = (
        f"SELECT {', '.join(quote(field.column) for field in fields)} FROM {table}"
        f" WHERE {key} IN ({', '.join(['%s'] * count)}) ORDER BY {key}{lock}"
    )
    columns = [field.get_col(table) for field in fields]
    converters = [
        (place, convert, column)
        for place, column in enumerate(columns)
        for convert in (*connection.ops.get_db_converters(column), *column.get_db_converters(connection))
    ]
    return statement, fields, converters


@lru_cache(maxsize=512)
def _insertion(model: type[models.Model], count: int, unless_there: bool) -> str:
    quote, fields = connection.ops.quote_name, _stored_fields(model)
    row = f"({', '.join(['%s'] * len(fields))})"
    columns = ", ".join(quote(field.column) for field in fields)
    conflict = " ON CONFLICT DO NOTHING" if unless_there else ""
    return f"INSERT INTO {quote(model._meta.db_table)} ({columns}) VALUES {', '.join([row] * count)}{conflict}"


@lru_cache(maxsize=512)
def _update(model: type[models.Model], names: tuple[str, ...], guard_fields: tuple[str, ...]) -> str:
    meta, quote = model._meta, connection.ops.quote_name
    changes = ", ".join(f"{quote(_column(model, name))} = %s" for name in names)
    conditions = [quote(str(meta.pk.column)), *(quote(_column(model, name)) for name in guard_fields)]
    where = " AND ".join(f"{column} = %s" for column in conditions)
    return f"UPDATE {quote(meta.db_table)} SET {changes} WHERE {where}"


def _column(model: type[models.Model], name: str) -> str:
    return str(model._meta.get_field(name).column)  # type: ignore[union-attr]

"""Threads of one person by what they are and hold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import orjson

from runs import transcript
from runs.agent_protocol.bodies import a_choice, an_object, some_metadata
from runs.agent_protocol.containing import containing
from runs.agent_protocol.extracting import at_path, some_paths
from runs.agent_protocol.fields import a_page, a_selection, some_ids
from runs.agent_protocol.shapes import error_object, joined_json, thread_fields, values_object
from runs.errors import BadInput
from runs.models import Message, Run, Thread
from runs.statuses import ThreadStatus

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from uuid import UUID

    from django.db.models import QuerySet

    from runs.agent_protocol.extracting import Path
    from runs.agent_protocol.fields import Page

THREAD_FIELDS: Final = (
    "thread_id",
    "created_at",
    "updated_at",
    "state_updated_at",
    "metadata",
    "status",
    "config",
    "interrupts",
    "error",
    "values",
)
_SORTS: Final = {
    "thread_id": "pk",
    "status": "status",
    "created_at": "created_at",
    "updated_at": "updated_at",
    "state_updated_at": "updated_at",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Which threads a request means."""

    metadata: Mapping[str, Any]
    values: Mapping[str, Any]
    status: str
    ids: Sequence[UUID] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """And what it wants to read of them."""

    page: Page
    order: tuple[str, str]
    fields: Sequence[str]
    paths: Mapping[str, Path]

    @property
    def needs_values(self) -> bool:
        return "values" in self.fields or any(path[0] == "values" for path in self.paths.values())


def wanted_threads(body: Mapping[str, Any]) -> Wanted:
    values = an_object(body, "values")
    if "messages" in values:
        raise BadInput("values.messages", "threads are not searched by their messages")
    return Wanted(
        metadata=some_metadata(body),
        values=values,
        status=a_choice(body, "status", [status.value for status in ThreadStatus], ""),
        ids=some_ids(body, "ids"),
    )


def wanted_listing(body: Mapping[str, Any]) -> Listing:
    direction = a_choice(body, "sort_order", ("asc", "desc"), "desc")
    column = _SORTS[a_choice(body, "sort_by", tuple(_SORTS), "created_at")]
    sign = "-" if direction == "desc" else ""
    return Listing(
        page=a_page(body),
        order=(f"{sign}{column}", f"{sign}pk"),
        fields=a_selection(body, THREAD_FIELDS),
        paths=some_paths(body),
    )


def found_threads(wanted: Wanted, owner_id: int) -> QuerySet[Thread]:
    """A person's conversations; the threads of child runs are found by their ids only."""
    found = Thread.objects.filter(owner_id=owner_id)
    found = found.chats() if wanted.ids is None else found.filter(pk__in=wanted.ids)
    if wanted.status:
        found = found.filter(status=wanted.status)
    threads: QuerySet[Thread] = containing(containing(found, "metadata", wanted.metadata), "values", wanted.values)
    return threads


def listed(wanted: Wanted, listing: Listing, owner_id: int) -> tuple[bytes, int]:
    """The wanted page as JSON, and how many there are in all."""
    found = found_threads(wanted, owner_id)
    threads = list(found.order_by(*listing.order)[listing.page.part])
    values = _values_of(threads) if listing.needs_values else {}
    errors = _errors_of(threads)
    objects = [_object(thread, listing, values.get(thread.pk), errors.get(thread.pk)) for thread in threads]
    return b"[" + b",".join(objects) + b"]", found.count()


def _object(thread: Thread, listing: Listing, values: bytes | None, error: dict[str, str] | None) -> bytes:
    whole = thread_fields(thread, error)
    fields = {name: whole[name] for name in listing.fields if name in whole}
    ready = {"values": values or b"null"} if "values" in listing.fields else {}
    if listing.paths:
        known = {**whole, "values": orjson.loads(values) if values and listing.needs_values else None}
        fields["extracted"] = {alias: at_path(known, path) for alias, path in listing.paths.items()}
    return joined_json(fields, ready)


def _values_of(threads: Sequence[Thread]) -> dict[UUID, bytes]:
    rows = Message.objects.filter(thread_id__in=[thread.pk for thread in threads], left_at=None)
    messages: dict[UUID, list[str]] = {}
    for thread_id, data in rows.order_by("thread_id", "seq").values_list("thread_id", "data"):
        messages.setdefault(thread_id, []).append(transcript.readable(data))
    return {
        thread.pk: values_object(messages.get(thread.pk, []), thread.values)
        for thread in threads
        if thread.pk in messages or thread.values
    }


def _errors_of(threads: Sequence[Thread]) -> dict[UUID, dict[str, str] | None]:
    failed = [thread.pk for thread in threads if thread.status == ThreadStatus.ERROR]
    runs = Run.objects.ended().filter(thread_id__in=failed).order_by("ended_at") if failed else ()
    return {run.thread_id: error_object(run) for run in runs}  # the newest comes last

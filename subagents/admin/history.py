"""The history of one definition of either kind: every version, who made it, what changed, and its whole document."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from django.contrib import messages
from django.utils.translation import gettext as _

from subagents import registry, services
from subagents.admin import layout
from subagents.definitions import Source, row_key
from subagents.errors import ConfigRefused

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from django.http import HttpRequest, HttpResponse

    from subagents.admin.base import DefinitionAdmin
    from subagents.models import Revision


@dataclass(frozen=True, slots=True)
class Version:
    """One line of the history; `changed` names the fields that differ from the version before."""

    revision: Revision
    author: str
    changed: tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Line:
    field: str
    label: object
    value: str
    is_changed: bool


def versions(page: DefinitionAdmin, request: HttpRequest, key: str) -> HttpResponse:
    """List the versions of an entry, newest first; also of one that has been deleted."""
    entry, name = _subject(page, key)
    revisions = services.revisions(page.kind, name) if name else []
    if entry is None and not revisions:
        return page.none_such(request)
    context = {
        "original": page.row(entry) if entry else None,
        "entry": entry,
        "key": key,
        "is_managed": name is not None,
        "versions": _versions(revisions, page.labels),
    }
    title = _("History of %(name)s") % {"name": entry.item.title if entry else name}
    return page.render(request, "history.html", context, title=title)


def version(page: DefinitionAdmin, request: HttpRequest, key: str, number: int) -> HttpResponse:
    """Show the whole document of one version."""
    entry, name = _subject(page, key)
    listed = _versions(services.revisions(page.kind, name) if name else [], page.labels)
    at = next((index for index, item in enumerate(listed) if item.revision.number == number), None)
    if at is None:
        messages.warning(request, _("There is no such version."))
        return page.to_list()
    before = listed[at + 1].revision.document if at + 1 < len(listed) else None
    document = listed[at].revision.document if isinstance(listed[at].revision.document, dict) else {}
    may_read = page.may_read_prompts(request)
    raw = str(document.get("unreadable", ""))
    context = {
        "original": page.row(entry) if entry else None,
        "entry": entry,
        "key": key,
        "version": listed[at],
        "lines": () if raw else _lines(page, document, before, shows_prompt=may_read),
        "raw": raw if may_read else "",
        "is_unreadable": bool(raw),
        "prompt": str(document.get("system_prompt", "")) if may_read else "",
        "may_read_prompt": may_read,
        "newer": listed[at - 1].revision.number if at else None,
        "older": listed[at + 1].revision.number if before is not None else None,
    }
    title = _("%(name)s, version %(number)s") % {"name": name, "number": number}
    return page.render(request, "version.html", context, title=title)


def key_of(name: str) -> str:
    """Return the address of the stored definition of this name."""
    return row_key(Source.MANAGED, name)


def name_of(key: str) -> str | None:
    """Return the name of the stored definition that an address is about, whether there is one or not."""
    prefix = f"{Source.MANAGED.value}-"
    name = key.removeprefix(prefix) if key.startswith(prefix) else ""
    return name if name and key_of(name) == key else None


def _subject(page: DefinitionAdmin, key: str) -> tuple[Any, str | None]:
    """Return the entry of an address, and the name whose history it has; None for what has no history here."""
    try:
        entry = page.find(registry.current(), key)
    except ConfigRefused:
        entry = None
    if entry is not None:
        return entry, entry.name if entry.source is Source.MANAGED else None
    return None, name_of(key)


def _versions(revisions: Sequence[Revision], labels: Mapping[str, object]) -> list[Version]:
    """The lines of a history, newest first."""
    with_older: list[Any] = [*revisions, None]
    return [
        Version(revision, layout.author_of(revision), _changed(revision, older, labels))
        for revision, older in pairwise(with_older)
    ]


def _changed(revision: Revision, older: Revision | None, labels: Mapping[str, object]) -> tuple[object, ...]:
    if older is None:
        return ()
    differing = _differing(revision.document, older.document, labels)
    return tuple(labels.get(field, field) for field in differing)


def _differing(document: Any, before: Any, labels: Mapping[str, object]) -> list[str]:
    if not (isinstance(document, dict) and isinstance(before, dict)):
        return []
    fields = dict.fromkeys([*labels, *document, *before])
    return [field for field in fields if document.get(field) != before.get(field)]


def _lines(page: DefinitionAdmin, document: dict[str, Any], before: Any, *, shows_prompt: bool) -> tuple[Line, ...]:
    """Every field of a version's document, with what differs from the version `before`."""
    changed = set(_differing(document, before, page.labels)) if before is not None else set()
    fields = [field for field in dict.fromkeys([*page.labels, *document]) if field in document]
    return tuple(
        Line(
            field=field,
            label=page.labels.get(field, field),
            value=page.in_words(field, document[field], shows_prompt=shows_prompt),
            is_changed=field in changed,
        )
        for field in fields
    )

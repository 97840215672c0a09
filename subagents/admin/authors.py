"""Who wrote what is stored now."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from subagents.models import Revision

if TYPE_CHECKING:
    from collections.abc import Iterable


def authors_of(entries: Iterable[Any], *, kind: str = "subagent") -> dict[str, str]:
    """Return, by name, who wrote the stored version of each entry, in one query.

    Nothing is said of an entry whose version has no revision: somebody changed its file by hand.
    """
    versions = {entry.name: entry.item.version for entry in entries if entry.item.version is not None}
    if not versions:
        return {}
    written = (
        Revision.objects.filter(kind=kind, name__in=versions, version__in=set(versions.values()))
        .order_by("number")
        .values_list("name", "version", "author__username", "author_label")
    )
    return {name: user or label for name, version, user, label in written if versions[name] == version}

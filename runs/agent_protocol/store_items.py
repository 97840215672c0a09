"""What programs keep between threads: values under a namespace and a key, each person's for that person."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

import orjson
from django.db.models import Q
from django.db.models.functions import Left
from django.utils import timezone

from runs.agent_protocol.containing import containing
from runs.errors import BadInput
from runs.models import StoreItem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from django.db.models import QuerySet

    from runs.agent_protocol.fields import Page

MAX_ITEMS: Final = 10_000  # of one person
MAX_VALUE_BYTES: Final = 256 << 10
SEPARATOR: Final = "\x1f"  # follows each label of a namespace in its column
_COMPARISONS: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "$eq": lambda stored, wanted: bool(stored == wanted),
    "$ne": lambda stored, wanted: bool(stored != wanted),
    "$gt": lambda stored, wanted: bool(stored > wanted),
    "$gte": lambda stored, wanted: bool(stored >= wanted),
    "$lt": lambda stored, wanted: bool(stored < wanted),
    "$lte": lambda stored, wanted: bool(stored <= wanted),
}

Namespace = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """Which namespaces are wanted; "*" in `prefix` and `suffix` stands for any label."""

    prefix: Namespace = ()
    suffix: Namespace = ()
    max_depth: int | None = None

    def fits(self, namespace: Namespace) -> bool:
        if len(namespace) < max(len(self.prefix), len(self.suffix)):
            return False
        ends = namespace[len(namespace) - len(self.suffix) :]
        pairs = [*zip(self.prefix, namespace, strict=False), *zip(self.suffix, ends, strict=True)]
        return all(wanted in ("*", label) for wanted, label in pairs)


def put_item(owner_id: int, namespace: Namespace, key: str, value: Mapping[str, Any], ttl: float | None) -> None:
    """Store a value; one that is there is replaced. Raises BadInput for one too large, or too many."""
    if len(orjson.dumps(value)) > MAX_VALUE_BYTES:
        raise BadInput("value", f"it has more than {MAX_VALUE_BYTES:,} bytes as JSON")
    own = StoreItem.objects.filter(owner_id=owner_id)
    column = column_of(namespace)
    if own.count() >= MAX_ITEMS and not own.filter(namespace=column, key=key).exists():
        raise BadInput("key", f"there are {MAX_ITEMS:,} items already; delete some")
    now = timezone.now()
    item = StoreItem(
        owner_id=owner_id,
        namespace=column,
        key=key,
        value=value,
        ttl_minutes=ttl,
        expires_at=now + timedelta(minutes=ttl) if ttl else None,
        created_at=now,
        updated_at=now,
    )
    StoreItem.objects.bulk_create(
        [item],
        update_conflicts=True,
        unique_fields=["owner", "namespace", "key"],
        update_fields=["value", "ttl_minutes", "expires_at", "updated_at"],
    )


def get_item(owner_id: int, namespace: Namespace, key: str, *, refresh_ttl: bool) -> StoreItem | None:
    found = _alive(owner_id).filter(namespace=column_of(namespace), key=key).first()
    if found is not None and refresh_ttl:
        _refresh([found])
    return found


def delete_item(owner_id: int, namespace: Namespace, key: str) -> None:
    StoreItem.objects.filter(owner_id=owner_id, namespace=column_of(namespace), key=key).delete()


def search_items(
    owner_id: int, prefix: Namespace, wanted: Mapping[str, Any], page: Page, *, refresh_ttl: bool
) -> list[StoreItem]:
    """Items below a namespace whose values fit `wanted`: {"field": value} or {"field": {"$gt": value}}."""
    found = _below(prefix, _alive(owner_id)).order_by("namespace", "key")
    plain = {name: value for name, value in wanted.items() if not isinstance(value, dict | list)}
    found = containing(found, "value", plain)
    if len(plain) == len(wanted):
        items = list(found[page.part])
    else:
        rest = {name: value for name, value in wanted.items() if name not in plain}
        fitting = (item for item in found.iterator(chunk_size=200) if _fits(item.value, rest))
        items = _part(fitting, page)
    if refresh_ttl:
        _refresh(items)
    return items


def list_namespaces(owner_id: int, shape: Shape, page: Page) -> list[Namespace]:
    known = _alive(owner_id).order_by("namespace").values_list("namespace", flat=True).distinct()
    fitting = (namespace for namespace in map(labels_of, known) if shape.fits(namespace))
    return sorted(dict.fromkeys(namespace[: shape.max_depth] for namespace in fitting))[page.part]


def prune_expired(now: datetime, dry_run: bool) -> dict[str, int]:
    """Housekeeping: items whose time is over; they have not been shown since."""
    over = StoreItem.objects.filter(expires_at__lte=now)
    return {"stored_items": over.count() if dry_run else over.delete()[0]}


def column_of(namespace: Sequence[str]) -> str:
    return "".join(f"{label}{SEPARATOR}" for label in namespace)


def labels_of(column: str) -> Namespace:
    return tuple(column.split(SEPARATOR)[:-1])


def check_filter(wanted: Mapping[str, Any]) -> None:
    """Raises BadInput for a comparison that does not exist."""
    for name, value in wanted.items():
        for operator in value if isinstance(value, dict) else ():
            if operator.startswith("$") and operator not in _COMPARISONS:
                raise BadInput(f"filter.{name[:80]}", f"expected some of {', '.join(_COMPARISONS)}")


def _below(prefix: Namespace, found: QuerySet[StoreItem]) -> QuerySet[StoreItem]:
    # Not `startswith`: SQLite's LIKE takes capital and small letters for the same.
    column = column_of(prefix)
    return found.alias(head=Left("namespace", len(column))).filter(head=column) if column else found


def _fits(value: Any, wanted: Mapping[str, Any]) -> bool:
    return isinstance(value, dict) and all(name in value and _is(value[name], one) for name, one in wanted.items())


def _is(stored: Any, wanted: Any) -> bool:
    if not isinstance(wanted, dict) or not any(name.startswith("$") for name in wanted):
        return bool(stored == wanted)
    try:
        return all(_COMPARISONS[name](stored, value) for name, value in wanted.items() if name in _COMPARISONS)
    except TypeError:  # a text is neither more nor less than a number
        return False


def _part(found: Iterable[StoreItem], page: Page) -> list[StoreItem]:
    items: list[StoreItem] = []
    for place, item in enumerate(found):
        if place >= page.offset:
            items.append(item)
        if len(items) == page.limit:
            break
    return items


def _alive(owner_id: int) -> QuerySet[StoreItem]:
    return StoreItem.objects.filter(Q(expires_at=None) | Q(expires_at__gt=timezone.now()), owner_id=owner_id)


def _refresh(items: Sequence[StoreItem]) -> None:
    """What is read lives on for as long as it was given."""
    now = timezone.now()
    for item in items:
        if item.ttl_minutes is not None:
            StoreItem.objects.filter(pk=item.pk).update(expires_at=now + timedelta(minutes=item.ttl_minutes))

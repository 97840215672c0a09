"""Parameters of addresses, and lists that are read page by page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.core.exceptions import ValidationError
from django.utils.translation import gettext
from rest_framework import exceptions, serializers
from rest_framework.pagination import CursorPagination

from access.api.problems import FieldProblem, Problem

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.db.models import QuerySet

MOST_PER_PAGE: Final = 200


class CursorQuery(serializers.Serializer):  # type: ignore[type-arg]
    cursor = serializers.CharField(
        required=False, max_length=500, help_text="Opaque: from `next` or `previous` of another page."
    )
    page_size = serializers.IntegerField(min_value=1, max_value=MOST_PER_PAGE, default=50)


class Page(serializers.Serializer):  # type: ignore[type-arg]
    next = serializers.CharField(allow_null=True, help_text="The next page's address; null at the end.")
    previous = serializers.CharField(allow_null=True)


def asked(request: Any, query: type[serializers.Serializer]) -> dict[str, Any]:  # type: ignore[type-arg]
    """The parameters of the address, checked: a mistyped one is refused, as it would otherwise widen the list."""
    form = query(data=request.query_params.dict())
    unknown = [name for name in request.query_params if name not in form.fields]
    errors = [
        FieldProblem(f"?{name[:80]}", gettext("There is no such parameter."), "unknown_parameter") for name in unknown
    ]
    if not form.is_valid():
        errors += [
            FieldProblem(f"?{name}", str(detail), detail.code)
            for name, details in form.errors.items()
            for detail in details
        ]
    if errors:
        raise Problem("invalid", f"{errors[0].pointer}: {errors[0].detail}", errors=errors)
    return dict(form.validated_data)


class _Cursors(CursorPagination):
    """Pages that stay right while rows come and go. A cursor nobody gave out is refused by name."""

    def decode_cursor(self, request: Any) -> Any:
        try:
            return super().decode_cursor(request)
        except exceptions.NotFound:
            raise no_such_cursor() from None


def no_such_cursor() -> Problem:
    detail = gettext("This cursor is none that was given out here.")
    return Problem("invalid", f"?cursor: {detail}", errors=[FieldProblem("?cursor", detail)])


def cursor_page(
    request: Any, rows: QuerySet[Any], *, ordering: str, page_size: int, shape: Callable[[Any], dict[str, Any]]
) -> dict[str, Any]:
    """One page of `rows` in the order of one field, and the addresses of its neighbours."""
    pages = _Cursors()
    pages.ordering, pages.page_size = ordering, page_size
    try:
        found = pages.paginate_queryset(rows, request)
    except (ValidationError, ValueError):
        raise no_such_cursor() from None
    # Relative to the host: what stands in front of us may be reached under another name.
    pages.base_url = request.get_full_path()
    around = {"next": pages.get_next_link(), "previous": pages.get_previous_link()}
    return {**around, "results": [shape(row) for row in found or ()]}

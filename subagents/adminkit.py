"""The one place that names the admin skin: django-unfold where it is installed, Django's own admin otherwise.

Settings decide by leaving `unfold` in INSTALLED_APPS or not (`SUBAGENTS_ADMIN=stock`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

from django.apps import apps
from django.contrib import admin

IS_UNFOLD = apps.is_installed("unfold")

if TYPE_CHECKING or not IS_UNFOLD:
    from django.contrib.admin import ModelAdmin, action
    from django.contrib.admin.views.main import ChangeList

    CHECKBOX_CLASS = "action-select"
else:
    from unfold.admin import ModelAdmin, checkbox
    from unfold.decorators import action
    from unfold.views import ChangeList

    CHECKBOX_CLASS = str(checkbox.attrs["class"])  # of a row's checkbox

__all__ = ["CHECKBOX_CLASS", "IS_UNFOLD", "ChangeList", "ModelAdmin", "action", "display"]

Column = TypeVar("Column", bound=Callable[..., Any])


def display(
    *,
    description: Any = None,
    ordering: str | None = None,
    boolean: bool | None = None,
    empty_value: str | None = None,
    label: Mapping[Any, str] | None = None,
) -> Callable[[Column], Column]:
    """Declare a column in either skin.

    With `label`, which maps values to unfold's colours, the column returns (value, words): unfold shows a
    coloured badge with the words, Django's admin the words.
    """
    common = {"description": description, "ordering": ordering, "boolean": boolean, "empty_value": empty_value}
    if IS_UNFOLD:
        from unfold.decorators import display as unfold_display

        return unfold_display(**common, label=dict(label) if label else None)  # type: ignore[no-any-return]
    declare = admin.display(**common)  # type: ignore[call-overload]
    return lambda column: declare(_words_only(column) if label else column)


def _words_only(column: Column) -> Column:
    @wraps(column)
    def words(*args: Any, **kwargs: Any) -> Any:
        shown = column(*args, **kwargs)
        return shown[1] if isinstance(shown, tuple) else shown

    return words  # type: ignore[return-value]

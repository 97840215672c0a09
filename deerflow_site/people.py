"""Accounts in the admin: an administrator manages people, but makes nobody mightier than themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib.auth.admin import UserAdmin

if TYPE_CHECKING:
    from django.http import HttpRequest


class GuardedUserAdmin(UserAdmin):
    """Only a superuser makes superusers, or changes and deletes one: whoever sets its password has the account."""

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        fields = super().get_readonly_fields(request, obj)
        return fields if request.user.is_superuser else (*fields, "is_superuser")

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return super().has_change_permission(request, obj) and _may_touch(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return super().has_delete_permission(request, obj) and _may_touch(request, obj)


def _may_touch(request: HttpRequest, obj: Any) -> bool:
    return obj is None or request.user.is_superuser or not obj.is_superuser

"""What a caller may do: the key's scope and the person's own permissions, both at the moment of use."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.utils.translation import gettext
from rest_framework.permissions import BasePermission

from access.api.problems import Problem

if TYPE_CHECKING:
    from access.keys import Scope


@dataclass(frozen=True, slots=True)
class Need:
    """What one method of a view needs. `permissions` are Django's, such as `subagents.add_managedsubagent`."""

    scope: Scope
    permissions: tuple[str, ...] = ()


def need_of(view: Any, method: str) -> Need | None:
    needs: dict[str, Need] = getattr(view, "needs", {})
    return needs.get("GET" if method == "HEAD" else method)


class MeetsNeed(BasePermission):
    """A view says in `needs` what each of its methods takes; a method without an entry is refused to everybody."""

    def has_permission(self, request: Any, view: Any) -> bool:
        if not request.user.is_authenticated:
            return False
        need = need_of(view, request.method)
        if need is None:
            # Without a handler it is going to be 405; with one, somebody forgot to say what it needs.
            method = str(request.method).lower()
            return method not in view.http_method_names or not hasattr(view, method)
        if request.auth is not None and not request.auth.may(need.scope):
            raise Problem(
                "scope_missing", gettext("The API key lacks the scope “%(scope)s”.") % {"scope": need.scope.value}
            )
        if missing := [name for name in need.permissions if not request.user.has_perm(name)]:
            raise Problem("forbidden", gettext("This needs the permission %(name)s.") % {"name": missing[0]})
        return True

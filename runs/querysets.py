"""Questions asked of the rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from django.db import models

from runs.statuses import ACTIVE, ENDED

if TYPE_CHECKING:
    from uuid import UUID

    from django.contrib.auth.models import AbstractBaseUser, AnonymousUser


class ThreadQuerySet(models.QuerySet[Any]):
    def visible_to(self, user: AbstractBaseUser | AnonymousUser) -> ThreadQuerySet:
        """The threads this person may see: their own, nobody else's. Unknown or inactive people see none."""
        if not user.is_authenticated or not user.is_active:
            return self.none()
        return self.filter(owner_id=user.pk)

    def chats(self) -> ThreadQuerySet:
        """Conversations with a lead; child runs' threads and those that go with their run are left out."""
        return self.filter(parent_run__isnull=True, temporary=False)


class RunQuerySet(models.QuerySet[Any]):
    def visible_to(self, user: AbstractBaseUser | AnonymousUser) -> RunQuerySet:
        if not user.is_authenticated or not user.is_active:
            return self.none()
        return self.filter(thread__owner_id=user.pk)

    def facts_visible_to(self, user: AbstractBaseUser | AnonymousUser) -> RunQuerySet:
        """The runs whose facts this person may see: their own, or all with the permission. Never what was said."""
        if user.is_active and cast("Any", user).has_perm("runs.view_run"):
            return self.all()
        return self.visible_to(user)

    def active(self) -> RunQuerySet:
        return self.filter(status__in=ACTIVE)

    def ended(self) -> RunQuerySet:
        return self.filter(status__in=ENDED)


class EventQuerySet(models.QuerySet[Any]):
    def after(self, thread_id: UUID, seq: int) -> EventQuerySet:
        return self.filter(thread_id=thread_id, seq__gt=seq).order_by("seq")

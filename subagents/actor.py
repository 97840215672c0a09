"""Who changes a definition, for its history."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser


@dataclass(frozen=True, slots=True, kw_only=True)
class Actor:
    """A person, or what acts without one: `label` is then "command line", "API key build-bot" and the like."""

    user: AbstractBaseUser | None = None
    label: str = ""

    def __str__(self) -> str:
        return self.label or (self.user.get_username() if self.user is not None else "")

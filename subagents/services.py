"""What edges call to change managed definitions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from subagents import registry
from subagents.errors import NameTaken
from subagents.validation import to_plain, validate_definition

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser

    from subagents.definitions import Definition

__all__ = ["delete_managed", "save_managed", "validate_definition"]


def save_managed(definition: Definition, *, expected_version: int | None, user: AbstractBaseUser | None) -> Definition:
    """Create (`expected_version` None) or replace a managed definition and return it as stored.

    Raises InvalidDefinition, NameTaken when a new name is held by any source, StaleVersion when somebody else
    saved in between. An existing definition may be saved while a stronger source shadows it.
    Source: product.md §2.3, §2.4.
    """
    checked = validate_definition(to_plain(definition))
    if expected_version is None:
        holder = registry.current(fresh=True).catalogue.holder(checked.name)
        if holder is not None:
            raise NameTaken(checked.name, holder.source)
    stored = registry.store().put(checked, expected_version=expected_version, user=user)
    registry.forget()
    return stored


def delete_managed(name: str, *, expected_version: int) -> None:
    """Delete a managed definition. Raises SubagentNotFound and StaleVersion."""
    registry.store().delete(name, expected_version=expected_version)
    registry.forget()

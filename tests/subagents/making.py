"""Definitions, gates and known names for tests that need only a few facts of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine.config.reader import read_config
from engine.sandbox.base import Availability
from subagents.catalogue import Catalogue, Invalid, Known, build_catalogue
from subagents.definitions import Definition, Source

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.config.schema import Config

WORKS = Availability(ok=True)
DOES_NOT = Availability(ok=False, reason="Commands cannot be isolated here.")


def definition(name: str, source: Source = Source.MANAGED, **fields: Any) -> Definition:
    texts = {"description": f"Does the work of {name}.", "system_prompt": f"You are {name}."}
    return Definition(name=name, source=source, **(texts | fields))


def builtin(name: str, **fields: Any) -> Definition:
    return definition(name, Source.BUILTIN, **fields)


def from_config(name: str, **fields: Any) -> Definition:
    return definition(name, Source.CONFIG, **fields)


def configured(text: str = "") -> Config:
    """Read a config.yaml that must be accepted."""
    result = read_config(text.encode())
    assert result.config is not None, result.problems
    return result.config


def catalogue(
    *definitions: Definition,
    config: str = "",
    invalid: tuple[Invalid, ...] = (),
    broken_overrides: Mapping[str, tuple[str, ...]] | None = None,
    bash: Availability = WORKS,
    known: Known | None = None,
) -> Catalogue:
    return build_catalogue(
        definitions,
        configured(config),
        invalid=invalid,
        broken_overrides=broken_overrides or {},
        bash=bash,
        known=known or Known(),
    )

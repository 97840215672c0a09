"""Whether a configured model could be used, found out without importing LangChain or its provider."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import find_spec
from typing import TYPE_CHECKING

from engine.config.expand import expand_model

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.config.schema import ModelConfig


@dataclass(frozen=True, slots=True)
class Availability:
    """`reason` is a sentence for the operator, empty when `ok`."""

    ok: bool
    reason: str = ""


AVAILABLE = Availability(True)


def availability_of(model: ModelConfig, environ: Mapping[str, str]) -> Availability:
    """Check what can be checked from outside: variables that are set, a package that is installed.

    Whether `use` names a chat model shows only when it is imported; the registry remembers that answer.
    """
    _, missing = expand_model(model, environ)
    if missing:
        names = ", ".join(missing)
        return Availability(
            False,
            f"the environment variable {names} is not set"
            if len(missing) == 1
            else f"the environment variables {names} are not set",
        )
    module, _, attribute = model.use.partition(":")
    if not module or not attribute:
        return Availability(False, f'use: expected "package.module:attribute", got "{model.use}"')
    return _importable(module)


def _importable(module: str) -> Availability:
    """Walk to the module's file by name alone: asking for a submodule's spec would import its parents."""
    if module in sys.modules:
        return AVAILABLE
    package, *rest = module.split(".")
    try:
        spec: ModuleSpec | None = find_spec(package)
        if spec is None:
            return Availability(False, f"the package {package} is not installed")
        name = package
        for part in rest:
            name = f"{name}.{part}"
            spec = PathFinder.find_spec(name, spec.submodule_search_locations or [])
            if spec is None:
                return Availability(False, f"the module {name} does not exist")
    except (ImportError, ValueError, AttributeError) as error:
        return Availability(False, f"the module {module} cannot be looked up ({type(error).__name__})")
    return AVAILABLE

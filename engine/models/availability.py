"""Whether a configured model could be used, found out without importing LangChain or its provider."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import find_spec
from typing import TYPE_CHECKING

from engine.config.expand import expand_model
from engine.config.fields import is_header_value
from engine.reasons import Reason
from engine.reasons import gettext_noop as _

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
    """Check what shows from outside: variables that are set, a key that can be sent, a package that is installed.

    Whether `use` names a chat model shows only when it is imported; the registry remembers that answer.
    """
    expanded, missing = expand_model(model, environ)
    if missing:
        sentence = _("the environment variables %(names)s are not set")
        if len(missing) == 1:
            sentence = _("the environment variable %(names)s is not set")
        return Availability(False, Reason(sentence, names=", ".join(missing)))
    if not is_header_value(expanded.api_key or ""):
        # Found out at the call, the fault would hold the whole header.
        return Availability(False, Reason(_("api_key holds characters that no HTTP header can carry")))
    module, _colon, attribute = model.use.partition(":")
    if not module or not attribute:
        sentence = _('use: expected "package.module:attribute", got "%(got)s"')
        return Availability(False, Reason(sentence, got=model.use))
    return _importable(module)


def _importable(module: str) -> Availability:
    """Walk to the module's file by name alone: asking for a submodule's spec would import its parents."""
    if module in sys.modules:
        return AVAILABLE
    package, *rest = module.split(".")
    try:
        spec: ModuleSpec | None = find_spec(package)
        if spec is None:
            return Availability(False, Reason(_("the package %(name)s is not installed"), name=package))
        name = package
        for part in rest:
            name = f"{name}.{part}"
            spec = PathFinder.find_spec(name, spec.submodule_search_locations or [])
            if spec is None:
                return Availability(False, Reason(_("the module %(name)s does not exist"), name=name))
    except (ImportError, ValueError, AttributeError) as error:
        sentence = _("the module %(name)s cannot be looked up (%(error)s)")
        return Availability(False, Reason(sentence, name=module, error=type(error).__name__))
    return AVAILABLE

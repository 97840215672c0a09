"""`$VAR` and `${VAR}` in the few fields that may hold secrets or addresses of one deployment."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from engine.config.connections import ModelConfig

_VARIABLE = re.compile(r"\$(?:\$|\{([A-Za-z_][A-Za-z0-9_]*)\}|([A-Za-z_][A-Za-z0-9_]*))")
_EXPANDED_MODEL_FIELDS = ("api_key", "base_url", "model")


@dataclass(frozen=True, slots=True)
class Expanded:
    """`value` of the shape that was given; `missing`: variables without a value, in order, once each."""

    value: Any
    missing: tuple[str, ...] = ()


def expand(value: object, environ: Mapping[str, str]) -> Expanded:
    """Replace `$VAR` and `${VAR}` in text, also inside lists and mappings; keys and other values stay.

    `$$` is a literal dollar sign and what a variable holds is never expanded again. A variable that
    is unset, empty or not valid text is `missing` and expands to nothing.
    """
    missing: dict[str, None] = {}

    def replace(found: re.Match[str]) -> str:
        name = found[1] or found[2]
        if name is None:
            return "$"
        text = environ.get(name, "")
        if not text or not _is_text(text):
            missing[name] = None
            return ""
        return text

    def walk(part: object) -> object:
        if isinstance(part, str):
            return _VARIABLE.sub(replace, part)
        if isinstance(part, Mapping):
            return {key: walk(item) for key, item in part.items()}
        if isinstance(part, list | tuple):
            return type(part)(walk(item) for item in part)
        return part

    return Expanded(walk(value), tuple(missing))


def expand_model(model: ModelConfig, environ: Mapping[str, str]) -> tuple[ModelConfig, tuple[str, ...]]:
    """Return the model with its variables replaced, and the names of those that are missing."""
    written = {field: getattr(model, field) for field in _EXPANDED_MODEL_FIELDS}
    expanded = expand({"fields": written, "extra": model.extra}, environ)
    changes = expanded.value["extra"] | expanded.value["fields"]
    if changes["api_key"]:
        changes["api_key"] = changes["api_key"].strip()  # a key read from a file ends with a line break
    return model.model_copy(update=changes), expanded.missing


def _is_text(text: str) -> bool:
    # The environment hands undecodable bytes on as lone surrogates, which no request can carry.
    return "\0" not in text and not any("\ud800" <= character <= "\udfff" for character in text)

"""The rules that a definition's fields keep, wherever it comes from: page, API, file or command."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from pydantic import ValidationError

from engine.config.errors import format_path, quoted
from engine.config.fields import Expected
from engine.config.names import normalise_name
from engine.config.schema import CustomAgentConfig
from engine.text import clean_json
from subagents.definitions import Definition, Source
from subagents.errors import Fault, InvalidDefinition

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

FIELDS: Final = ("name", *CustomAgentConfig.model_fields)
_LONGEST_LIST: Final = 500
_LISTS: Final = ("tools", "disallowed_tools", "skills")


def validate_definition(written: object, *, source: Source = Source.MANAGED) -> Definition:
    """Return the definition that `written`, a mapping of field names to plain values, describes.

    Fields are those of FIELDS; null is the same as leaving a field out. The name is normalised; texts are taken
    as they are or refused. Raises InvalidDefinition with every fault. The rules are those of config.yaml.
    Source: product.md §2.
    """
    if not isinstance(written, Mapping):
        raise InvalidDefinition([("", "expected an object with the fields of a subagent")])
    faults = [*_unstorable(written), *_too_long(written)]
    name = ""
    try:
        name = _checked_name(written.get("name"))
    except ValueError as refused:
        faults.append(Fault("name", str(refused)))
    try:
        config = CustomAgentConfig.model_validate({str(key): written[key] for key in written if key != "name"})
    except ValidationError as refused:
        faults += [_fault(error) for error in refused.errors(include_url=False)]
    if faults:
        raise InvalidDefinition(faults)
    return from_config_entry(name, config, source=source)


def from_config_entry(name: str, entry: CustomAgentConfig, *, source: Source = Source.CONFIG) -> Definition:
    """Turn a checked entry into a definition; the field names are the same."""
    fields = {field: getattr(entry, field) for field in CustomAgentConfig.model_fields}
    return Definition(name=name, source=source, **fields)


def to_plain(definition: Definition) -> dict[str, object]:
    """Return the fields as plain JSON values, such that `validate_definition` gives the definition back."""
    plain: dict[str, object] = {field: getattr(definition, field) for field in FIELDS}
    for field in _LISTS:
        plain[field] = None if plain[field] is None else list(getattr(definition, field))
    budget = definition.token_budget
    plain["token_budget"] = None if budget is None else budget.model_dump(exclude_none=True)
    return plain


def _checked_name(name: object) -> str:
    if name is None:
        raise ValueError("this field is required")
    if not isinstance(name, str):
        raise ValueError(f"expected a name, got {_shown(name)}")
    return normalise_name(name)


def _unstorable(written: Mapping[Any, object]) -> list[Fault]:
    sentence = "holds a NUL character or half of a surrogate pair, which cannot be stored"
    return [Fault(_path(key), sentence) for key, value in written.items() if _holds_unstorable(value)]


def _holds_unstorable(value: object) -> bool:
    if isinstance(value, str):
        return clean_json(value) != value
    if isinstance(value, Mapping):
        return any(_holds_unstorable(item) for item in (*value, *value.values()))
    return isinstance(value, list | tuple) and any(_holds_unstorable(item) for item in value)


def _too_long(written: Mapping[Any, object]) -> list[Fault]:
    lengths = {field: len(value) for field in _LISTS if isinstance(value := written.get(field), list | tuple)}
    return [
        Fault(field, f"expected at most {_LONGEST_LIST} names, got {length}")
        for field, length in lengths.items()
        if length > _LONGEST_LIST
    ]


def _fault(error: ErrorDetails) -> Fault:
    path = ".".join(_path(step) for step in error["loc"]) if error["loc"] else ""
    if error["type"] == "missing":
        return Fault(path, "this field is required")
    if error["type"] == "extra_forbidden":
        return Fault(path, f"there is no such field; the fields are {', '.join(FIELDS)}")
    cause = error.get("ctx", {}).get("error")
    if isinstance(cause, Expected):
        return Fault(path, f"{cause}, got {_shown(error['input'])}")
    if cause is not None:
        return Fault(path, str(cause))
    kind = "a list of names or null" if error["type"] == "tuple_type" else "an object or null"
    return Fault(path, f"expected {kind}, got {_shown(error['input'])}")


def _path(key: object) -> str:
    return format_path((key if isinstance(key, int) else str(key),))


def _shown(value: object) -> str:
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)[:40] if not isinstance(value, int) or abs(value) < 10**39 else "a very large number"
    if isinstance(value, list | tuple):
        return "a list"
    return "an object" if isinstance(value, Mapping) else "something else"

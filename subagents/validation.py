"""The rules that the fields of both kinds keep, wherever a document comes from: page, API, file or command."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeVar

from pydantic import BeforeValidator, ValidationError

from engine.config.errors import format_path, quoted
from engine.config.fields import Expected, Flag, Label, Line, ListOfNames, Names, Note, Prompt, Section
from engine.config.names import label_name, normalise_name
from engine.config.schema import CustomAgentConfig
from engine.config.tree import UNSTORABLE
from engine.reasons import Reason, reason_of
from engine.reasons import gettext_noop as _
from engine.text import clean
from subagents.custom_agents import CustomAgent, scope_of
from subagents.definitions import INHERIT, Definition, Source
from subagents.errors import Fault, InvalidDefinition

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

_Schema = TypeVar("_Schema", bound=Section)

FIELDS: Final = ("name", *CustomAgentConfig.model_fields)
REQUIRED: Final = _("this field is required")
_NO_AGENT: Final = _("expected an object with the fields of a custom agent")
_RESERVED: Final = "lead-agent"  # the default lead; `lead_agent` is its assistant id


def _callable_name(written: object) -> str:
    """A name in a scope list: a subagent's spelling where there is one, else as a registered graph may be called."""
    if not isinstance(written, str):
        raise Expected(_("expected a name, got %(got)s"))
    try:
        return normalise_name(written)
    except ValueError:
        return label_name(written)


CallableName = Annotated[str, BeforeValidator(_callable_name)]


class AgentDocument(Section):
    """The fields of a custom agent but its name. For the lists None is all, `()` none, else only these."""

    display_name: Label = ""
    description: Note = ""
    system_prompt: Prompt
    model: Line = INHERIT
    tools: Names | None = None
    skills: Names | None = None
    subagent_enabled: Flag = True
    allowed_subagents: Annotated[tuple[CallableName, ...], ListOfNames] | None = None
    enabled: Flag = True


AGENT_FIELDS: Final = ("name", *AgentDocument.model_fields)


def validate_definition(written: object, *, source: Source = Source.MANAGED) -> Definition:
    """Return the definition that `written`, a mapping of field names to plain values, describes.

    Fields are those of FIELDS; null is the same as leaving a field out. The name is normalised; texts are taken
    as they are or refused. Raises InvalidDefinition with every fault. The rules are those of config.yaml.
    Source: product.md §2.
    """
    name, config = validated(written, CustomAgentConfig, what=_("expected an object with the fields of a subagent"))
    return from_config_entry(name, config, source=source)


def validate_agent(written: object) -> CustomAgent:
    """Return the custom agent that `written`, a mapping of AGENT_FIELDS to plain values, describes.

    The same rules as for subagents. Names in `allowed_subagents` need not exist; those that can be the name of
    a subagent are normalised. Raises InvalidDefinition with every fault. Source: product.md §4.
    """
    name, said = validated(written, AgentDocument, what=_NO_AGENT, reserved=_RESERVED)
    fields = {field: getattr(said, field) for field in AgentDocument.model_fields if field != "allowed_subagents"}
    return CustomAgent(name=name, scope=scope_of(said.allowed_subagents), **fields)


def validated(written: object, schema: type[_Schema], *, what: str, reserved: str = "") -> tuple[str, _Schema]:
    """Return the normalised name and the other fields. Raises InvalidDefinition with every fault."""
    if not isinstance(written, Mapping):
        raise InvalidDefinition([("", Reason(what))])
    faults = _unstorable(written)
    name, said = "", None
    try:
        name = _checked_name(written.get("name"), reserved)
    except ValueError as refused:
        faults.append(Fault("name", reason_of(refused)))
    try:
        said = schema.model_validate({str(key): written[key] for key in written if key != "name"})
    except ValidationError as refused:
        fields = ("name", *schema.model_fields)
        faults += [_fault(error, fields) for error in refused.errors(include_url=False)]
    if faults or said is None:
        raise InvalidDefinition(faults)
    return name, said


def from_config_entry(name: str, entry: CustomAgentConfig, *, source: Source = Source.CONFIG) -> Definition:
    """Turn a checked entry into a definition; the field names are the same."""
    fields = {field: getattr(entry, field) for field in CustomAgentConfig.model_fields}
    return Definition(name=name, source=source, **fields)


def to_plain(definition: Definition) -> dict[str, object]:
    """Return the fields as plain JSON values, such that `validate_definition` gives the definition back."""
    budget = definition.token_budget
    return {
        **{field: _plain(getattr(definition, field)) for field in FIELDS},
        "token_budget": None if budget is None else budget.model_dump(exclude_none=True),
    }


def agent_to_plain(agent: CustomAgent) -> dict[str, object]:
    """Return the fields as plain JSON values, such that `validate_agent` gives the agent back."""
    return {field: _plain(getattr(agent, field)) for field in AGENT_FIELDS}


def _plain(value: object) -> object:
    return list(value) if isinstance(value, tuple) else value


def _checked_name(name: object, reserved: str) -> str:
    if name is None:
        raise ValueError(Reason(REQUIRED))
    if not isinstance(name, str):
        raise ValueError(Reason(_("expected a name, got %(got)s"), got=_shown(name)))
    if reserved and name.strip().lower().replace("_", "-") == reserved:
        raise ValueError(Reason(_("this name is reserved for the default lead")))
    return normalise_name(name)


def _unstorable(written: Mapping[Any, object]) -> list[Fault]:
    return [Fault(_path(key), Reason(UNSTORABLE)) for key, value in written.items() if _holds_unstorable(value)]


def _holds_unstorable(value: object) -> bool:
    """Look through everything below a value, in turn and not by recursion: input may be nested as deep as it likes."""
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, str):
            if clean(one) != one:
                return True
        elif isinstance(one, Mapping):
            waiting += [*one, *one.values()]
        elif isinstance(one, list | tuple):
            waiting += one
    return False


def _fault(error: ErrorDetails, fields: tuple[str, ...]) -> Fault:
    steps = (step if isinstance(step, int) else str(step) for step in error["loc"])
    path = format_path(tuple(step for step in steps if step != "[key]"))  # pydantic's word for a key that is wrong
    if error["type"] == "missing":
        return Fault(path, Reason(REQUIRED))
    if error["type"] == "extra_forbidden":
        sentence = _("there is no such field; the fields are %(names)s")
        return Fault(path, Reason(sentence, names=", ".join(fields)))
    cause = error.get("ctx", {}).get("error")
    if isinstance(cause, Expected):
        return Fault(path, cause.got(_shown(error["input"])))
    if cause is not None:
        return Fault(path, reason_of(cause))
    return Fault(path, Reason(_("expected an object or null, got %(got)s"), got=_shown(error["input"])))


def _path(key: object) -> str:
    return format_path((key if isinstance(key, int) else str(key),))


def _shown(value: object) -> str:
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int) and abs(value) >= 10**39:
        return Reason(_("a very large number"))
    if isinstance(value, int | float):
        return str(value)[:40]
    if isinstance(value, list | tuple):
        return Reason(_("a list"))
    return Reason(_("an object") if isinstance(value, Mapping) else _("something else"))

"""Where each value of a subagent comes from: every layer that says something, the winner first."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from engine.config.budget import TokenBudget, effective_budget
from engine.tools.names import DELEGATION_TOOLS
from subagents.builtins import BUILTIN_MAX_TURNS, DEFAULT_MAX_TURNS, DEFAULT_TIMEOUT_SECONDS
from subagents.definitions import INHERIT, Definition, Source

if TYPE_CHECKING:
    from engine.config.schema import AgentOverride, Config, TokenBudgetConfig

DEFAULT: Final = "default"
BUDGET_FIELDS: Final = ("enabled", "max_tokens", "warn_threshold")
OVERRIDABLE: Final = ("model", "skills", "max_turns", "timeout_seconds", "token_budget")


@dataclass(frozen=True, slots=True)
class Layer:
    """One place that says a value.

    `name` is `default`, `builtin`, `managed`, or the path in config.yaml of the setting, such as
    `subagents.agents.bash.max_turns`.
    """

    name: str
    value: object


@dataclass(frozen=True, slots=True, kw_only=True)
class Effective:
    """What a subagent runs with. `disallowed_tools` holds those that no subagent ever gets as well."""

    model: str
    tools: tuple[str, ...] | None
    disallowed_tools: tuple[str, ...]
    skills: tuple[str, ...] | None
    max_turns: int  # model calls
    timeout_seconds: int
    budget: TokenBudget


Layers = Mapping[str, tuple[Layer, ...]]  # field → layers, strongest first, never empty


def own_layer(definition: Definition, field: str) -> str:
    """Name the layer of what the definition itself says about `field`."""
    if definition.source is Source.CONFIG:
        entry = f"subagents.custom_agents.{definition.name}"
        return entry if field == "name" else f"{entry}.{field}"
    return definition.source.value


def override_layer(name: str, field: str) -> str:
    return f"subagents.agents.{name}.{field}"


def resolve(definition: Definition, config: Config) -> tuple[Effective, Layers]:
    """Resolve every field of a definition under a configuration.

    Order, strongest first: `subagents.agents.<name>`, the definition, the global setting, the default.
    None in an override changes nothing. A token budget is inherited field by field, as
    `token_budget.enabled`, `token_budget.max_tokens` and `token_budget.warn_threshold`.
    Source: product.md §2.2.
    """
    override = config.subagents.agents.get(definition.name)
    layers: dict[str, tuple[Layer, ...]] = {
        **_own_fields(definition),
        **_overridable_fields(definition, override),
        **_limits(definition, override, config),
        **_budget_fields(definition, override, config),
    }
    effective = Effective(
        model=_winner(layers, "model"),
        tools=_winner(layers, "tools"),
        disallowed_tools=_winner(layers, "disallowed_tools"),
        skills=_winner(layers, "skills"),
        max_turns=_winner(layers, "max_turns"),
        timeout_seconds=_winner(layers, "timeout_seconds"),
        budget=effective_budget(
            config.subagents.token_budget,
            override.token_budget if override else None,
            summarization_enabled=config.summarization.enabled,
            definition_budget=definition.token_budget,
        ),
    )
    return effective, layers


def overridden_fields(layers: Layers) -> tuple[str, ...]:
    """Name the fields whose winning layer is an override of config.yaml."""
    return tuple(field for field, stack in layers.items() if stack[0].name.startswith("subagents.agents."))


def _winner(layers: Layers, field: str) -> Any:
    return layers[field][0].value


def _stack(*said: tuple[str, object], default: object = None) -> tuple[Layer, ...]:
    """Keep what was said, in order; the default closes the stack."""
    return (*(Layer(name, value) for name, value in said if value is not None), Layer(DEFAULT, default))


def _own_fields(definition: Definition) -> Layers:
    denied = tuple(dict.fromkeys((*DELEGATION_TOOLS, *definition.disallowed_tools)))

    def own(field: str, value: object, default: object = None) -> tuple[Layer, ...]:
        return _stack((own_layer(definition, field), value), default=default)

    return {
        "name": own("name", definition.name)[:1],
        "display_name": own("display_name", definition.display_name or None, ""),
        "description": own("description", definition.description)[:1],
        "system_prompt": own("system_prompt", definition.system_prompt)[:1],
        "tools": own("tools", definition.tools),
        "disallowed_tools": own(
            "disallowed_tools", denied if definition.disallowed_tools else None, tuple(DELEGATION_TOOLS)
        ),
        "enabled": own("enabled", None if definition.enabled else False, True),
    }


def _overridable_fields(definition: Definition, override: AgentOverride | None) -> Layers:
    model = None if definition.model == INHERIT else definition.model
    return {
        "model": _stack(
            (override_layer(definition.name, "model"), override.model if override else None),
            (own_layer(definition, "model"), model),
            default=INHERIT,
        ),
        "skills": _stack(
            (override_layer(definition.name, "skills"), override.skills if override else None),
            (own_layer(definition, "skills"), definition.skills),
        ),
    }


def _limits(definition: Definition, override: AgentOverride | None, config: Config) -> Layers:
    said_globally = config.subagents.model_fields_set
    is_builtin = definition.source is Source.BUILTIN
    defaults = {
        "max_turns": BUILTIN_MAX_TURNS.get(definition.name, DEFAULT_MAX_TURNS) if is_builtin else DEFAULT_MAX_TURNS,
        "timeout_seconds": DEFAULT_TIMEOUT_SECONDS,
    }
    return {
        field: _stack(
            (override_layer(definition.name, field), getattr(override, field, None)),
            (own_layer(definition, field), getattr(definition, field)),
            (f"subagents.{field}", getattr(config.subagents, field) if field in said_globally else None),
            default=default,
        )
        for field, default in defaults.items()
    }


def _budget_fields(definition: Definition, override: AgentOverride | None, config: Config) -> Layers:
    default = effective_budget(None, None, summarization_enabled=config.summarization.enabled)
    paths: dict[str, TokenBudgetConfig | None] = {
        override_layer(definition.name, "token_budget"): override.token_budget if override else None,
        own_layer(definition, "token_budget"): definition.token_budget,
        "subagents.token_budget": config.subagents.token_budget,
    }
    return {
        f"token_budget.{field}": _stack(
            *(
                (path if path == definition.source.value else f"{path}.{field}", getattr(budget, field, None))
                for path, budget in paths.items()
            ),
            default=getattr(default, field),
        )
        for field in BUDGET_FIELDS
    }

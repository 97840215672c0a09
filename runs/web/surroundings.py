"""What the configuration means for the chat: who can be called, how many, and whether the model is the demo."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from engine.config.expand import expand_model
from runs import agents
from subagents import registry
from subagents.errors import ConfigRefused
from subagents.wording import say

if TYPE_CHECKING:
    from engine.config.schema import Config

DEMO_MODEL: Final = "engine.models.demo:DemoChatModel"


@dataclass(frozen=True, slots=True, kw_only=True)
class Callable:
    """A subagent that may be called now."""

    name: str
    label: str
    description: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """`refused` says the first problem of a configuration that cannot be used at all; then nobody can be called."""

    callables: tuple[Callable, ...] = ()
    agents: tuple[agents.Choice, ...] = ()
    max_total: int = 0  # delegations per run
    max_concurrent: int = 0  # delegations at once
    demo: bool = False
    refused: str = ""


def surroundings() -> Surroundings:
    try:
        now = registry.current()
    except ConfigRefused as fault:
        first = next(iter(fault.problems), None)
        return Surroundings(refused=say(first.reason) if first else str(fault))
    return Surroundings(
        callables=tuple(
            Callable(
                name=entry.name,
                label=entry.definition.display_name or entry.name,
                description=entry.definition.description,
            )
            for entry in now.catalogue.runnable.values()
            if entry.works_here
        ),
        agents=agents.choices(now),
        max_total=now.config.subagents.max_total_per_run,
        max_concurrent=now.config.subagents.max_concurrent,
        demo=answers_from_demo(now.config),
    )


def answers_from_demo(config: Config) -> bool:
    """Whether the default model, the first one with all its variables set, is the one that only plays a part."""
    default = next((model for model in config.models if not expand_model(model, os.environ)[1]), None)
    return default is not None and default.use == DEMO_MODEL

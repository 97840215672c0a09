"""Which agent a run is for, and with which choices: an agent's name, its id, or the id of an assistant of one's own."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from uuid import UUID

from runs import agents
from runs.agent_protocol.errors import Refused
from runs.assistant_ids import assistant_id
from runs.assistants import system_assistants
from runs.models import Assistant
from runs.options import agent_name
from runs.services import LEAD_AGENT
from subagents import registry

if TYPE_CHECKING:
    from collections.abc import Mapping

_LEAD_SPELLINGS = frozenset({LEAD_AGENT, assistant_id(LEAD_AGENT)})


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The agent of a run and the options it begins with. `noted` is what the run keeps of the assistant besides."""

    agent: str
    options: Mapping[str, Any]
    noted: Mapping[str, Any] = field(default_factory=dict)
    laid_down: Mapping[str, Any] = field(default_factory=dict)  # by an assistant of a client's own


def needs_look_up(assistant: str, options: Mapping[str, Any]) -> bool:
    """Whether `target_of` has to be asked: not for the default lead, which is always there."""
    return assistant not in _LEAD_SPELLINGS or options.get("agent_name") is not None


def target_of(assistant: str, options: Mapping[str, Any], path: str, owner_id: int) -> Target:
    """What a run is for; the option `agent_name` (at `path`) goes before the assistant.

    Touches the database. Raises BadInput for a name that no agent bears, Refused for such an id.
    """
    stored = None if assistant in _LEAD_SPELLINGS else _stored(assistant, owner_id)
    if stored is None:
        return Target(agent=_agent(assistant, options, path), options=options)
    # A client's own assistant: what its request does not say is as it was laid down there.
    merged = {**choices_of(stored), **options}
    return Target(
        agent=_agent(stored.graph_id, merged, path),
        options=merged,
        noted={"assistant_id": str(stored.pk)},
        laid_down=choices_of(stored),
    )


def choices_of(stored: Assistant) -> dict[str, Any]:
    """The run options that an assistant of a client's own lays down."""
    configurable = stored.config.get("configurable")
    return {**(configurable if isinstance(configurable, dict) else {}), **stored.context}


def _stored(assistant: str, owner_id: int) -> Assistant | None:
    wanted = _id_in(assistant)
    return None if wanted is None else Assistant.objects.filter(pk=wanted, owner_id=owner_id).first()


def _agent(assistant: str, options: Mapping[str, Any], path: str) -> str:
    if options.get("agent_name") is not None:
        return agents.find(options["agent_name"], field=path)
    return agent_meant(assistant)


def agent_meant(assistant: str) -> str:
    """The agent that is called by this name, in whatever spelling, or by this id. Raises as `target_of`."""
    if assistant in _LEAD_SPELLINGS:
        return LEAD_AGENT
    wanted = _id_in(assistant)
    if wanted is None:
        return _named(assistant)
    for one in system_assistants(registry.current()):
        if one.id == str(wanted):
            return one.name
    raise Refused(404, "not_found", f"no assistant {assistant[:80]}")


def _named(assistant: str) -> str:
    name = agent_name(assistant, "assistant_id")
    if any(one.name == name for one in system_assistants(registry.current())):
        return name
    return agents.find(assistant, field="assistant_id")


def _id_in(assistant: str) -> UUID | None:
    try:
        return UUID(assistant)
    except ValueError:
        return None

"""Assistants: the wire's word for agents. Each can be named or meant by its id, which is made from its name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import UUID

from runs import agents
from runs.agent_protocol.errors import Refused
from runs.assistant_ids import assistant_id
from runs.services import LEAD_AGENT
from subagents import registry

if TYPE_CHECKING:
    from collections.abc import Mapping

_LEAD_SPELLINGS = frozenset({LEAD_AGENT, assistant_id(LEAD_AGENT)})


def needs_look_up(assistant: str, options: Mapping[str, Any]) -> bool:
    """Whether `agent_of` has to be asked: not for the default lead, which is always there."""
    return assistant not in _LEAD_SPELLINGS or options.get("agent_name") is not None


def agent_of(assistant: str, options: Mapping[str, Any], path: str) -> str:
    """The agent that a run is for; the option `agent_name` (at `path`) goes before the assistant.

    Touches the database. Raises BadInput for a name that no agent bears, Refused for such an id.
    """
    if options.get("agent_name") is not None:
        return agents.find(options["agent_name"], field=path)
    if assistant in _LEAD_SPELLINGS:
        return LEAD_AGENT
    try:
        wanted = str(UUID(assistant))
    except ValueError:
        return agents.find(assistant, field="assistant_id")
    for choice in agents.choices(registry.current()):
        if assistant_id(choice.name) == wanted:
            return choice.name
    raise Refused(404, "not_found", f"no assistant {assistant[:80]}")

"""Entries and revisions as the API shows them: plain values, prompts only for whoever may read them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from engine.text import clean_json
from subagents.definitions import Source
from subagents.kinds import AGENT, REMOTE, SUBAGENT
from subagents.remote_agents import shown as remote_shown
from subagents.wording import say

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from subagents.agent_entries import AgentEntry
    from subagents.catalogue import Entry
    from subagents.layers import Layer
    from subagents.models import Revision
    from subagents.notes import Note
    from subagents.remote_contacts import Contact
    from subagents.remote_entries import RemoteEntry
    from subagents.usage import Use

PROMPT: Final = "system_prompt"
_HIDDEN: Final = frozenset({PROMPT, "unreadable"})


def subagent(entry: Entry, *, may_read_prompt: bool, layers: bool = False, use: Use | None = None) -> dict[str, Any]:
    """One entry of the catalogue. An invalid one has no values, only its problems."""
    definition = entry.definition
    shape: dict[str, Any] = {
        "name": entry.name,
        "source": entry.source.value,
        **_standing(entry, may_read_prompt),
        "conflict": entry.shadowed_by is not None,
        "shadowed_by": entry.shadowed_by and entry.shadowed_by.value,
        "editable": entry.source is Source.MANAGED,
        "overridden": list(entry.overridden),
        "version": definition.version,
        "updated_at": definition.updated_at,
        **_used(use),
        "definition": None,
        "effective": None,
    }
    if not entry.problems:
        shape["definition"] = _without_prompt(SUBAGENT.to_plain(definition), may_read_prompt)
        shape["effective"] = effective(entry)
    if layers:
        shape["layers"] = layers_of(entry, may_read_prompt=may_read_prompt)
    return shape


def effective(entry: Entry) -> dict[str, Any]:
    """What a run of the entry gets, after every layer."""
    values = entry.effective
    return {
        "model": values.model,
        "tools": _listed(values.tools),
        "disallowed_tools": list(values.disallowed_tools),
        "skills": _listed(values.skills),
        "max_turns": values.max_turns,
        "timeout_seconds": values.timeout_seconds,
        "token_budget": {
            "enabled": values.budget.enabled,
            "max_tokens": values.budget.max_tokens,
            "warn_threshold": values.budget.warn_threshold,
        },
    }


def layers_of(entry: Entry, *, may_read_prompt: bool) -> dict[str, Any]:
    """Each field with its value in force, the layer it comes from, and every layer below, strongest first."""
    if entry.problems:
        return {}
    return {
        field: {
            "value": _shown(field, stack[0], may_read_prompt),
            "layer": stack[0].name,
            "layers": [{"layer": layer.name, "value": _shown(field, layer, may_read_prompt)} for layer in stack],
        }
        for field, stack in entry.layers.items()
    }


def agent(entry: AgentEntry, *, may_read_prompt: bool, use: Use | None = None) -> dict[str, Any]:
    """One custom agent, with what its scope gives at this moment."""
    readable = not entry.problems
    return {
        "name": entry.name,
        **_standing(entry, may_read_prompt),
        "editable": True,
        "version": entry.agent.version,
        "updated_at": entry.agent.updated_at,
        **_used(use),
        "definition": _without_prompt(AGENT.to_plain(entry.agent), may_read_prompt) if readable else None,
        "resolved_subagents": list(entry.resolved),
        "missing_subagents": list(entry.missing),
    }


def remote(entry: RemoteEntry, *, contact: Contact | None = None) -> dict[str, Any]:
    """One remote agent, the values of its headers masked, with when it was last spoken to."""
    readable = not entry.problems
    return {
        "name": entry.name,
        "source": entry.source.value,
        **_standing(entry, may_read_prompt=True),
        "conflict": entry.shadowed_by is not None,
        "shadowed_by": entry.shadowed_by and entry.shadowed_by.value,
        "editable": entry.source is Source.MANAGED,
        "version": entry.agent.version,
        "updated_at": entry.agent.updated_at,
        "definition": REMOTE.shown(REMOTE.to_plain(entry.agent)) if readable else None,
        "last_contact": contact
        and {"at": contact.at, "fault": contact.fault, "detail": say(contact.sentence) if contact.sentence else ""},
    }


def revision(row: Revision, *, may_read_prompt: bool) -> dict[str, Any]:
    """One entry of a history with its whole document."""
    return {
        "number": row.number,
        "version": row.version,
        "action": row.action,
        "author": row.author.get_username() if row.author is not None else row.author_label,
        "created_at": row.created_at,
        "document": _without_prompt(remote_shown(_plain(row.document)), may_read_prompt),
    }


def changes(found: Mapping[str, Any], *, may_read_prompt: bool) -> dict[str, Any]:
    """What somebody else changed, for whoever was too late; a prompt only for whoever may read it."""
    return {
        field: (None, None) if field == "headers" or (field in _HIDDEN and not may_read_prompt) else values
        for field, values in found.items()
    }


def _used(use: Use | None) -> dict[str, Any]:
    return {"last_used_at": use.at if use else None, "recent_runs": use.recent_runs if use else 0}


def notes(found: Iterable[Note]) -> list[dict[str, str]]:
    return [{"code": note.code, "detail": say(note)} for note in found]


def _standing(entry: Entry | AgentEntry | RemoteEntry, may_read_prompt: bool) -> dict[str, Any]:
    return {
        "state": entry.state.value,
        "reason": notes([entry.reason])[0] if entry.reason else None,
        "warnings": notes(entry.warnings),
        "problems": [_shown_problem(problem, may_read_prompt) for problem in entry.problems],
    }


def _shown_problem(problem: str, may_read_prompt: bool) -> str:
    """A problem in words; one of a prompt quotes it, which only those see who may read prompts."""
    said = say(problem)
    place, found, _sentence = said.partition(f"{PROMPT}:")
    return f"{place}{PROMPT}: …" if found and not may_read_prompt else said


def _without_prompt(document: dict[str, Any], may_read_prompt: bool) -> dict[str, Any]:
    """The document; its prompt null, and what could not be read left out, for whoever may not read prompts."""
    if may_read_prompt:
        return document
    return {key: None if key == PROMPT else value for key, value in document.items() if key != "unreadable"}


def _plain(document: object) -> dict[str, Any]:
    return dict(clean_json(document)) if isinstance(document, dict) else {}  # type: ignore[call-overload, no-any-return]


def _shown(field: str, layer: Layer, may_read_prompt: bool) -> object:
    if field == PROMPT and not may_read_prompt:
        return None
    return list(layer.value) if isinstance(layer.value, tuple) else layer.value


def _listed(names: tuple[str, ...] | None) -> list[str] | None:
    return None if names is None else list(names)

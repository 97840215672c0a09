"""Assistants that clients made: stored with all their versions, each person's for that person."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import orjson
from django.db import IntegrityError, transaction
from django.utils import timezone

from runs.agent_protocol.assistants import agent_meant, target_of
from runs.agent_protocol.errors import Refused
from runs.errors import BadInput
from runs.models import Assistant, AssistantVersion, Run
from runs.services import delete_thread

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from uuid import UUID

MAX_ASSISTANTS: Final = 1000  # of one person
MAX_VERSIONS: Final = 1000  # of one assistant
MAX_BYTES: Final = 64 << 10  # of config, context and metadata, each
_VALUES: Final = ("graph_id", "name", "description", "config", "context", "metadata")


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """What a request says of an assistant; None where it says nothing."""

    graph_id: str | None = None
    name: str | None = None
    description: str | None = None
    config: Mapping[str, Any] | None = None
    context: Mapping[str, Any] | None = None
    metadata: Mapping[str, Any] | None = None

    def changes(self, before: Mapping[str, Any]) -> dict[str, Any]:
        """The values to store. Metadata is merged, the rest replaced; context and config.configurable are the same."""
        after: dict[str, Any] = dict(before)
        for name in _VALUES:
            if (value := getattr(self, name)) is not None:
                after[name] = value
        after["metadata"] = {**before["metadata"], **(self.metadata or {})}
        if self.context is not None:
            after["config"] = {**after["config"], "configurable": dict(self.context)}
        elif self.config is not None:
            configurable = self.config.get("configurable")
            after["context"] = dict(configurable) if isinstance(configurable, dict) else {}
        for name in ("config", "context", "metadata"):
            if len(orjson.dumps(after[name])) > MAX_BYTES:
                raise BadInput(name, f"it has more than {MAX_BYTES:,} bytes as JSON")
        return after


def find_assistant(assistant_id: UUID, owner_id: int) -> Assistant:
    found = Assistant.objects.filter(pk=assistant_id, owner_id=owner_id).first()
    if found is None:
        raise missing(assistant_id)
    return found


def missing(assistant_id: UUID) -> Refused:
    return Refused(404, "not_found", f"no assistant {assistant_id}")


def create_assistant(assistant_id: UUID, written: Written, owner_id: int, *, reuse: bool) -> Assistant:
    """A new assistant. Where the id is taken: with `reuse` the one that has it, if it is this person's, else 409."""
    taken = Assistant.objects.filter(pk=assistant_id).first()
    if taken is None:
        try:
            return _create(assistant_id, written, owner_id)
        except IntegrityError:
            taken = Assistant.objects.filter(pk=assistant_id).first()
    if reuse and taken is not None and taken.owner_id == owner_id:
        return taken
    raise Refused(409, "exists", f"assistant {assistant_id} exists already")


@transaction.atomic
def _create(assistant_id: UUID, written: Written, owner_id: int) -> Assistant:
    if Assistant.objects.filter(owner_id=owner_id).count() >= MAX_ASSISTANTS:
        raise BadInput("assistant_id", f"there are {MAX_ASSISTANTS} assistants already; delete some")
    empty: dict[str, Any] = {"description": "", "config": {}, "context": {}, "metadata": {}}
    values = written.changes({**empty, "graph_id": written.graph_id, "name": written.graph_id})
    values["graph_id"] = _checked(values, owner_id)
    now = timezone.now()
    made = Assistant.objects.create(id=assistant_id, owner_id=owner_id, created_at=now, updated_at=now, **values)
    AssistantVersion.objects.create(assistant=made, version=1, created_at=now, **values)
    return made


@transaction.atomic
def update_assistant(assistant_id: UUID, written: Written, owner_id: int) -> Assistant:
    """A new version, which is the one in force from now on."""
    stored = _locked(assistant_id, owner_id)
    values = written.changes({name: getattr(stored, name) for name in _VALUES})
    values["graph_id"] = _checked(values, owner_id)
    newest = stored.versions.order_by("-version").values_list("version", flat=True).first() or 0
    if stored.versions.count() >= MAX_VERSIONS:
        raise BadInput("assistant_id", f"it has {MAX_VERSIONS} versions already")
    now = timezone.now()
    AssistantVersion.objects.create(assistant=stored, version=newest + 1, created_at=now, **values)
    return _in_force(stored, newest + 1, values)


@transaction.atomic
def set_latest(assistant_id: UUID, version: int, owner_id: int) -> Assistant:
    """Put an earlier or later version in force again."""
    stored = _locked(assistant_id, owner_id)
    wanted = stored.versions.filter(version=version).first()
    if wanted is None:
        raise Refused(404, "not_found", f"assistant {assistant_id} has no version {version}")
    return _in_force(stored, version, {name: getattr(wanted, name) for name in _VALUES})


def versions_of(assistant_id: UUID, owner_id: int) -> Sequence[AssistantVersion]:
    return list(find_assistant(assistant_id, owner_id).versions.order_by("-version"))


def delete_assistant(assistant_id: UUID, owner_id: int, *, with_threads: bool, by: str) -> None:
    stored = find_assistant(assistant_id, owner_id)
    if with_threads:
        runs = Run.objects.filter(thread__owner_id=owner_id, options__assistant_id=str(assistant_id))
        for thread_id in set(runs.values_list("thread_id", flat=True)):
            delete_thread(thread_id=thread_id, by=by)
    stored.delete()


def _locked(assistant_id: UUID, owner_id: int) -> Assistant:
    stored = Assistant.objects.select_for_update().filter(pk=assistant_id, owner_id=owner_id).first()
    if stored is None:
        raise missing(assistant_id)
    return stored


def _in_force(stored: Assistant, version: int, values: Mapping[str, Any]) -> Assistant:
    stored.version, stored.updated_at = version, timezone.now()
    for name, value in values.items():
        setattr(stored, name, value)
    stored.save()
    return stored


def _checked(values: Mapping[str, Any], owner_id: int) -> str:
    """An assistant that could not be run is not stored: its agent has to be there, and its choices make sense.

    Result: its agent's name as that is written where the agent is defined.
    """
    from runs.options import clean_options

    clean_options(values["context"], path="context")
    try:
        target_of(values["graph_id"], values["context"], "context.agent_name", owner_id)
        return agent_meant(values["graph_id"])
    except BadInput as fault:
        if fault.field != "assistant_id":
            raise
        raise Refused(404, "not_found", f"Graph {values['graph_id'][:80]!r} not found: {fault.message}") from None

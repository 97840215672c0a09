"""What a run of a graph runs with. The graph brings model, prompt and tools; ours are its limits and its place."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from engine.graphs.loading import GraphBroken, Graphs
from engine.limits import Limits, limits_from_json
from engine.text import clean_json
from runs.graphs import checkpoints
from runs.graphs.asking import OPTION
from runs.models import Message, Thread
from runs.options import OF_THE_SERVER
from runs.statuses import ErrorCode
from runs.transcript import from_json
from runs.worker.leads import CannotRun, limits_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from uuid import UUID

    from engine.graphs.file import GraphEntry
    from engine.graphs.loading import Loaded
    from runs.models import Run
    from runs.transcript import WireMessage
    from subagents.graphs import RegisteredGraphs
    from subagents.registry import Registry

DEFINED_BY = "graph"  # of a run's definition: the graph's entry as it was
_loader = Graphs()


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphPlan:
    """Everything the executor needs to run a graph."""

    name: str
    registered: RegisteredGraphs
    limits: Limits
    asked: Mapping[str, Any]  # see runs.graphs.asking
    begun: bool  # an attempt before this one has brought the run's input into the state
    seen_upto: int  # the thread's number up to which the state knows its messages
    fresh: tuple[WireMessage, ...]  # messages that came after that
    owner_id: int
    thread_metadata: Mapping[str, Any]
    snapshot: Mapping[str, Any] = field(default_factory=dict)

    def load(self) -> Loaded:
        """The graph; blocks while it is imported. Raises CannotRun."""
        entry = self.registered.entry(self.name)
        if entry is None:
            raise CannotRun(ErrorCode.GRAPH_BROKEN, f"langgraph.json names no graph {self.name} any more")
        try:
            return _loader.load(self.registered.file, entry, self.registered.folder)
        except GraphBroken as broken:
            raise CannotRun(ErrorCode.GRAPH_BROKEN, str(broken)) from broken


def redacted(text: str) -> str:
    """Words that a graph's code said, without the values of its variables."""
    return _loader.redacted(text)


def lead_definition(run: Run, name: str, now: Registry) -> dict[str, Any]:
    """What a run that a person or a program starts keeps of its graph."""
    return _definition(name, limits_of(run.options, now), now)


def child_definition(name: str, limits: Limits, now: Registry) -> dict[str, Any]:
    """What a delegation to a graph keeps of it."""
    return _definition(name, limits, now)


def _definition(name: str, limits: Limits, now: Registry) -> dict[str, Any]:
    entry = now.graphs.entry(name)
    return {
        "agent": name,
        "display_name": name,
        "source": "graph",
        "version": Graphs.signature(entry, now.graphs.folder)[:12] if entry else "",
        DEFINED_BY: entry.target if entry else "",
        "model": "",
        "tools": [],
        "limits": asdict(limits),
        "delegation_enabled": False,
    }


def plan_for(run: Run, now: Registry) -> GraphPlan:
    """The plan of a run whose definition is a graph's, or is to be: then it is in the snapshot."""
    snapshot: dict[str, Any] = {}
    if not run.definition:
        definition = clean_json(lead_definition(run, now.lead(run.agent).name, now))
        own = {name: value for name, value in run.metadata.items() if name not in OF_THE_SERVER}
        run.definition, run.metadata = definition, {**own, "allowed_subagents": []}  # type: ignore[assignment]
        snapshot = {"definition": run.definition, "metadata": run.metadata}
    thread = Thread.objects.only("owner_id", "metadata").get(pk=run.thread_id)
    newest = checkpoints.find(run.thread_id, "", None)
    asked = dict(run.options.get(OPTION) or {})
    upto = newest.seq if newest is not None else 0
    return GraphPlan(
        name=str(run.definition["agent"]),
        registered=now.graphs,
        limits=limits_from_json(run.definition["limits"]),
        asked=asked,
        begun=checkpoints.begun(run.pk, run.thread_id),
        seen_upto=upto,
        fresh=_fresh(run.thread_id, upto, run.pk if asked.get("checkpoint_id") else None),
        owner_id=thread.owner_id,
        thread_metadata=thread.metadata,
        snapshot=snapshot,
    )


def _fresh(thread_id: UUID, upto: int, only_of: UUID | None) -> tuple[WireMessage, ...]:
    """The messages after a number; of one run only where it begins at an earlier checkpoint."""
    rows = Message.objects.filter(thread_id=thread_id, left_at=None, seq__gt=upto)
    if only_of is not None:
        rows = rows.filter(run_id=only_of)
    return tuple(from_json(data) for data in rows.order_by("seq").values_list("data", flat=True))


def load_all(registered: RegisteredGraphs) -> list[dict[str, str]]:
    """Load every graph that is named well; what came of each, as `subagents.graphs.report` takes it. No database."""
    return [_outcome(registered, entry) for entry in registered.file.graphs if not entry.problems]


def _outcome(registered: RegisteredGraphs, entry: GraphEntry) -> dict[str, str]:
    said = {"name": entry.name, "signature": Graphs.signature(entry, registered.folder)}
    try:
        loaded = _loader.load(registered.file, entry, registered.folder)
    except GraphBroken as broken:
        return {**said, "error": str(broken)}
    return {**said, "description": _described(loaded.target)}


def _described(target: Any) -> str:
    """What a graph says of itself; LangGraph's own words for any graph say nothing."""
    description = getattr(target, "description", None)
    return description if isinstance(description, str) else ""

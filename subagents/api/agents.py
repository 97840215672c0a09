"""Custom agents over HTTP."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework.response import Response

from access.api.described import operation
from access.api.permissions import Need
from access.api.queries import asked
from subagents import registry, usage
from subagents.api import examples, shapes
from subagents.api import serializers as body
from subagents.api.described import IF_MATCH
from subagents.api.listing import ListQuery, PageQuery, ordered, ordering_field, page_of
from subagents.api.views import CHANGE, READ, KindView
from subagents.finding import AGENT_ORDERS, search
from subagents.kinds import AGENT

if TYPE_CHECKING:
    from collections.abc import Mapping

    from subagents.agent_entries import AgentEntry
    from subagents.usage import Use

_VIEW = Need(READ, ("subagents.view_customagent",))
_ADD = Need(CHANGE, ("subagents.add_customagent",))
_CHANGE = Need(CHANGE, ("subagents.change_customagent",))
_DELETE = Need(CHANGE, ("subagents.delete_customagent",))
_CHANGING: Final = ("not_found", "stale_version", "invalid", "if_match_missing", "bad_request", "unavailable")
_ORDERS: Final[dict[str, Any]] = {
    "name": lambda entry: entry.name,
    **{name: AGENT_ORDERS[name] for name in ("state", "model")},
    "updated_at": AGENT_ORDERS["updated"],
}


class AgentQuery(ListQuery):
    ordering = ordering_field(_ORDERS)


class AgentsView(KindView):
    """What all addresses of custom agents share."""

    kind = AGENT

    def find(self, name: str) -> AgentEntry | None:
        return next((entry for entry in registry.current().agents if entry.name == name), None)

    def uses(self, names: list[str]) -> Mapping[str, Use]:
        return usage.agents_last_used(names)

    def shape(self, entry: AgentEntry, use: Use | None) -> dict[str, Any]:
        return shapes.agent(entry, may_read_prompt=self.may_read_prompt, use=use)

    def version_of(self, entry: AgentEntry) -> str | None:
        return entry.agent.version


class Agents(AgentsView):
    needs = {"GET": _VIEW, "POST": _ADD}
    problems = {"GET": ("invalid", "not_found", "unavailable"), "POST": ("invalid", "name_taken", "unavailable")}

    @operation(
        "List custom agents",
        answer=body.AgentPage,
        shows=examples.page(examples.AGENT),
        parameters=(AgentQuery,),
        operation_id="agents_list",
    )
    def get(self, request: Any) -> Response:
        query = asked(request, AgentQuery)
        found = [entry for entry in search(registry.current().agents, query.get("q", "")) if _wanted(entry, query)]
        shown, around = page_of(request, ordered(found, query.get("ordering"), _ORDERS), query)
        return Response({**around, "results": self.shapes(shown)})

    @operation(
        "Create a custom agent",
        answer=body.Agent,
        shows=examples.AGENT,
        body=body.AgentDocument,
        sends=examples.AGENT_DOCUMENT,
        status=201,
        versioned=True,
        operation_id="agents_create",
    )
    def post(self, request: Any) -> Response:
        return self.create(request)


class Agent(AgentsView):
    needs = {"GET": _VIEW, "PATCH": _CHANGE, "PUT": _CHANGE, "DELETE": _DELETE}
    problems = {"GET": ("not_found", "unavailable"), **dict.fromkeys(("PATCH", "PUT", "DELETE"), _CHANGING)}

    @operation(
        "Read one custom agent",
        answer=body.Agent,
        shows=examples.AGENT,
        versioned=True,
        operation_id="agents_read",
    )
    def get(self, request: Any, name: str) -> Response:
        return self.retrieve(name)

    @operation(
        "Change some fields",
        answer=body.Agent,
        shows=examples.AGENT,
        body=body.AgentChanges,
        sends=examples.AGENT_CHANGES,
        parameters=(IF_MATCH,),
        versioned=True,
        operation_id="agents_update",
    )
    def patch(self, request: Any, name: str) -> Response:
        return self.update(request, name)

    @operation(
        "Replace the whole definition",
        description="Also repairs one that cannot be read.",
        answer=body.Agent,
        shows=examples.AGENT,
        body=body.AgentDocument,
        sends=examples.AGENT_DOCUMENT,
        parameters=(IF_MATCH,),
        versioned=True,
        operation_id="agents_replace",
    )
    def put(self, request: Any, name: str) -> Response:
        return self.replace(request, name)

    @operation("Delete a custom agent", status=204, parameters=(IF_MATCH,), operation_id="agents_delete")
    def delete(self, request: Any, name: str) -> Response:
        return self.remove(request, name)


@extend_schema_view(**dict.fromkeys(("get", "patch", "put", "delete"), extend_schema(exclude=True)))
class AgentsBulk(Agent):
    """`bulk` is also a name that an agent may have, so its other methods stay those of that agent."""

    needs = {**Agent.needs, "POST": _CHANGE}
    problems = {"POST": ("invalid", "unavailable")}

    @operation(
        "Enable or disable several",
        answer=body.BulkAnswer,
        shows={"results": [{"name": "analyst", "result": "changed", "problem": None}]},
        body=body.BulkChange,
        sends={"action": "disable", "names": ["analyst"]},
        operation_id="agents_bulk",
    )
    def post(self, request: Any, name: str) -> Response:
        return self.switch(request)


class AgentVersions(AgentsView):
    needs = {"GET": _VIEW}
    problems = {"GET": ("not_found", "invalid", "unavailable")}

    @operation(
        "The history of a custom agent, newest first",
        answer=body.VersionPage,
        shows=examples.page(examples.version(examples.AGENT_DOCUMENT)),
        parameters=(PageQuery,),
        operation_id="agents_versions",
    )
    def get(self, request: Any, name: str) -> Response:
        return self.history(request, name)


class AgentVersion(AgentsView):
    needs = {"GET": _VIEW}
    problems = {"GET": ("not_found", "unavailable")}

    @operation(
        "One entry of the history",
        answer=body.Version,
        shows=examples.version(examples.AGENT_DOCUMENT),
        operation_id="agents_version",
    )
    def get(self, request: Any, name: str, number: int) -> Response:
        return self.one_revision(name, number)


def _wanted(entry: AgentEntry, query: dict[str, Any]) -> bool:
    facts = {"state": entry.state.value, "enabled": entry.agent.enabled, "model": entry.agent.model}
    return all(query.get(name) in (None, value) for name, value in facts.items())

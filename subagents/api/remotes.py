"""Remote agents over HTTP. Values of headers go in and never come out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.utils import timezone
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import serializers
from rest_framework.response import Response

from access.api.described import operation
from access.api.permissions import Need
from access.api.queries import asked
from subagents import registry, remote_contacts
from subagents.api import examples, shapes
from subagents.api import serializers as body
from subagents.api.described import IF_MATCH
from subagents.api.listing import ListQuery, PageQuery, ordered, ordering_field, page_of
from subagents.api.views import CHANGE, READ, KindView
from subagents.definitions import Source
from subagents.finding import COMMON_ORDERS, search
from subagents.kinds import REMOTE
from subagents.wording import say

if TYPE_CHECKING:
    from collections.abc import Mapping

    from subagents.remote_entries import RemoteEntry

_VIEW = Need(READ, ("subagents.view_remoteagent",))
_ADD = Need(CHANGE, ("subagents.add_remoteagent",))
_CHANGE = Need(CHANGE, ("subagents.change_remoteagent",))
_DELETE = Need(CHANGE, ("subagents.delete_remoteagent",))
_CHANGING: Final = ("not_found", "stale_version", "invalid", "if_match_missing", "bad_request", "unavailable")
_ORDERS: Final[dict[str, Any]] = {
    "name": lambda entry: entry.name,
    "state": COMMON_ORDERS["state"],
    "updated_at": COMMON_ORDERS["updated"],
}


class RemoteQuery(PageQuery):
    q = ListQuery().fields["q"]
    state = ListQuery().fields["state"]
    enabled = ListQuery().fields["enabled"]
    source = serializers.ChoiceField(choices=["config", "managed"], required=False)
    ordering = ordering_field(_ORDERS)


class RemotesView(KindView):
    """What all addresses of remote agents share."""

    kind = REMOTE

    def find(self, name: str) -> RemoteEntry | None:
        found = [entry for entry in registry.current().remotes if entry.name == name]
        return next((entry for entry in found if entry.source is Source.MANAGED), found[0] if found else None)

    def uses(self, names: list[str]) -> Mapping[str, Any]:
        return remote_contacts.contacts(names)

    def shape(self, entry: RemoteEntry, use: Any) -> dict[str, Any]:
        return shapes.remote(entry, contact=use)

    def version_of(self, entry: RemoteEntry) -> str | None:
        return entry.agent.version


class Remotes(RemotesView):
    needs = {"GET": _VIEW, "POST": _ADD}
    problems = {"GET": ("invalid", "not_found", "unavailable"), "POST": ("invalid", "name_taken", "unavailable")}

    @operation(
        "List remote agents",
        answer=body.RemotePage,
        shows=examples.page(examples.REMOTE),
        parameters=(RemoteQuery,),
        operation_id="remote_agents_list",
    )
    def get(self, request: Any) -> Response:
        query = asked(request, RemoteQuery)
        found = [entry for entry in search(registry.current().remotes, query.get("q", "")) if _wanted(entry, query)]
        shown, around = page_of(request, ordered(found, query.get("ordering"), _ORDERS), query)
        return Response({**around, "results": self.shapes(shown)})

    @operation(
        "Create a remote agent",
        answer=body.Remote,
        shows=examples.REMOTE,
        body=body.RemoteDocument,
        sends=examples.REMOTE_SENT,
        status=201,
        versioned=True,
        operation_id="remote_agents_create",
    )
    def post(self, request: Any) -> Response:
        return self.create(request)


class Remote(RemotesView):
    needs = {"GET": _VIEW, "PATCH": _CHANGE, "PUT": _CHANGE, "DELETE": _DELETE}
    problems = {"GET": ("not_found", "unavailable"), **dict.fromkeys(("PATCH", "PUT", "DELETE"), _CHANGING)}

    @operation(
        "Read one remote agent",
        answer=body.Remote,
        shows=examples.REMOTE,
        versioned=True,
        operation_id="remote_agents_read",
    )
    def get(self, request: Any, name: str) -> Response:
        return self.retrieve(name)

    @operation(
        "Change some fields",
        answer=body.Remote,
        shows=examples.REMOTE,
        body=body.RemoteChanges,
        sends=examples.REMOTE_CHANGES,
        parameters=(IF_MATCH,),
        versioned=True,
        operation_id="remote_agents_update",
    )
    def patch(self, request: Any, name: str) -> Response:
        return self.update(request, name)

    @operation(
        "Replace the whole definition",
        description="Also repairs one that cannot be read.",
        answer=body.Remote,
        shows=examples.REMOTE,
        body=body.RemoteDocument,
        sends=examples.REMOTE_SENT,
        parameters=(IF_MATCH,),
        versioned=True,
        operation_id="remote_agents_replace",
    )
    def put(self, request: Any, name: str) -> Response:
        return self.replace(request, name)

    @operation("Delete a remote agent", status=204, parameters=(IF_MATCH,), operation_id="remote_agents_delete")
    def delete(self, request: Any, name: str) -> Response:
        return self.remove(request, name)


@extend_schema_view(**dict.fromkeys(("get", "patch", "put", "delete"), extend_schema(exclude=True)))
class RemotesBulk(Remote):
    """`bulk` is also a name that an agent may have, so its other methods stay those of that agent."""

    needs = {**Remote.needs, "POST": _CHANGE}
    problems = {"POST": ("invalid", "unavailable")}

    @operation(
        "Enable or disable several",
        answer=body.BulkAnswer,
        shows={"results": [{"name": "coder", "result": "changed", "problem": None}]},
        body=body.BulkChange,
        sends={"action": "disable", "names": ["coder"]},
        operation_id="remote_agents_bulk",
    )
    def post(self, request: Any, name: str) -> Response:
        return self.switch(request)


class RemoteTrial(RemotesView):
    """Asking the agent's server now whether tasks could be started there. Nothing is started."""

    needs = {"POST": _CHANGE}
    problems = {"POST": ("not_found", "unavailable")}

    @operation(
        "Test the connection",
        answer=body.RemoteContact,
        shows=examples.CONTACT,
        operation_id="remote_agents_test",
    )
    def post(self, request: Any, name: str) -> Response:
        entry, config = self.entry(name), registry.current().config
        fault = remote_contacts.try_out(entry.agent, config)
        return Response(
            {
                "at": timezone.now(),
                "fault": fault.kind.value if fault else "",
                "detail": say(fault.sentence) if fault else "",
            }
        )


class RemoteVersions(RemotesView):
    needs = {"GET": _VIEW}
    problems = {"GET": ("not_found", "invalid", "unavailable")}

    @operation(
        "The history of a remote agent, newest first",
        answer=body.VersionPage,
        shows=examples.page(examples.version(examples.REMOTE_DOCUMENT)),
        parameters=(PageQuery,),
        operation_id="remote_agents_versions",
    )
    def get(self, request: Any, name: str) -> Response:
        return self.history(request, name)


class RemoteVersion(RemotesView):
    needs = {"GET": _VIEW}
    problems = {"GET": ("not_found", "unavailable")}

    @operation(
        "One entry of the history",
        answer=body.Version,
        shows=examples.version(examples.REMOTE_DOCUMENT),
        operation_id="remote_agents_version",
    )
    def get(self, request: Any, name: str, number: int) -> Response:
        return self.one_revision(name, number)


def _wanted(entry: RemoteEntry, query: dict[str, Any]) -> bool:
    facts = {"state": entry.state.value, "enabled": entry.agent.enabled, "source": entry.source.value}
    return all(query.get(name) in (None, value) for name, value in facts.items())

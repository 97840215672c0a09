"""The catalogue over HTTP: every entry of every source; managed ones can be changed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import serializers
from rest_framework.response import Response

from access.api.described import operation
from access.api.permissions import Need
from access.api.queries import asked
from subagents import registry, services, usage
from subagents.api import examples, shapes
from subagents.api import serializers as body
from subagents.api.described import IF_MATCH, SOURCE
from subagents.api.listing import SUBAGENT_ORDERS, PageQuery, SubagentQuery, ordered, page_of
from subagents.api.views import CHANGE, READ, KindView
from subagents.definitions import Source
from subagents.errors import ReadOnly
from subagents.finding import search
from subagents.kinds import SUBAGENT

if TYPE_CHECKING:
    from collections.abc import Mapping

    from subagents.catalogue import Entry
    from subagents.usage import Use

_VIEW = Need(READ, ("subagents.view_managedsubagent",))
_ADD = Need(CHANGE, ("subagents.add_managedsubagent",))
_CHANGE = Need(CHANGE, ("subagents.change_managedsubagent",))
_DELETE = Need(CHANGE, ("subagents.delete_managedsubagent",))
_CHANGING = ("not_found", "read_only", "stale_version", "invalid", "if_match_missing", "bad_request", "unavailable")


class OneQuery(serializers.Serializer):  # type: ignore[type-arg]
    source = serializers.ChoiceField(choices=[source.value for source in Source], required=False)
    expand = serializers.ChoiceField(choices=["layers"], required=False)


class WithSourceQuery(serializers.Serializer):  # type: ignore[type-arg]
    source = serializers.ChoiceField(choices=[source.value for source in Source], required=False)


class SubagentsView(KindView):
    """What all addresses of subagents share: an entry is found by its name and, where asked for, its source."""

    kind = SUBAGENT
    query: type[serializers.Serializer] = WithSourceQuery  # type: ignore[type-arg]

    def initial(self, request: Any, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        self.asked = asked(request, self.query)

    def find(self, name: str) -> Entry | None:
        catalogue = registry.current().catalogue
        source = self.asked.get("source")
        if source is None:
            return catalogue.holder(name)
        return next((entry for entry in catalogue.entries if (entry.name, entry.source) == (name, source)), None)

    def uses(self, names: list[str]) -> Mapping[str, Use]:
        return usage.last_used(names)

    def shape(self, entry: Entry, use: Use | None) -> dict[str, Any]:
        layers = self.asked.get("expand") == "layers"
        return shapes.subagent(entry, may_read_prompt=self.may_read_prompt, layers=layers, use=use)

    def version_of(self, entry: Entry) -> str | None:
        return entry.definition.version

    def changeable(self, name: str) -> str:
        name = self.writable(name)
        entry = self.find(name)
        # The address means the entry that holds the name: a shadowed one is changed with ?source=managed.
        if entry is not None and entry.source is not Source.MANAGED:
            raise ReadOnly(name, entry.source)
        return name


class Subagents(SubagentsView):
    needs = {"GET": _VIEW, "POST": _ADD}
    query = SubagentQuery
    problems = {"GET": ("invalid", "not_found", "unavailable"), "POST": ("invalid", "name_taken", "unavailable")}

    @operation(
        "List the catalogue",
        description="Built-in, config.yaml and managed entries in one list, shadowed and broken ones too.",
        answer=body.SubagentPage,
        shows=examples.page(examples.SUBAGENT),
        parameters=(SubagentQuery,),
        operation_id="subagents_list",
    )
    def get(self, request: Any) -> Response:
        found = [
            entry
            for entry in search(registry.current().catalogue.entries, self.asked.get("q", ""))
            if self.wanted(entry)
        ]
        found = ordered(found, self.asked.get("ordering"), SUBAGENT_ORDERS)
        shown, around = page_of(request, found, self.asked)
        return Response({**around, "results": self.shapes(shown)})

    @operation(
        "Create a managed subagent",
        answer=body.Subagent,
        shows=examples.SUBAGENT,
        body=body.SubagentDocument,
        sends=examples.DOCUMENT,
        status=201,
        versioned=True,
        operation_id="subagents_create",
    )
    def post(self, request: Any) -> Response:
        return self.create(request)

    def answer(self, name: str, status: int = 200, **headers: str) -> Response:
        self.asked = {"source": Source.MANAGED}
        return super().answer(name, status, **headers)

    def wanted(self, entry: Entry) -> bool:
        facts = {
            "source": entry.source.value,
            "state": entry.state.value,
            "enabled": entry.definition.enabled,
            "conflict": entry.shadowed_by is not None,
            "model": entry.effective.model,
        }
        return all(self.asked.get(name) in (None, value) for name, value in facts.items())


class Subagent(SubagentsView):
    needs = {"GET": _VIEW, "PATCH": _CHANGE, "PUT": _CHANGE, "DELETE": _DELETE}
    query = OneQuery
    problems = {
        "GET": ("not_found", "invalid", "unavailable"),
        **dict.fromkeys(("PATCH", "PUT", "DELETE"), _CHANGING),
    }

    @operation(
        "Read one subagent",
        answer=body.Subagent,
        shows=examples.SUBAGENT,
        parameters=(OneQuery,),
        versioned=True,
        operation_id="subagents_read",
    )
    def get(self, request: Any, name: str) -> Response:
        return self.retrieve(name)

    @operation(
        "Change some fields",
        answer=body.Subagent,
        shows=examples.SUBAGENT,
        body=body.SubagentChanges,
        sends=examples.CHANGES,
        parameters=(IF_MATCH, SOURCE),
        versioned=True,
        operation_id="subagents_update",
    )
    def patch(self, request: Any, name: str) -> Response:
        return self.update(request, self.changeable(name))

    @operation(
        "Replace the whole definition",
        description="Also repairs one that cannot be read.",
        answer=body.Subagent,
        shows=examples.SUBAGENT,
        body=body.SubagentDocument,
        sends=examples.DOCUMENT,
        parameters=(IF_MATCH, SOURCE),
        versioned=True,
        operation_id="subagents_replace",
    )
    def put(self, request: Any, name: str) -> Response:
        return self.replace(request, self.changeable(name))

    @operation(
        "Delete a managed subagent",
        description="Look at its references first: custom agents that name it keep the name and show it as missing.",
        status=204,
        parameters=(IF_MATCH, SOURCE),
        operation_id="subagents_delete",
    )
    def delete(self, request: Any, name: str) -> Response:
        return self.remove(request, self.changeable(name))


@extend_schema_view(**dict.fromkeys(("get", "patch", "put", "delete"), extend_schema(exclude=True)))
class SubagentsBulk(Subagent):
    """`bulk` is also a name that a subagent may have, so its other methods stay those of that subagent."""

    needs = {**Subagent.needs, "POST": _CHANGE}
    problems = {"POST": ("invalid", "unavailable")}

    @operation(
        "Enable or disable several",
        description="One history entry each. What is refused is refused alone, with its problem.",
        answer=body.BulkAnswer,
        shows=examples.BULK_ANSWER,
        body=body.BulkChange,
        sends=examples.BULK,
        operation_id="subagents_bulk",
    )
    def post(self, request: Any, name: str) -> Response:
        self.asked = {"source": Source.MANAGED}
        return self.switch(request)


class SubagentEffective(SubagentsView):
    needs = {"GET": _VIEW}
    problems = {"GET": ("not_found", "invalid", "unavailable")}

    @operation(
        "Explain every field",
        description="Each field's value in force, the layer it comes from, and every layer below it.",
        answer=body.EffectiveAnswer,
        shows={
            "name": "researcher",
            "source": "managed",
            "effective": examples.EFFECTIVE,
            "fields_with_layers": examples.LAYERS,
        },
        parameters=(SOURCE,),
        operation_id="subagents_effective",
    )
    def get(self, request: Any, name: str) -> Response:
        entry: Entry = self.entry(name)
        return Response(
            {
                "name": entry.name,
                "source": entry.source.value,
                "effective": None if entry.problems else shapes.effective(entry),
                "fields_with_layers": shapes.layers_of(entry, may_read_prompt=self.may_read_prompt),
            }
        )


class SubagentReferences(SubagentsView):
    needs = {"GET": Need(READ, ("subagents.view_managedsubagent", "subagents.view_customagent"))}
    problems = {"GET": ("not_found", "invalid", "unavailable")}

    @operation(
        "Custom agents whose scope names it",
        answer=body.References,
        shows=examples.REFERENCES,
        parameters=(SOURCE,),
        operation_id="subagents_references",
    )
    def get(self, request: Any, name: str) -> Response:
        named_by = services.named_by(self.entry(name).name)
        return Response({"agents": [{"name": agent.name, "display_name": agent.display_name} for agent in named_by]})


class SubagentVersions(SubagentsView):
    needs = {"GET": _VIEW}
    query = PageQuery
    problems = {"GET": ("not_found", "invalid", "unavailable")}

    @operation(
        "The history of a managed subagent, newest first",
        answer=body.VersionPage,
        shows=examples.page(examples.version(examples.DOCUMENT)),
        parameters=(PageQuery,),
        operation_id="subagents_versions",
    )
    def get(self, request: Any, name: str) -> Response:
        return self.history(request, name)


class SubagentVersion(SubagentsView):
    needs = {"GET": _VIEW}
    problems = {"GET": ("not_found", "invalid", "unavailable")}

    @operation(
        "One entry of the history",
        answer=body.Version,
        shows=examples.version(examples.DOCUMENT),
        operation_id="subagents_version",
    )
    def get(self, request: Any, name: str, number: int) -> Response:
        return self.one_revision(name, number)

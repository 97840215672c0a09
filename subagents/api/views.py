"""What subagents and custom agents share over HTTP. A kind's own module says what it lists and how it looks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from django.utils.translation import gettext
from rest_framework.response import Response

from access.api.problems import FieldProblem, Problem
from access.api.queries import asked
from access.api.views import ApiView
from access.keys import Scope
from engine.config.names import normalise_name
from subagents import services
from subagents.api import shapes
from subagents.api.conditions import etag, expected_version
from subagents.api.faults import problem_of
from subagents.api.listing import PageQuery, page_of
from subagents.errors import StaleVersion, SubagentsError
from subagents.models import VIEW_PROMPT
from subagents.services import Actor

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from subagents.kinds import Kind
    from subagents.usage import Use

READ, CHANGE = Scope.READ, Scope.ADMIN
_MOST_AT_ONCE = 500


class KindView(ApiView):
    """One kind's view. `find` gives the entry that an address names, `shape` what is answered for it."""

    kind: ClassVar[Kind[Any]]

    def problem_of(self, fault: Exception) -> Problem | None:
        if isinstance(fault, StaleVersion):
            fault.changes = shapes.changes(fault.changes, may_read_prompt=self.may_read_prompt)
        return problem_of(fault)

    @property
    def may_read_prompt(self) -> bool:
        return bool(self.request.user.has_perm(VIEW_PROMPT))

    @property
    def actor(self) -> Actor:
        key = self.request.auth
        user = self.request.user
        label = f"{user.get_username()}, API key {key.key_name}" if key is not None else ""
        return Actor(user=user, label=label)

    def find(self, name: str) -> Any:
        """The entry of this name, or None."""
        raise NotImplementedError

    def shape(self, entry: Any, use: Use | None) -> dict[str, Any]:
        raise NotImplementedError

    def uses(self, names: list[str]) -> Mapping[str, Use]:
        """When those of these names were last used that ever were; one query."""
        raise NotImplementedError

    def shapes(self, entries: Iterable[Any]) -> list[dict[str, Any]]:
        shown = list(entries)
        uses = self.uses([entry.name for entry in shown])
        return [self.shape(entry, uses.get(entry.name)) for entry in shown]

    def version_of(self, entry: Any) -> str | None:
        raise NotImplementedError

    def entry(self, name: str) -> Any:
        entry = self.find(name)
        if entry is None:
            entry = self.find(self.writable(name))
        if entry is None:
            raise _none_named(name)
        return entry

    def writable(self, name: str) -> str:
        """The stored name that an address means. Raises not_found for what cannot be anybody's name."""
        if self.find(name) is not None:
            return name
        try:
            return normalise_name(name)
        except ValueError:
            raise _none_named(name) from None

    def answer(self, name: str, status: int = 200, **headers: str) -> Response:
        """The entry as it is now, after a change."""
        entry = self.entry(name)
        return Response(self.shapes([entry])[0], status=status, headers={**etag(self.version_of(entry)), **headers})

    # --- What both kinds do ------------------------------------------------------------------------------------
    def retrieve(self, name: str) -> Response:
        entry = self.entry(name)
        return Response(self.shapes([entry])[0], headers=etag(self.version_of(entry)))

    def create(self, request: Any) -> Response:
        stored = services.create(self.kind, request.data, actor=self.actor)
        return self.answer(stored.name, 201, Location=f"{request.path}/{stored.name}")

    def update(self, request: Any, name: str) -> Response:
        name = self.writable(name)
        expected = self.expected(request, name)
        if not isinstance(request.data, dict):
            self.kind.validate(request.data)
        services.update(self.kind, name, request.data, expected_version=expected, actor=self.actor)
        return self.answer(name)

    def replace(self, request: Any, name: str) -> Response:
        name = self.writable(name)
        expected = self.expected(request, name)
        services.replace(self.kind, name, request.data, expected_version=expected, actor=self.actor)
        return self.answer(name)

    def remove(self, request: Any, name: str) -> Response:
        name = self.writable(name)
        services.delete(self.kind, name, expected_version=self.expected(request, name), actor=self.actor)
        return Response(status=204)

    def expected(self, request: Any, name: str) -> str:
        def current() -> str | None:
            entry = self.find(name)
            return None if entry is None else self.version_of(entry)

        return expected_version(request, current)

    def switch(self, request: Any) -> Response:
        action, names = _bulk(request.data)
        meant: dict[str, str | Problem] = {}
        for name in dict.fromkeys(names):
            try:
                meant[name] = self.writable(name)
            except Problem as refused:
                meant[name] = refused
        wanted = [name for name in meant.values() if isinstance(name, str)]
        outcome = services.set_enabled(self.kind, wanted, action == "enable", actor=self.actor)
        results = [self._switched(name, outcome[to] if isinstance(to, str) else to) for name, to in meant.items()]
        return Response({"results": results})

    def _switched(self, name: str, what: str | SubagentsError | Problem) -> dict[str, Any]:
        if isinstance(what, str):
            return {"name": name, "result": what, "problem": None}
        problem = what if isinstance(what, Problem) else self.problem_of(what) or Problem("internal")
        return {"name": name, "result": "refused", "problem": problem.body(self.request)}

    def history(self, request: Any, name: str) -> Response:
        rows = services.revisions(self.kind, self.writable(name))
        if not rows:
            self.entry(name)
        shown, around = page_of(request, rows, asked(request, PageQuery))
        may = self.may_read_prompt
        return Response({**around, "results": [shapes.revision(row, may_read_prompt=may) for row in shown]})

    def one_revision(self, name: str, number: int) -> Response:
        rows = services.revisions(self.kind, self.writable(name))
        row = next((row for row in rows if row.number == number), None)
        if row is None:
            raise Problem("not_found", gettext("There is no version %(number)s.") % {"number": number})
        return Response(shapes.revision(row, may_read_prompt=self.may_read_prompt))


def _none_named(name: str) -> Problem:
    return Problem("not_found", gettext("There is none named %(name)s.") % {"name": name[:80]})


def _bulk(body: Any) -> tuple[str, list[str]]:
    """The body of a bulk change: `{"action": "enable" | "disable", "names": [text, …]}`."""
    given = body if isinstance(body, dict) else {}
    action, names = given.get("action"), given.get("names")
    errors = []
    if action not in ("enable", "disable"):
        errors.append(FieldProblem("/action", gettext("Expected enable or disable.")))
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names) or not names:
        errors.append(FieldProblem("/names", gettext("Expected a list of names.")))
    elif len(names) > _MOST_AT_ONCE:
        errors.append(FieldProblem("/names", gettext("At most %(most)s at once.") % {"most": _MOST_AT_ONCE}))
    errors += [FieldProblem(f"/{key[:80]}", gettext("There is no such field.")) for key in given if key not in _BULK]
    if errors:
        raise Problem("invalid", f"{errors[0].pointer}: {errors[0].detail}", errors=errors)
    return action, names  # type: ignore[return-value]


_BULK = frozenset({"action", "names"})

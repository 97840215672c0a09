"""Whom an agent could call if what is ticked on an open form were saved: a fragment for that form."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.http import HttpResponse
from django.shortcuts import render
from django.utils.cache import add_never_cache_headers

from subagents import registry
from subagents.admin.agents.form import SCOPE_FIELDS, ScopeInput, scope_picked
from subagents.admin.agents.reach import reach_of
from subagents.errors import ConfigRefused

if TYPE_CHECKING:
    from django.http import HttpRequest


def answer(request: HttpRequest) -> HttpResponse:
    """The fragment for the scope in the address, which names things as the form does. Changes nothing."""
    switch, field = SCOPE_FIELDS
    chosen = scope_picked(ScopeInput(labels={}).value_from_datadict(request.GET, {}, field))
    try:
        now = registry.current()
    except ConfigRefused:
        return HttpResponse(status=503)
    context = {"reach": reach_of(chosen, now.catalogue, delegates=switch in request.GET)}
    reply = render(request, "admin/subagents/customagent/reach.html", context)
    add_never_cache_headers(reply)
    return reply

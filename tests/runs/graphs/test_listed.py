"""Graphs where people see them: the Subagents page, the chat's choice, and who may be called."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from django.urls import reverse

from runs import agents
from subagents import graphs, registry
from subagents.catalogue import State
from subagents.definitions import Source
from subagents.models import GraphLoad
from tests.runs.graphs.test_running import TALKER
from tests.runs.workers.house import Worker

if TYPE_CHECKING:
    from django.test import Client

    from tests.runs.graphs.registered import GraphHouse

LIST = "admin:subagents_managedsubagent_changelist"
FORM = "admin:subagents_managedsubagent_change"


@pytest.fixture
def listed(house: GraphHouse) -> GraphHouse:
    house.graphs(talker=TALKER, broken="import no_such_module_here\n")
    with Worker():
        house.until(lambda: GraphLoad.objects.count() == 2)
    registry.forget()
    return house


def test_the_page_lists_graphs_with_their_source_state_and_error(listed: GraphHouse, admin_client: Client):
    page = admin_client.get(reverse(LIST)).content.decode()
    assert "talker" in page
    assert "Graph" in page
    form = admin_client.get(reverse(FORM, args=["graph-talker"]))
    assert form.status_code == 200
    assert "talker_graph.py:graph" in form.content.decode()
    broken = admin_client.get(reverse(FORM, args=["graph-broken"]))
    assert "no_such_module_here" in broken.content.decode()


def test_a_graph_is_changed_by_nobody_through_the_page(listed: GraphHouse, admin_client: Client):
    answer = admin_client.post(reverse(FORM, args=["graph-talker"]), {"description": "Mine now."})
    assert answer.status_code == 403


def test_a_graph_can_be_chosen_and_called_unless_it_is_broken(listed: GraphHouse):
    now = registry.current(max_age=0)
    assert "talker" in {choice.name for choice in agents.choices(now)}
    assert "broken" not in {choice.name for choice in agents.choices(now)}
    assert ("talker" in now.catalogue.runnable, "broken" in now.catalogue.runnable) == (True, False)


def test_a_stronger_source_takes_the_name_from_a_graph_which_stays_listed(house: GraphHouse):
    house.graphs(talker=TALKER)
    house.manage("talker")
    entries = [entry for entry in registry.current(max_age=0).catalogue.entries if entry.name == "talker"]
    assert [(entry.source, entry.state) for entry in entries] == [
        (Source.MANAGED, State.ACTIVE),
        (Source.GRAPH, State.SHADOWED),
    ]


def test_what_a_worker_said_counts_only_for_the_file_it_has_seen(listed: GraphHouse):
    assert graphs.look(registry.current().config, listed._config_file).loads["broken"].error
    listed.graphs(broken=TALKER)
    entry = registry.current(max_age=0).catalogue.by_key("graph-broken")
    assert entry is not None
    assert entry.runnable

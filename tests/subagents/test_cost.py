"""What looking a subagent up costs, however many there are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from subagents import registry
from subagents.catalogue import Entry
from subagents.definitions import Source

if TYPE_CHECKING:
    from tests.subagents.conftest import SaveManaged, WriteConfig

pytestmark = pytest.mark.django_db(transaction=True)

SCOUT = "subagents: {custom_agents: {scout: {description: Finds things., system_prompt: Look.}}}"


def test_a_conflict_among_two_hundred_costs_no_more_at_a_call_than_one_alone(
    managed: SaveManaged, write_config: WriteConfig, caplog: pytest.LogCaptureFixture
):
    def cost() -> int:
        registry.current(fresh=True)
        with CaptureQueriesContext(connection) as queries:
            for _call in range(3):
                found = registry.resolve_dispatch("scout", allowed=("scout",))
                assert isinstance(found, Entry)
                assert found.source is Source.CONFIG
        return len(queries)

    managed("scout")
    write_config(SCOUT)
    alone = cost()
    for number in range(200):
        managed(f"helper-{number}")
    caplog.clear()
    assert cost() == alone
    assert not caplog.records
    (conflict,) = registry.current().catalogue.conflicts
    assert (conflict.name, conflict.source, conflict.runnable) == ("scout", Source.MANAGED, False)

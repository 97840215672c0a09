from __future__ import annotations

import pytest

from engine.stop import SubagentStatus
from runs.statuses import ACTIVE, ENDED, MOVES, TO_LANGGRAPH, TO_SUBAGENT, RunStatus, may_move


def test_an_ended_run_never_moves_again():
    assert not any(may_move(ended, target) for ended in ENDED for target in RunStatus)


def test_a_run_that_was_never_executed_cannot_have_succeeded():
    assert not may_move(RunStatus.PENDING, RunStatus.SUCCESS)


@pytest.mark.parametrize("target", sorted(ENDED))
def test_a_running_run_may_end_in_every_way(target):
    assert may_move(RunStatus.RUNNING, target)


def test_a_running_run_may_go_back_to_the_queue():
    assert may_move(RunStatus.RUNNING, RunStatus.PENDING)


def test_every_status_has_its_moves_and_its_word_on_the_langgraph_wire():
    words = {"pending", "running", "success", "error", "timeout", "interrupted"}
    assert set(MOVES) == set(TO_LANGGRAPH) == set(RunStatus) == ACTIVE | ENDED
    assert set(TO_LANGGRAPH.values()) == words


def test_every_way_to_end_has_its_subagent_status():
    assert set(TO_SUBAGENT) == ENDED
    assert set(TO_SUBAGENT.values()) == set(SubagentStatus)

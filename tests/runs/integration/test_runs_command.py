"""`manage.py runs`: list, show, why, prune; for people and, with --json, for programs."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING, Any

import pytest
from django.core.management import CommandError, call_command

from runs import services
from runs.lifecycle import Ending, Finish, commit_one
from runs.statuses import RunStatus
from tests.runs.acts import claimed, finish
from tests.runs.factories import ThreadFactory

if TYPE_CHECKING:
    from runs.models import Run

pytestmark = pytest.mark.django_db


def said(*arguments: str) -> str:
    out = io.StringIO()
    call_command("runs", *arguments, stdout=out)
    return out.getvalue()


def told(*arguments: str) -> Any:
    return json.loads(said(*arguments, "--json"))


@pytest.fixture
def capped(db: None) -> Run:
    run = services.start_run(thread=ThreadFactory(), text="hello")
    detail = {"limit": 50, "layer": "runs.max_turns"}
    ending = Ending(status=RunStatus.SUCCESS, stop_reason="turn_capped", detail=detail)
    commit_one(Finish(held=claimed(run), ending=ending))
    return run


def test_why_says_what_happened_the_limit_its_layer_and_a_way_out(capped):
    words = said("why", str(capped.pk))
    assert "50 model calls" in words and "runs.max_turns = 50 model calls" in words and "Continue" in words
    answer = told("why", str(capped.pk))
    assert answer["layer"] == "runs.max_turns"
    assert answer["stop_reason"] == "turn_capped"
    assert answer["way_out"]


def test_why_also_answers_for_one_that_waits():
    run = services.start_run(thread=ThreadFactory(), text="hello")
    assert "No worker is running" in said("why", str(run.pk))


def test_the_end_of_an_id_is_enough_as_the_admin_shows_it(capped):
    assert told("show", str(capped.pk)[-12:])["id"] == str(capped.pk)
    assert told("show", str(capped.pk)[:23])["id"] == str(capped.pk)


def test_an_unknown_id_no_id_and_an_ambiguous_one_are_told_apart(capped):
    services.start_run(thread=ThreadFactory(), text="hello")
    for written, code in (("ffffffffffff", 3), ("nonsense", 2), ("%", 2), (str(capped.pk)[:6], 2)):
        with pytest.raises(CommandError) as refused:
            said("show", written)
        assert refused.value.returncode == code


def test_list_filters_and_counts(capped):
    for _ in range(3):
        services.start_run(thread=ThreadFactory(), text="hello")
    assert len(told("list")) == 4
    assert len(told("list", "--active")) == 3
    assert [row["id"] for row in told("list", "--status", "success")] == [str(capped.pk)]
    assert len(told("list", "--limit", "2")) == 2
    assert "success (turn_capped)" in said("list")


def test_show_names_everything_a_row_says(capped):
    words = said("show", str(capped.pk))
    assert str(capped.thread_id) in words
    assert told("show", str(capped.pk))["attempt"] == 1


def test_prune_counts_first_and_removes_when_asked():
    run = services.start_run(thread=ThreadFactory(), text="hello")
    finish(claimed(run))
    assert told("prune", "--days", "0", "--dry-run")["queue_results"] == 1
    assert "1  queue results removed" in said("prune", "--days", "0")
    assert told("prune", "--days", "0")["queue_results"] == 0
    with pytest.raises(CommandError):
        said("prune", "--days", "-1")


def test_it_speaks_as_the_terminal_does_and_in_codes_to_programs(capped, monkeypatch):
    monkeypatch.delenv("LC_ALL", raising=False)
    monkeypatch.delenv("LC_MESSAGES", raising=False)
    monkeypatch.setenv("LANG", "zh_CN.UTF-8")
    assert "模型" in said("why", str(capped.pk))
    assert told("why", str(capped.pk))["stop_reason"] == "turn_capped"
    with pytest.raises(CommandError, match="没有运行"):
        said("why", "ffffffff")
    for locale in ("C.UTF-8", "xx", ""):
        monkeypatch.setenv("LANG", locale)
        assert "model calls" in said("why", str(capped.pk))

from __future__ import annotations

import pytest
from django.utils import translation

from engine.stop import StopReason
from runs.explain import why, why_no_delegation
from runs.statuses import ENDED, DelegationOff, ErrorCode, RunStatus

BY_STATUS = {
    ErrorCode.TIMED_OUT: RunStatus.TIMEOUT,
    ErrorCode.CANCELLED: RunStatus.CANCELLED,
    ErrorCode.SUPERSEDED: RunStatus.INTERRUPTED,
}
DETAIL = {"limit": 1234, "layer": "runs.max_turns"}
ENDINGS = [
    *({"status": BY_STATUS.get(code, RunStatus.ERROR), "error_code": code} for code in ErrorCode),
    *({"status": status, "stop_reason": cap} for cap in StopReason for status in (RunStatus.SUCCESS, RunStatus.ERROR)),
    {"status": RunStatus.CANCELLED, "cancelled_by": "lin"},
    {"status": RunStatus.CANCELLED, "cancelled_by": "parent"},
]


@pytest.mark.parametrize("ending", ENDINGS, ids=str)
def test_every_way_to_end_early_has_its_sentence(ending):
    with translation.override("en"):
        sentence = why(**ending, detail=DETAIL)
    assert sentence.endswith(".")
    assert "%" not in sentence and "?" not in sentence


@pytest.mark.parametrize("ending", ENDINGS, ids=str)
def test_every_way_to_end_early_has_its_sentence_in_chinese(ending):
    with translation.override("zh-hans"):
        sentence = why(**ending, detail=DETAIL)
    assert any("\u4e00" <= character <= "\u9fff" for character in sentence)


@pytest.mark.parametrize("cap", list(StopReason))
def test_a_cap_names_its_number_and_the_setting_that_set_it(cap):
    sentence = why(status=RunStatus.SUCCESS, stop_reason=cap, detail=DETAIL)
    assert "1,234" in sentence
    assert "runs.max_turns" in sentence


def test_a_timeout_names_its_number_and_the_setting_that_set_it():
    sentence = why(status=RunStatus.TIMEOUT, detail={"limit": 30, "layer": "subagents.agents.bash.timeout_seconds"})
    assert "30 s" in sentence
    assert "subagents.agents.bash.timeout_seconds" in sentence


def test_a_run_that_simply_finished_or_still_runs_needs_no_sentence():
    assert why(status=RunStatus.SUCCESS) == why(status=RunStatus.RUNNING) == why(status=RunStatus.PENDING) == ""


@pytest.mark.parametrize("status", sorted(ENDED))
def test_odd_details_are_no_reason_to_fail(status):
    for detail in (None, {}, {"limit": None}, {"limit": "100%(x)s", "layer": "%d"}):
        why(status=status, stop_reason="token_capped", detail=detail, cancelled_by="%(who)s %d")


@pytest.mark.parametrize("code", list(DelegationOff))
def test_every_reason_why_nobody_may_be_called_has_its_sentence(code):
    sentences = {why_no_delegation(other.value) for other in DelegationOff}
    assert why_no_delegation(code.value) in sentences - {""}
    assert len(sentences) == len(DelegationOff)

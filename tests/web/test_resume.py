from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runs.event_types import Delta, RunEnded, RunWaiting
from runs.web.frames import Feed
from runs.web.resume import cursor_of, may_read, open_reply


@pytest.mark.parametrize(
    ("query", "cursor"),
    [
        ("after=7", 7),
        ("", 0),
        ("after=", 0),
        ("after=-1", 0),
        ("after=x", 0),
        ("after=٣", 0),
        ("after=1e3", 0),
        ("after=7&after=9", 7),
        ("after=9999999999999999999", 2**63 - 1),
        ("after=99999999999999999999999", 0),
    ],
)
def test_anything_that_is_no_cursor_means_from_the_start(query, cursor):
    assert cursor_of(query) == cursor


@given(st.text())
def test_no_query_string_breaks_the_cursor(query):
    assert 0 <= cursor_of(query) < 2**63


@pytest.mark.django_db
def test_a_reader_who_comes_back_in_mid_reply_gets_the_whole_text_so_far(log):
    run = log.run()
    log.message(run.pk, {"type": "human", "content": "Say it."})
    for word in ("One ", "two ", "three"):
        log.fact(run.pk, Delta(id="m1", text=word))
    log.fact(run.pk, RunWaiting(waiting_for="slot"))
    after = log.fact(run.pk, Delta(id="m1", text=" four"))
    log.fact(run.pk, Delta(id="m1", text=" five"))
    (frame,) = Feed().take(open_reply(log.thread.pk, after), now=0)
    assert (frame["open_html"], frame["first_block"]) == ("<p>One two three four</p>\n", 0)


@pytest.mark.django_db
def test_a_reply_that_was_finished_is_not_given_again(log):
    run = log.run()
    log.fact(run.pk, Delta(id="m1", text="One"))
    after = log.message(run.pk, {"type": "ai", "id": "m1", "content": "One"})
    assert open_reply(log.thread.pk, after) == []


@pytest.mark.django_db
def test_a_reply_cut_off_by_the_end_of_its_run_is_not_given_again(log):
    run = log.run()
    log.fact(run.pk, Delta(id="m1", text="One"))
    assert open_reply(log.thread.pk, log.fact(run.pk, RunEnded(status="cancelled"))) == []


@pytest.mark.django_db
def test_only_the_newest_reply_is_open_when_an_earlier_one_was_lost_with_its_worker(log):
    run = log.run()
    log.fact(run.pk, Delta(id="lost", text="Old"))
    after = log.fact(run.pk, Delta(id="new", text="New"))
    assert [row.seq for row in open_reply(log.thread.pk, after)] == [after]


@pytest.mark.django_db
def test_from_the_start_nothing_has_been_seen(log):
    log.fact(log.run().pk, Delta(id="m1", text="One"))
    assert open_reply(log.thread.pk, 0) == []


@pytest.mark.django_db
def test_only_the_active_owner_may_read(log, lin, stranger):
    assert may_read(lin, log.thread.pk)
    assert not may_read(stranger, log.thread.pk)
    type(lin).objects.filter(pk=lin.pk).update(is_active=False)
    assert not may_read(lin, log.thread.pk)

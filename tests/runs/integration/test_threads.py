"""Threads: made, renamed, seen and deleted."""

from __future__ import annotations

from uuid import uuid4

import pytest
from django_q.models import OrmQ

from runs import services
from runs.errors import BadInput, Fenced, ThreadExists, ThreadNotFound
from runs.lifecycle import Progress, commit_one
from runs.models import Event, Run, Thread
from runs.workspaces import workspace_folder
from tests.runs.acts import ai, claimed, start_child
from tests.runs.factories import PersonFactory, RunFactory, ThreadFactory, started

pytestmark = pytest.mark.django_db


def test_a_thread_with_a_wanted_id_is_made_once():
    owner, wanted = PersonFactory(), uuid4()
    made = services.create_thread(owner=owner, thread_id=wanted, title="\x00" + "t" * 300, metadata={"a": "\ud800"})
    made.refresh_from_db()
    assert (made.pk, len(made.title), made.metadata) == (wanted, 200, {"a": "\ufffd"})


@pytest.mark.django_db(transaction=True)
def test_a_wanted_id_that_is_taken_is_refused():
    taken = ThreadFactory()
    with pytest.raises(ThreadExists):
        services.create_thread(owner=taken.owner, thread_id=taken.pk)


@pytest.mark.parametrize("title", ["", "  \n ", "x" * 201, None, 5])
def test_a_title_that_cannot_be_one_is_refused_with_its_field(thread, title):
    with pytest.raises(BadInput) as refusal:
        services.rename_thread(thread_id=thread.pk, title=title)
    assert refusal.value.field == "title"


def test_a_new_title_is_one_storable_line(thread):
    services.rename_thread(thread_id=thread.pk, title="  New\n title\x00 ")
    thread.refresh_from_db()
    assert thread.title == "New title\ufffd"


def test_renaming_a_thread_that_does_not_exist_is_refused():
    with pytest.raises(ThreadNotFound):
        services.rename_thread(thread_id=uuid4(), title="x")


def test_a_deleted_thread_takes_its_children_their_logs_its_queue_rows_and_its_files_along(thread):
    lead = services.start_run(thread=thread, text="first")
    held = claimed(lead)
    child = start_child(held)
    claimed(child)
    services.start_run(thread=thread, text="second")
    folder = workspace_folder(thread.pk)
    folder.mkdir(parents=True)
    (folder / "notes.md").write_text("notes")
    other = started()
    services.delete_thread(thread_id=thread.pk, by="lin")
    assert list(Thread.objects.all()) == [other.thread]
    assert list(Run.objects.all()) == [other]
    assert Event.objects.exclude(thread=other.thread).count() == 0
    assert OrmQ.objects.count() == 1
    assert not folder.exists()


def test_a_worker_whose_thread_was_deleted_can_write_nothing(thread):
    held = claimed(services.start_run(thread=thread, text="first"))
    services.delete_thread(thread_id=thread.pk, by="lin")
    with pytest.raises(Fenced):
        commit_one(Progress(held=held, entries=[ai("late")]))
    assert not Event.objects.exists()


def test_deleting_a_thread_that_does_not_exist_is_refused():
    with pytest.raises(ThreadNotFound):
        services.delete_thread(thread_id=uuid4(), by="lin")


def test_a_person_sees_their_own_threads_and_runs_and_nobody_elses():
    mine, other = RunFactory(), RunFactory()
    lin = mine.thread.owner
    assert list(Thread.objects.all().visible_to(lin)) == [mine.thread]
    assert list(Run.objects.all().visible_to(lin)) == [mine]
    lin.is_active = False
    assert not Thread.objects.all().visible_to(lin).exists()
    assert not Run.objects.all().visible_to(lin).exists()
    assert other.thread.owner != lin

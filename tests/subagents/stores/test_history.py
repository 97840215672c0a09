"""What is known of a definition's past, and that nothing of it is ever lost."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING, Any

import pytest
from django.contrib.admin.models import ADDITION, CHANGE, DELETION, LogEntry
from django.contrib.auth import get_user_model

from subagents import registry, services
from subagents.errors import InvalidDefinition, NameTaken, StaleVersion, StorageFailed
from subagents.kinds import AGENT, SUBAGENT, Kind
from subagents.services import Actor
from tests.subagents.stores.changing import TESTER, both_kinds, change_outside, document, history, make, only_files

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("write_config")]


@both_kinds
def test_each_change_is_a_revision_with_author_and_the_whole_document(kind: Kind[Any]):
    ada = get_user_model().objects.create_user("ada")
    made = services.create(kind, document(), actor=Actor(user=ada))
    services.update(kind, "scout", {"enabled": False}, expected_version=made.version, actor=TESTER)
    newest, first = services.revisions(kind, "scout")
    assert (first.number, first.author, first.author_label) == (1, ada, "ada")
    assert (newest.number, newest.action, newest.author, newest.author_label) == (2, "disabled", None, "test")
    assert newest.document == {**kind.to_plain(made), "enabled": False}
    ada.delete()
    first.refresh_from_db()
    assert (first.author, first.author_label) == (None, "ada")


@both_kinds
def test_what_a_person_does_is_in_the_log_of_the_admin(kind: Kind[Any]):
    actor = Actor(user=get_user_model().objects.create_user("ada"))
    made = services.create(kind, document(), actor=actor)
    made = services.update(kind, "scout", {"enabled": False}, expected_version=made.version, actor=actor)
    services.delete(kind, "scout", expected_version=made.version, actor=actor)
    entries = LogEntry.objects.order_by("pk")
    assert [(entry.action_flag, entry.object_id) for entry in entries] == [
        (flag, "managed-scout") for flag in (ADDITION, CHANGE, DELETION)
    ]
    assert entries[1].change_message == '[{"changed": {"fields": ["enabled"]}}]'


@both_kinds
def test_what_was_changed_by_hand_is_in_the_history_before_the_next_change(
    kind: Kind[Any], backend: str, tmp_path: Path
):
    made = make(kind)
    change_outside(kind, backend, tmp_path, display_name="By hand")
    with pytest.raises(StaleVersion) as stale:
        services.update(kind, "scout", {"enabled": False}, expected_version=made.version, actor=TESTER)
    assert stale.value.changes == {"display_name": ("", "By hand")}
    services.update(kind, "scout", {"enabled": False}, expected_version=stale.value.current, actor=TESTER)
    newest, outside, first = services.revisions(kind, "scout")
    assert [newest.action, outside.action, first.action] == ["disabled", "outside", "created"]
    assert (outside.document["display_name"], outside.author_label) == ("By hand", "")
    assert newest.document == {**outside.document, "enabled": False}


@both_kinds
def test_a_broken_row_is_repaired_or_deleted_with_its_version_and_what_it_held_is_kept(
    kind: Kind[Any], backend: str, tmp_path: Path
):
    make(kind)
    change_outside(kind, backend, tmp_path, tools="bash")
    now = registry.current(max_age=0)
    rows = now.agents if kind is AGENT else [entry for entry in now.catalogue.entries if entry.name == "scout"]
    [row] = rows
    version = row.agent.version if kind is AGENT else row.definition.version
    assert row.problems[0].startswith("tools: expected a list of names or null")
    with pytest.raises(NameTaken):
        make(kind)
    with pytest.raises(InvalidDefinition):
        services.update(kind, "scout", {"enabled": False}, expected_version=version, actor=TESTER)
    services.replace(kind, "scout", document(), expected_version=version, actor=TESTER)
    assert history(kind) == ["repaired", "outside", "created"]
    assert services.revisions(kind, "scout")[1].document["tools"] == "bash"


@only_files
def test_what_a_file_held_that_was_no_document_is_kept_as_text(tmp_path: Path):
    make(SUBAGENT)
    (tmp_path / "managed-subagents" / "scout.json").write_bytes(b"{half \xff")
    [broken] = registry.store(SUBAGENT).all().invalid
    services.delete(SUBAGENT, "scout", expected_version=broken.version, actor=TESTER)
    assert history(SUBAGENT) == ["deleted", "outside", "created"]
    assert services.revisions(SUBAGENT, "scout")[1].document == {"unreadable": "{half \ufffd"}


@only_files
def test_a_fault_of_the_disk_leaves_definition_and_history_as_they_were(monkeypatch: pytest.MonkeyPatch):
    made = make(SUBAGENT)

    def fail(*_arguments: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as broken:
        broken.setattr(os, "fsync", fail)
        for change in (
            lambda: services.update(SUBAGENT, "scout", {"enabled": False}, expected_version=made.version, actor=TESTER),
            lambda: make(SUBAGENT, "ranger"),
        ):
            with pytest.raises(StorageFailed, match="No space left"):
                change()
        assert isinstance(services.set_enabled(SUBAGENT, ["scout"], False, actor=TESTER)["scout"], StorageFailed)
    assert registry.store(SUBAGENT).all().items == (made,)
    assert history(SUBAGENT) == ["created"]
    assert history(SUBAGENT, "ranger") == []


@both_kinds
def test_nothing_is_left_of_a_refused_change(kind: Kind[Any]):
    made = make(kind)
    with pytest.raises(InvalidDefinition):
        services.update(kind, "scout", {"model": 7}, expected_version=made.version, actor=TESTER)
    assert registry.store(kind).get("scout") == made
    assert history(kind) == ["created"]

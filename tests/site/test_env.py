from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from django.core.exceptions import ImproperlyConfigured

from deerflow_site.env import env_bool, env_choice, env_int, env_list, env_text
from tests.site.processes import BASE_DIR

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("written", "meant"), [("1", True), ("Yes", True), (" on ", True), ("0", False), ("no", False)]
)
def test_a_switch_reads_the_usual_words(monkeypatch: pytest.MonkeyPatch, written: str, meant: bool):
    monkeypatch.setenv("SWITCH", written)
    assert env_bool("SWITCH", default=not meant) is meant


def test_an_unset_or_empty_variable_means_its_default(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("EMPTY", "  ")
    assert env_bool("EMPTY", default=True) is True
    assert env_int("EMPTY", default=7, minimum=1, maximum=9) == 7
    assert env_list("NEVER_SET", default=("a",)) == ["a"]
    assert env_choice("NEVER_SET", default="a", choices=("a", "b")) == "a"


def test_a_list_drops_empty_parts(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HOSTS", "a.example, ,b.example,")
    assert env_list("HOSTS") == ["a.example", "b.example"]


def test_a_secret_may_come_from_a_file_and_the_variable_itself_wins(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    (tmp_path / "key").write_text("from the file\n")
    monkeypatch.setenv("KEY_FILE", str(tmp_path / "key"))
    assert env_text("KEY") == "from the file"
    monkeypatch.setenv("KEY", "from the variable")
    assert env_text("KEY") == "from the variable"


def test_an_unreadable_secret_file_names_its_variable(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("KEY_FILE", str(tmp_path / "absent"))
    with pytest.raises(ImproperlyConfigured, match="KEY_FILE: cannot read"):
        env_text("KEY")


@pytest.mark.parametrize(
    ("variable", "nonsense"),
    [
        ("DEBUG", "maybe"),
        ("LEASE_SECONDS", "soon"),
        ("LEASE_SECONDS", "600"),
        ("RUN_WORKERS", "0"),
        ("DATABASE_URL", "mysql://somewhere/else"),
        ("DATABASE_URL", "nonsense"),
        ("SUBAGENTS_ADMIN", "shiny"),
        ("SCRIPT_NAME", "agents"),
        ("TZ", "Mars/Olympus"),
        ("LOG_LEVEL", "chatty"),
        ("SECRET_KEY_FILE", "/nowhere/at/all"),
    ],
)
def test_nonsense_in_a_variable_stops_the_start_with_its_name(tmp_path: Path, variable: str, nonsense: str):
    environment = {**os.environ, "DEER_FLOW_HOME": str(tmp_path), variable: nonsense}
    started = subprocess.run(
        [sys.executable, "manage.py", "check"], cwd=BASE_DIR, env=environment, capture_output=True, text=True
    )
    assert started.returncode != 0
    assert variable in started.stderr.strip().splitlines()[-1]

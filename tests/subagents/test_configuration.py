"""The configuration file where it lies: named but absent, broken while everything runs, read on a foreign machine."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from django.core.management import CommandError

from deerflow_site import startup
from engine.config.errors import Severity
from subagents import registry
from subagents.checks import check_subagents
from subagents.errors import ConfigRefused
from subagents.models import ConfigSnapshot
from subagents.registry import Observer

if TYPE_CHECKING:
    from pytest_django.fixtures import Settings

    from tests.subagents.conftest import WriteConfig

pytestmark = pytest.mark.django_db(transaction=True)

BASE_DIR = Path(__file__).resolve().parents[2]
SCOUT = "subagents: {custom_agents: {scout: {description: Finds things., system_prompt: Look.}}}"
CHINESE = """\
subagents:
  custom_agents:
    analyst:
      description: 分析数据并写出结论
      system_prompt: 你是一名数据分析师。
"""


@pytest.fixture
def nowhere(write_config: WriteConfig, settings: Settings, tmp_path: Path) -> Path:
    """A file that DEER_FLOW_CONFIG names and that is not there, as when its folder was not mounted."""
    settings.CONFIG_FILE = tmp_path / "not-mounted" / "config.yaml"
    settings.CONFIG_FILE_NAMED = True
    registry.forget()
    return settings.CONFIG_FILE


def test_a_named_file_that_is_not_there_ends_the_start_with_variable_and_path(nowhere: Path):
    with pytest.raises(CommandError) as ended:
        startup.check_config()
    assert f"DEER_FLOW_CONFIG names {nowhere}, which does not exist" in str(ended.value)
    with pytest.raises(ConfigRefused):
        Observer().current()
    (error,) = check_subagents()
    assert error.is_serious()
    assert str(nowhere) in error.msg


def test_a_named_file_that_goes_away_leaves_the_last_good_one_in_force(write_config: WriteConfig, settings: Settings):
    settings.CONFIG_FILE_NAMED = True
    path = write_config(SCOUT)
    running = Observer()
    running.current()
    path.unlink()
    assert "scout" in running.current(fresh=True).catalogue.runnable
    assert "scout" in Observer().current().catalogue.runnable
    assert running.current().config_refused
    path.write_text(SCOUT, encoding="utf-8")
    assert not running.current(fresh=True).config_refused


@pytest.mark.parametrize(
    "broken",
    [
        CHINESE.encode("gbk"),
        b"subagents:\n\tagents: {}\n",
        b"subagents: {agents: {bash: {timeout_seconds: 300}, bash: {max_turns: 5}}}",
        b"subagents: !!python/name:os.system",
        b"subagents: {timeout_second: 10}",
        b"\x00" * 20,
        b"subagents: [",
    ],
)
def test_whatever_is_saved_over_a_good_file_the_last_good_one_stays_and_the_reason_is_said(
    write_config: WriteConfig, broken: bytes
):
    path = write_config(SCOUT)
    running = Observer()
    running.current()
    path.write_bytes(broken)
    now = running.current(fresh=True)
    assert now.config_refused
    assert "scout" in now.catalogue.runnable
    assert Severity.REFUSED in {problem.severity for problem in now.problems}
    assert all(problem.line >= 1 and problem.message for problem in now.problems)
    assert ConfigSnapshot.objects.get().text == SCOUT
    path.write_text("", encoding="utf-8")
    assert not running.current(fresh=True).config_refused


def test_a_machine_without_utf_8_locale_reads_the_same_file(tmp_path: Path):
    (tmp_path / "config.yaml").write_text(CHINESE, encoding="utf-8")
    program = (
        "import sys, django; django.setup()\n"
        "from django.conf import settings\n"
        "from subagents import configuration\n"
        "assert not sys.flags.utf8_mode\n"
        "result = configuration.look(settings.CONFIG_FILE, None, fresh=True).result\n"
        "print(ascii(result.config.subagents.custom_agents['analyst'].description), result.problems)\n"
    )
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith(("LC_", "LANG"))},
        "DJANGO_SETTINGS_MODULE": "deerflow_site.settings",
        "DEER_FLOW_CONFIG": str(tmp_path / "config.yaml"),
        "DEER_FLOW_HOME": str(tmp_path / "home"),
        "LC_ALL": "POSIX",
        "PYTHONUTF8": "0",
        "PYTHONCOERCECLOCALE": "0",
        "PYTHONPATH": str(BASE_DIR),
    }
    said = subprocess.run(
        [sys.executable, "-c", program], env=environment, cwd=tmp_path, capture_output=True, timeout=60, check=False
    )
    assert said.returncode == 0, said.stderr.decode("utf-8", "replace")
    assert said.stdout.decode().strip() == f"{'分析数据并写出结论'!a} ()"

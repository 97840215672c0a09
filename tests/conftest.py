"""What every test shares: its own home folder, no network but loopback, honest words about what was left out."""

from __future__ import annotations

import ipaddress
import os
import shutil
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from asgiref.sync import SyncToAsync
from django.conf import settings
from django.db import connection, connections
from django.test import override_settings
from django.utils import translation
from hypothesis import HealthCheck
from hypothesis import settings as examples

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

_DATABASE_FIXTURES = {"db", "transactional_db", "django_db_reset_sequences", "live_server", "admin_client"}


@pytest.fixture(autouse=True, scope="session")
def home_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """DEER_FLOW_HOME of the tests, so that none touches the developer's own."""
    home = tmp_path_factory.mktemp("deer-flow-home")
    home.chmod(0o700)
    with override_settings(DEER_FLOW_HOME=home):
        yield home


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None, django_db_blocker: Any) -> Iterator[None]:
    """The test database, which PostgreSQL drops only once the threads that tests left behind let go of it."""
    yield
    if connection.vendor == "postgresql":
        with django_db_blocker.unblock(), connection.cursor() as cursor:
            cursor.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )


@pytest.fixture(autouse=True)
def no_connection_of_an_earlier_test() -> None:
    """The thread behind `sync_to_async` outlives each test; a server may have closed its connection meanwhile."""
    SyncToAsync.single_thread_executor.submit(connections.close_all).result()


@pytest.fixture(autouse=True)
def no_language_of_an_earlier_test() -> None:
    """A request answered in Chinese leaves its thread with that language; the next test begins with the default."""
    translation.deactivate()


@pytest.fixture
def child_environment(home_folder: Path) -> dict[str, str]:
    """Environment for a process of ours that a test starts on the test database (needs `transactional_db`)."""
    return process_environment(home_folder)


def process_environment(home: Path) -> dict[str, str]:
    """What leads a process of ours to the test database and this home folder."""
    return {**os.environ, "DEER_FLOW_HOME": str(home), "DATABASE_URL": _test_database_url()}


def _test_database_url() -> str:
    database = connection.settings_dict
    if connection.vendor == "sqlite":
        return f"sqlite:///{database['NAME']}"
    login = database["USER"] + (f":{database['PASSWORD']}" if database["PASSWORD"] else "")
    return f"postgres://{login}@{database['HOST'] or '127.0.0.1'}:{database['PORT'] or 5432}/{database['NAME']}"


def _only_loopback(event: str, arguments: tuple[Any, ...]) -> None:
    if event != "socket.connect" or not isinstance(arguments[1], tuple):
        return
    host = str(arguments[1][0])
    try:
        loopback = ipaddress.ip_address(host.partition("%")[0]).is_loopback
    except ValueError:
        loopback = host == "localhost"
    if not loopback:
        raise PermissionError(f"a test may not connect to {host}")


def pytest_configure(config: pytest.Config) -> None:
    from deerflow_site.translations import compile_translations

    sys.addaudithook(_only_loopback)
    # How long examples take tells how busy the machine is.
    examples.register_profile("busy machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
    examples.load_profile("busy machine")
    compile_translations()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--database-only", action="store_true", help="only tests that use the database: the second run, on PostgreSQL"
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--database-only"):
        _keep(config, items, _uses_the_database)
    if _nothing_left_out() and not _on_postgres():
        _keep(config, items, lambda item: not item.get_closest_marker("postgres"))  # they have a run of their own
    for item in items:
        lack = _what_is_missing(item)
        if lack:
            item.add_marker(pytest.mark.skip(reason=lack))


def _keep(config: pytest.Config, items: list[pytest.Item], wanted: Callable[[pytest.Item], bool]) -> None:
    kept = [item for item in items if wanted(item)]
    config.hook.pytest_deselected(items=[item for item in items if not wanted(item)])
    items[:] = kept


def _nothing_left_out() -> bool:
    return os.environ.get("NOTHING_LEFT_OUT") == "1"


def _on_postgres() -> bool:
    return str(settings.DATABASES["default"]["ENGINE"]).endswith("postgresql")


def _uses_the_database(item: pytest.Item) -> bool:
    markers = {marker.name for marker in item.iter_markers()}
    fixtures = set(getattr(item, "fixturenames", ()))
    return bool(markers & {"django_db", "postgres", "workers", "e2e"} or fixtures & _DATABASE_FIXTURES)


def _what_is_missing(item: pytest.Item) -> str:
    """Why this machine cannot run the test, and how to change that; "" when it can."""
    if item.get_closest_marker("e2e") and not _chromium():
        return "no chromium: apt-get install chromium"
    if item.get_closest_marker("postgres") and not _on_postgres():
        return "not on PostgreSQL: set TEST_DATABASE_URL or apt-get install postgresql, then make test"
    if item.get_closest_marker("bubblewrap") and shutil.which("bwrap") is None:
        return "no bubblewrap: apt-get install bubblewrap"
    return ""


def _chromium() -> str | None:
    return shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, Any, Any]:
    """Where everything has to run, a skipped test has failed, unless its marker says why it never can run there."""
    report = yield
    excused = item.get_closest_marker("cannot_run_here") or hasattr(report, "wasxfail")
    if report.skipped and _nothing_left_out() and not excused:
        report.outcome = "failed"
        report.longrepr = f"left out, and nothing may be: {report.longrepr}"
    return report


def pytest_terminal_summary(terminalreporter: Any) -> None:
    # The reports tell, because the tests may have run in processes of their own.
    skipped = [report.longrepr[2] for report in terminalreporter.stats.get("skipped", ())]
    for lack, count in sorted(Counter(skipped).items()):
        terminalreporter.write_line(f"Left out: {count} tests ({lack.removeprefix('Skipped: ')})")
    totals_file = os.environ.get("TEST_TOTALS_FILE")
    one_of_several = hasattr(terminalreporter.config, "workerinput")  # which report to the one that counts
    if totals_file and not one_of_several:
        counts = {word: len(terminalreporter.stats.get(word, ())) for word in ("passed", "failed", "error", "skipped")}
        with Path(totals_file).open("a", encoding="ascii") as file:
            file.write(" ".join(f"{word}={count}" for word, count in counts.items()) + "\n")

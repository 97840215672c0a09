"""The configuration file as this process sees it: read when it changes, the last good one kept."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from django.conf import settings
from django.db import DatabaseError, IntegrityError, connection, transaction
from django.utils import timezone

from engine.config import reader
from engine.config.errors import Problem, Severity
from engine.reasons import Reason
from engine.reasons import gettext_noop as _
from subagents.errors import ConfigRefused
from subagents.models import ConfigSnapshot

if TYPE_CHECKING:
    from pathlib import Path

    from engine.config.reader import ReadResult
    from engine.config.schema import Config

logger = logging.getLogger(__name__)

_LONGEST_FILE: Final = (1 << 20) + 1  # one byte more than the reader accepts, so that it can say so
_UNSETTLED_SECONDS: Final = 2.0  # two writes closer together than a file system's clock leave the same stat
_SNAPSHOT_ID: Final = 1

Stat = tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """One look at the file. `stat` None: the file is not there; `settled` False: it may change unseen."""

    path: Path
    stat: Stat | None
    settled: bool
    sha256: str
    text: str | None  # of a file that was accepted
    result: ReadResult


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """The configuration in force. `refused` True: the file is broken, this is the last good one."""

    config: Config
    reading: Reading  # the latest look at the file, good or bad
    source: ReadResult  # what the configuration in force was read as
    sha256: str
    refused: bool = False


def look(path: Path, before: Reading | None, *, fresh: bool, log: bool = False) -> Reading:
    """Read and parse the file, unless it is the one of `before`. Never raises for what it finds."""
    stat = _stat(path)
    if before is not None and before.path == path and not fresh and before.settled and before.stat == stat:
        return before
    if stat is None:
        return _absent(path)
    try:
        with path.open("rb") as file:
            raw = file.read(_LONGEST_FILE)
    except FileNotFoundError:
        return _absent(path)
    except OSError as fault:
        problem = _problem(path, Severity.REFUSED, Reason(_("cannot be read: %(error)s"), error=fault.strerror))
        return _reading(path, stat, b"", reader.ReadResult(None, (problem,)))
    sha256 = reader.signature(raw)
    if before is not None and before.path == path and before.sha256 == sha256:
        return _reading(path, stat, raw, before.result)
    result = reader.read_config(raw, file_name=path.name)
    for problem in result.problems if log else ():
        logger.log(logging.ERROR if problem.severity is Severity.REFUSED else logging.WARNING, "%s", problem)
    return _reading(path, stat, raw, result)


def accept(reading: Reading, before: Accepted | None) -> Accepted:
    """Decide which configuration is in force: the file's, else the last good one this process or the database knows.

    Raises ConfigRefused when the file is refused and there was never a good one.
    """
    config = reading.result.config
    if config is not None:
        return Accepted(config=config, reading=reading, source=reading.result, sha256=reading.sha256)
    if before is None or before.reading.path != reading.path:
        before = _from_snapshot(reading)
    if before is None:
        raise ConfigRefused(reading.result.problems)
    return Accepted(config=before.config, reading=reading, source=before.source, sha256=before.sha256, refused=True)


def remember(reading: Reading) -> None:
    """Keep the text of an accepted file for processes that start while it is broken.

    Called once per new good file; a failure is logged and costs only that safety.
    """
    text = reading.text
    if text is None or not _has_snapshots():
        return
    transaction.on_commit(lambda: _store_snapshot(text, reading.sha256))


def _store_snapshot(text: str, sha256: str) -> None:
    now = timezone.now()
    try:
        stored = ConfigSnapshot.objects.filter(pk=_SNAPSHOT_ID)
        if stored.exclude(sha256=sha256).update(text=text, sha256=sha256, accepted_at=now) or stored.exists():
            return
        with transaction.atomic():
            ConfigSnapshot.objects.create(pk=_SNAPSHOT_ID, text=text, sha256=sha256, accepted_at=now)
    except IntegrityError:
        return  # another process was first
    except DatabaseError:
        logger.exception("the accepted configuration could not be kept in the database")


def _from_snapshot(reading: Reading) -> Accepted | None:
    if not _has_snapshots():
        return None
    snapshot = ConfigSnapshot.objects.filter(pk=_SNAPSHOT_ID).first()
    if snapshot is None:
        return None
    result = reader.read_config(snapshot.text.encode("utf-8"), file_name=reading.path.name)
    if result.config is None:
        return None
    return Accepted(config=result.config, reading=reading, source=result, sha256=snapshot.sha256, refused=True)


def _has_snapshots() -> bool:
    """Before the first migration the table is not there, and the file must still be readable."""
    return table_exists(ConfigSnapshot._meta.db_table)


def table_exists(name: str) -> bool:
    """Say whether the database holds a table yet."""
    with connection.cursor() as cursor:
        return name in connection.introspection.table_names(cursor)


def _stat(path: Path) -> Stat | None:
    try:
        found = path.stat()
    except OSError:
        # Only absence means "no file"; whatever else is wrong shows when it is opened.
        return (0, 0, 0, 0, 0) if path.is_symlink() or path.exists() else None
    # The inode's own time of change cannot be set back: a rewrite that restores size and modification time shows.
    return found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino, found.st_dev


def _reading(path: Path, stat: Stat, raw: bytes, result: ReadResult) -> Reading:
    settled = time.time() - max(stat[:2]) / 1e9 > _UNSETTLED_SECONDS
    text = None if result.config is None else raw.decode("utf-8")
    return Reading(path=path, stat=stat, settled=settled, sha256=reader.signature(raw), text=text, result=result)


def _absent(path: Path) -> Reading:
    if settings.CONFIG_FILE_NAMED:
        # Whoever named a file wants what stands in it; a folder that was not mounted must not become the defaults.
        sentence = _("DEER_FLOW_CONFIG names %(path)s, which does not exist or cannot be reached from here")
        message = Reason(sentence, path=path)
        result = reader.ReadResult(None, (_problem(path, Severity.REFUSED, message),))
    else:
        message = Reason(_("the file does not exist; every option has its default"))
        problem = _problem(path, Severity.WARNING, message)
        result = reader.ReadResult(reader.default_config(), (problem,))
    return Reading(path=path, stat=None, settled=True, sha256="absent", text=None, result=result)


def _problem(path: Path, severity: Severity, message: Reason) -> Problem:
    return Problem(severity=severity, path="", line=1, column=1, message=message, file_name=path.name)

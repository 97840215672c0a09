"""Definitions as JSON files below DEER_FLOW_HOME, one each, that a person may edit by hand as well."""

from __future__ import annotations

import stat
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, Generic

from engine.config.names import normalise_name
from engine.reasons import Reason, joined, reason_of
from engine.reasons import gettext_noop as _
from engine.text import clean, shorten
from subagents.catalogue import Invalid
from subagents.definitions import NAME_PATTERN, Source
from subagents.errors import Fault, InvalidDefinition, NameTaken, NotFound, StaleVersion, StorageFailed
from subagents.kinds import Item
from subagents.stores import documents
from subagents.stores.base import Contents, Found
from subagents.stores.folder import Folder, Stat, settled_facts

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from subagents.kinds import Kind

_ENDING: Final = ".json"
_UNSETTLED_SECONDS: Final = 2.0  # two writes closer together than a file system's clock leave the same facts
UNREADABLE: Final = _("cannot be read: %(error)s")
_LONGEST_UNREADABLE: Final = 200_000


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seen:
    """What one look found in one file. `settled` False: it may have changed since without its facts telling."""

    facts: Stat
    settled: bool
    found: Found[Any]


# What this process has read, by kind and folder, so that only files that changed are read again.
_seen: dict[tuple[str, str], Mapping[str, _Seen]] = {}
_seen_lock = threading.Lock()


class FileStore(Generic[Item]):
    """The Store over `<home>/<folder of the kind>/<name>.json`. A version is the SHA-256 of the file's bytes.

    Whatever else lies in the folder is one broken row each under its file name and is left alone, but for hidden and
    temporary files, which are not looked at. Source: product.md §2.3.
    """

    def __init__(self, kind: Kind[Item], home: Path) -> None:
        self._kind = kind
        self._folder = Folder(home / kind.folder)

    def signature(self, *, fresh: bool = False) -> str:
        digest = sha256()
        for name, seen in self._look(fresh=fresh).items():
            digest.update(repr((name, seen.found.version, seen.found.invalid)).encode("utf-8", "surrogatepass"))
        return digest.hexdigest()

    def all(self) -> Contents[Item]:
        found = [seen.found for seen in self._look().values()]
        return Contents(
            items=tuple(each.item for each in found if each.item is not None),
            invalid=tuple(each.invalid for each in found if each.invalid is not None),
        )

    def find(self, name: str) -> Found[Item] | None:
        with self._disk(name):
            file_name = self._file_name(name)
            facts = None if file_name is None else self._folder.stat(file_name)
            return None if file_name is None or facts is None else self._read(file_name, facts).found

    def get(self, name: str) -> Item:
        found = self.find(name)
        if found is None:
            raise NotFound(name, noun=self._kind.noun)
        if found.item is None:
            raise InvalidDefinition([("", problem) for problem in _problems(found)])
        return found.item

    def put(self, item: Item, *, expected_version: str | None) -> Item:
        with self._disk(item.name), self._folder.locked():
            found = self.find(item.name)
            if expected_version is None:
                if found is not None or self._clashes(item.name):
                    raise NameTaken(item.name, Source.MANAGED, noun=self._kind.noun)
            else:
                self._check(item.name, found, expected_version)
            self._folder.write(item.name + _ENDING, documents.to_bytes(self._kind.to_plain(item)))
            return self.get(item.name)

    def delete(self, name: str, *, expected_version: str) -> None:
        with self._disk(name), self._folder.locked():
            found = self.find(name)
            file_name = self._file_name(name)
            if found is None or file_name is None:
                raise NotFound(name, noun=self._kind.noun)
            self._check(name, found, expected_version)
            self._folder.remove(file_name)

    def _check(self, name: str, found: Found[Item] | None, expected_version: str) -> None:
        if found is None:
            raise StaleVersion(name, expected=expected_version, current=None)
        if found.version is None:
            sentence = _("%(name)s can only be taken away by hand: %(problems)s")
            raise StorageFailed(Reason(sentence, name=name, problems=joined(_problems(found))))
        if found.version != expected_version:
            raise StaleVersion(name, expected=expected_version, current=found.version)

    def _clashes(self, name: str) -> bool:
        """Some file systems take names that differ in capitals for one."""
        return any(other.casefold() == name + _ENDING for other in self._folder.listing())

    def _file_name(self, name: str) -> str | None:
        """Return the file of a row. A path is made of a valid name, or of what the folder itself lists."""
        if NAME_PATTERN.fullmatch(name):
            return name + _ENDING
        return next((file for file, facts in self._folder.listing().items() if _row_name(file, facts) == name), None)

    @contextmanager
    def _disk(self, name: str) -> Iterator[None]:
        try:
            yield
        except OSError as fault:
            sentence = _("%(folder)s: %(name)s could not be read or stored: %(why)s")
            facts = {"folder": self._folder.path.name, "name": name, "why": fault.strerror or reason_of(fault)}
            raise StorageFailed(Reason(sentence, **facts)) from fault

    def _look(self, *, fresh: bool = False) -> Mapping[str, _Seen]:
        """Read every file that is new or may have changed since the last look; never raises for what it finds."""
        place = (self._kind.name, str(self._folder.path))
        try:
            listing = self._folder.listing()
        except OSError as fault:
            return {"": self._unlisted(fault)}
        before = {} if fresh else _seen.get(place, {})
        now: dict[str, _Seen] = {}
        for file_name, facts in listing.items():
            known = before.get(file_name)
            if known is None or not known.settled or known.facts != settled_facts(facts):
                known = self._read(file_name, facts)
            now[file_name] = known
        with _seen_lock:
            _seen[place] = now
        return now

    def _unlisted(self, fault: OSError) -> _Seen:
        name = self._folder.path.name + "/"
        broken: Found[Any] = Found(
            version=None, document={}, invalid=_invalid(name, Reason(UNREADABLE, error=fault.strerror))
        )
        return _Seen(facts=(0, 0, 0, 0, 0), settled=False, found=broken)

    def _read(self, file_name: str, facts: os.stat_result) -> _Seen:
        found = self._foreign(file_name, facts)
        if found is None:
            try:
                raw, facts = self._folder.read(file_name, documents.LARGEST_FILE + 1)
            except OSError as fault:
                found = _broken(_row_name(file_name, facts), Reason(UNREADABLE, error=fault.strerror))
            else:
                found = self._judge(file_name, raw, facts)
        age = time.time() - max(facts.st_mtime, facts.st_ctime)
        return _Seen(facts=settled_facts(facts), settled=age > _UNSETTLED_SECONDS, found=found)

    def _foreign(self, file_name: str, facts: os.stat_result) -> Found[Any] | None:
        """Judge what is no file of ours by its looks alone."""
        name = _row_name(file_name, facts)
        if stat.S_ISLNK(facts.st_mode):
            return _broken(name, Reason(_("this is a symbolic link, which is not followed")))
        if stat.S_ISDIR(facts.st_mode):
            return _broken(name, Reason(_("this is a folder")))
        if not stat.S_ISREG(facts.st_mode):
            return _broken(name, Reason(_("this is not a regular file")))
        return None

    def _judge(self, file_name: str, raw: bytes, facts: os.stat_result) -> Found[Any]:
        name = _row_name(file_name, facts)
        if len(raw) > documents.LARGEST_FILE:
            sentence = _("the file is larger than %(most)s MiB")
            return _broken(name, Reason(sentence, most=documents.LARGEST_FILE >> 20))
        version = sha256(raw).hexdigest()
        try:
            document = documents.from_bytes(raw)
        except ValueError as fault:
            text = shorten(clean(raw.decode("utf-8", "replace")), _LONGEST_UNREADABLE)
            unreadable: dict[str, object] = {"unreadable": text}
            problems = (*_misnamed(file_name), reason_of(fault))
            return Found(version=version, document=unreadable, invalid=_invalid(name, *problems, version=version))
        faults = [*(Fault("", problem) for problem in _misnamed(file_name))]
        try:
            item = self._kind.validate(document)
            if not faults and document.get("name") != name:
                faults.append(Fault("name", Reason(_("expected %(name)s, as the file is named"), name=name)))
        except InvalidDefinition as refused:
            faults += refused.faults
        if faults:
            problems = InvalidDefinition(faults).reasons
            return Found(version=version, document=document, invalid=_invalid(name, *problems, version=version))
        stored: Any = replace(  # type: ignore[type-var]
            item, version=version, updated_at=datetime.fromtimestamp(facts.st_mtime, tz=UTC)
        )
        return Found(version=version, document=document, item=stored)


def _row_name(file_name: str, facts: os.stat_result) -> str:
    """Return the name of a file's row: the definition's where it bears one, else one that no definition can have."""
    stem = file_name.removesuffix(_ENDING)
    if stem != file_name and NAME_PATTERN.fullmatch(stem):
        return stem
    shown = file_name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    if stat.S_ISDIR(facts.st_mode):
        return f"{shown}/"
    return f"./{shown}" if NAME_PATTERN.fullmatch(shown) else shown


def _misnamed(file_name: str) -> tuple[str, ...]:
    stem = file_name.removesuffix(_ENDING)
    if stem == file_name:
        return (Reason(_("the file's name does not end in .json")),)
    if NAME_PATTERN.fullmatch(stem):
        return ()
    try:
        return (Reason(_("the file must be called %(name)s.json"), name=normalise_name(stem)),)
    except ValueError as refused:
        sentence = _("the file must be called like its definition: %(reason)s")
        return (Reason(sentence, reason=reason_of(refused)),)


def _problems(found: Found[Any]) -> tuple[str, ...]:
    return found.invalid.problems if found.invalid is not None else ()


def _invalid(name: str, *problems: str, version: str | None = None) -> Invalid:
    return Invalid(source=Source.MANAGED, name=name, problems=problems, version=version)


def _broken(name: str, problem: str) -> Found[Any]:
    return Found(version=None, document={}, invalid=_invalid(name, problem))

"""Fails when a sentence marked for translation has no finished translation, or a translation has no sentence any more.

Collects the sentences anew into a copy of the tree, so that running it changes nothing. Needs gettext's xgettext.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import polib

ROOT = Path(__file__).resolve().parent.parent
_FOLDERS = ("access", "deerflow_site", "engine", "runs", "subagents", "templates", "locale")
_MESSAGES = ("-l", "zh_Hans", "--no-obsolete", "--no-location", "--no-wrap", "-v", "0")


def main() -> int:
    if shutil.which("xgettext") is None:
        print("gettext is missing: apt-get install gettext")
        return 1
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "tree"
        copy.mkdir()
        for name in _FOLDERS:
            shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__", "*.mo"))
        shutil.copy(ROOT / "manage.py", copy)
        subprocess.run(
            [sys.executable, "manage.py", "makemessages", *_MESSAGES],
            cwd=copy,
            env={**os.environ, "DEER_FLOW_HOME": f"{folder}/home"},
            check=True,
            stdout=subprocess.DEVNULL,
        )
        faults = [fault for path in sorted(copy.glob("locale/*/LC_MESSAGES/*.po")) for fault in faults_of(path)]
    print("\n".join(faults))
    return 1 if faults else 0


def faults_of(path: Path) -> list[str]:
    """One line per entry that is fuzzy, empty, or changes the placeholders of its sentence."""
    name = path.parent.parent.name
    faults = []
    for entry in polib.pofile(str(path)):
        if entry.obsolete:
            continue
        if "fuzzy" in entry.flags:
            faults.append(f"{name}: fuzzy: {entry.msgid!r}")
        elif not entry.translated():
            faults.append(f"{name}: not translated: {entry.msgid!r}")
    return faults


if __name__ == "__main__":
    sys.exit(main())

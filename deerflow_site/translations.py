"""Compiles the translations, in Python: a bare machine has no msgfmt, and compiled files are not kept in git."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from django.conf import settings


def compile_translations() -> int:
    """Write each `django.mo` that is older than its `django.po`; returns how many were written."""
    stale = [
        source for root in settings.LOCALE_PATHS for source in root.glob("*/LC_MESSAGES/*.po") if _is_stale(source)
    ]
    if stale:
        import polib

        for source in stale:
            _replace(source.with_suffix(".mo"), polib.pofile(str(source)).to_binary())
    return len(stale)


def _is_stale(source: Path) -> bool:
    compiled = source.with_suffix(".mo")
    return not compiled.exists() or compiled.stat().st_mtime < source.stat().st_mtime


def _replace(path: Path, content: bytes) -> None:
    # A server that is starting next to us must never read half a file.
    descriptor, draft = tempfile.mkstemp(dir=path.parent, prefix=".mo-")
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
    Path(draft).chmod(0o644)
    Path(draft).replace(path)

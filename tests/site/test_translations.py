from __future__ import annotations

import gettext
import os
from typing import TYPE_CHECKING

from deerflow_site.translations import compile_translations

if TYPE_CHECKING:
    from pathlib import Path

    from django.conf import LazySettings

HEADER = 'msgid ""\nmsgstr "Content-Type: text/plain; charset=UTF-8\\n"\n\n'


def test_a_catalogue_is_compiled_when_it_is_newer_and_only_then(settings: LazySettings, tmp_path: Path):
    settings.LOCALE_PATHS = [tmp_path]
    source = tmp_path / "zh_Hans" / "LC_MESSAGES" / "django.po"
    source.parent.mkdir(parents=True)
    source.write_text(f'{HEADER}msgid "Run"\nmsgstr "运行"\n', encoding="utf-8")
    assert compile_translations() == 1
    assert compile_translations() == 0
    compiled = source.with_suffix(".mo")
    os.utime(compiled, (0, 0))
    assert compile_translations() == 1
    with compiled.open("rb") as file:
        assert gettext.GNUTranslations(file).gettext("Run") == "运行"
    assert sorted(path.name for path in source.parent.iterdir()) == ["django.mo", "django.po"]

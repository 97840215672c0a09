from __future__ import annotations

import re
from typing import TYPE_CHECKING

import yaml
from django.core.management import call_command

if TYPE_CHECKING:
    from pathlib import Path


def test_the_description_validates_without_a_warning_and_names_its_enums_for_what_they_are(tmp_path: Path):
    file = tmp_path / "openapi.yaml"
    call_command("spectacular", file=str(file), validate=True, fail_on_warn=True)
    schemas = yaml.safe_load(file.read_text(encoding="utf-8"))["components"]["schemas"]
    enums = [name for name, schema in schemas.items() if "enum" in schema]
    assert enums
    # Two enumerations that nobody named get a digest for a name, which changes whenever either of them does.
    assert not [name for name in enums if re.fullmatch(r"\w+[0-9A-F][0-9a-f]{2}Enum", name)]

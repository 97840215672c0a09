"""The examples of docs/api.md do what they say, against a real server."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from django.conf import settings

from access.api.problems import CODES
from subagents.models import Revision
from tests.access.calling import caller
from tests.subagents.api.conftest import EVERYTHING

if TYPE_CHECKING:
    from tests.subagents.conftest import WriteConfig

DOCUMENT = (settings.BASE_DIR / "docs" / "api.md").read_text(encoding="utf-8")


def example(language: str, url: str, key: str) -> str:
    (found,) = re.findall(rf"```{language}\n(.*?)```", DOCUMENT, re.DOTALL)
    return str(found).replace("http://127.0.0.1:8000", url).replace("sa_live_…", key)


@pytest.mark.django_db(transaction=True)
def test_the_examples_run(live_server: Any, write_config: WriteConfig):
    who = caller(*EVERYTHING)
    shell = example("bash", live_server.url, who.key)
    ran = subprocess.run(["bash", "-euc", shell], capture_output=True, text=True, check=True)
    values, position = [], 0
    while position < len(ran.stdout):
        value, end = json.JSONDecoder().raw_decode(ran.stdout, position)
        values.append(value)
        position = end
    listed, made, changed, switched, history = values
    assert listed["results"] == []
    assert made["definition"]["tools"] == ["web_search", "web_fetch"]
    assert changed["effective"]["max_turns"] == 60
    assert switched["results"][0]["result"] == "changed"
    assert [row["action"] for row in history["results"]] == ["disabled", "changed", "created"]

    python = example("python", live_server.url, who.key)
    said = subprocess.run([sys.executable, "-c", python], capture_output=True, text=True, check=True).stdout
    assert said.startswith("80\n")
    assert "max_turns 80 from managed" in said
    assert Revision.objects.filter(name="researcher").count() == 4


def test_every_code_is_in_the_table_of_errors():
    table = DOCUMENT[DOCUMENT.index("## Errors") :]
    assert [code for code in CODES if f"`{code}`" not in table] == []

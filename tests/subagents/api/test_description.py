"""The API describes itself: every operation with an example that holds, and pages that need nothing from elsewhere."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from django.conf import settings
from django.test import Client
from django.urls import set_script_prefix

from subagents.api import examples
from tests.access.calling import is_problem
from tests.access.describing import DESCRIPTION, conforms, content, described

if TYPE_CHECKING:
    from tests.access.calling import Api

OPERATIONS = [
    pytest.param(path, method, operation, id=f"{method} {path}")
    for path, methods in DESCRIPTION["paths"].items()
    for method, operation in methods.items()
]


@pytest.mark.parametrize(("path", "method", "operation"), OPERATIONS)
def test_every_operation_has_examples_that_fit_its_schema(path: str, method: str, operation: dict[str, Any]):
    assert operation["summary"]
    answers = {status: answer for status, answer in operation["responses"].items() if "content" in answer}
    assert any(status.startswith("2") for status in answers) or method == "delete"
    for answer in answers.values():
        shown = content(answer)
        assert shown["examples"], path
        for example in shown["examples"].values():
            conforms(example["value"], shown["schema"])
    if method in {"post", "put", "patch"} and not path.endswith(("/cancel", "/test")):
        sent = content(operation["requestBody"])
        for example in sent["examples"].values():
            conforms(example["value"], sent["schema"])


@pytest.mark.parametrize(("path", "method", "operation"), OPERATIONS)
def test_every_operation_names_the_errors_it_answers_with(path: str, method: str, operation: dict[str, Any]):
    assert {"401", "403", "429"} <= set(operation["responses"])
    for status, answer in operation["responses"].items():
        if not status.startswith("2"):
            assert set(answer["content"]) == {"application/problem+json"}
            assert answer["description"]
    assert {next(iter(way)) for way in operation["security"]} == {"bearer", "apiKey", "session"}


@pytest.mark.django_db
def test_answers_have_the_shape_that_is_described(api: Api):
    for path, document in (("/subagents", examples.DOCUMENT), ("/agents", examples.AGENT_DOCUMENT)):
        conforms(api("POST", path, document).json(), described(path, "post", 201))
        conforms(api.ok(path), described(path, "get", 200))
        name = document["name"]
        conforms(api.ok(f"{path}/{name}"), described(f"{path}/{{name}}", "get", 200))
        conforms(api.ok(f"{path}/{name}/versions"), described(f"{path}/{{name}}/versions", "get", 200))
        bulk = api("POST", f"{path}/bulk", {"action": "disable", "names": [name, "none"]}).json()
        conforms(bulk, described(f"{path}/bulk", "post", 200))
        wrong = is_problem(api("POST", path, {}), 422, "invalid")
        conforms(wrong, described(path, "post", 422))
    for rest in ("/effective", "/references"):
        conforms(api.ok(f"/subagents/bash{rest}"), described(f"/subagents/{{name}}{rest}", "get", 200))
    conforms(api.ok("/subagents?expand=layers"), described("/subagents", "get", 200))


def test_the_described_pages_come_from_this_site_only():
    page = Client().get("/api/docs")
    assert page.status_code == 200
    text = page.content.decode()
    sources = re.findall(r'(?:src|href)="([^"]+)"', text)
    assert len(sources) >= 4
    assert all(source.startswith("/") for source in sources), sources
    assert not re.search(r"<script>", text)
    assert "'unsafe-eval'" not in page["content-security-policy"]
    script = Client().get(next(source for source in sources if "script" in source.rpartition("?")[2]))
    assert script["content-type"] == "application/javascript"
    assert "/api/schema" in script.content.decode()


def test_below_a_sub_path_everything_is_addressed_below_it():
    set_script_prefix("/agents/")  # as the server's handler does for each request
    try:
        page = Client().get("/api/docs", SCRIPT_NAME="/agents").content.decode()
        schema = json.loads(Client().get("/api/schema", SCRIPT_NAME="/agents").content)
    finally:
        set_script_prefix("/")
    assert "/agents/api/docs?script" in page
    assert schema["servers"] == [{"url": "/agents"}]


def test_the_description_is_whole():
    assert json.loads(Client().get("/api/schema").content)["paths"].keys() == DESCRIPTION["paths"].keys()
    assert Path(settings.BASE_DIR, "docs", "openapi.yaml").stat().st_size > 10_000

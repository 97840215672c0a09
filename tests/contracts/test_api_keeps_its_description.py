"""Whatever is sent to /api/v1, good or bad, the answer is what docs/openapi.yaml announces, and never a 5xx.

schemathesis makes the requests from the description: such as keep it, and such as break it in one place after another.
"""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

import httpx
import pytest
import schemathesis
import yaml
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from access import allowance
from access.models import Allowance
from subagents.api import examples
from tests.subagents.api.conftest import EVERYTHING, caller
from tests.subagents.conftest import forgetful_registry, write_config

if TYPE_CHECKING:
    from schemathesis import Case

    from tests.subagents.api.conftest import Api
    from tests.subagents.conftest import WriteConfig

__all__ = ["forgetful_registry", "write_config"]

pytestmark = pytest.mark.django_db
_OURS = {"authorization", "x-api-key"}  # who asks is not made up
DESCRIPTION = yaml.safe_load((Path(__file__).resolve().parents[2] / "docs/openapi.yaml").read_text(encoding="utf-8"))
OPERATIONS = [found.ok() for found in schemathesis.openapi.from_dict(DESCRIPTION).get_all_operations()]
REQUESTS = 8  # to each operation, in each mode
PROMISES = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
BOUNDED = settings(
    max_examples=REQUESTS,
    derandomize=True,
    database=None,
    deadline=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)


@pytest.fixture
def api(write_config: WriteConfig) -> Api:
    """Somebody who may do everything, in a place where everything that an address can name exists."""
    allowance.forget()
    made = caller(*EVERYTHING)
    assert made("POST", "/subagents", examples.DOCUMENT).status_code == 201
    assert made("POST", "/agents", examples.AGENT_DOCUMENT).status_code == 201
    return made


def existing(api: Api, path: str) -> dict[str, Any]:
    """Path parameters of something that is there."""
    if "{name}" in path:
        name = "analyst" if "/agents/" in path else "researcher"
        return {"name": name, **({"number": 1} if "{number}" in path else {})}
    if "_id}" not in path:
        return {}
    thread = api("POST", "/threads", {}).json()["id"]
    if "{thread_id}" in path:
        return {"thread_id": thread}
    return {"run_id": api("POST", f"/threads/{thread}/runs", {"text": "Hello"}).json()["id"]}


def send(api: Api, case: Case) -> Any:
    """Send a made-up request as any program would; what HTTP itself cannot carry is left out."""
    path = case.path
    for name, value in case.path_parameters.items():
        path = path.replace("{" + name + "}", quote(str(value), safe="%"))
    if case.query:
        path += f"?{urlencode(list(case.query.items()), doseq=True, errors='replace')}"
    headers = {
        name: str(value)
        for name, value in (case.headers or {}).items()
        if str(value).isascii() and str(value).isprintable() and name.lower() not in _OURS
    }
    body = b"" if _absent(case.body) else _encoded(case.body)
    kind = case.media_type or "application/json"
    answer = api.client.generic(case.method.upper(), path, body, kind, headers=headers)
    asked = httpx.Request(case.method.upper(), "http://testserver" + quote(path, safe="/?&=%"))
    said = httpx.Response(answer.status_code, headers=dict(answer.headers), content=answer.content, request=asked)
    said.elapsed = timedelta(0)
    return said


def _absent(body: Any) -> bool:
    return type(body).__name__ == "NotSet"


def _encoded(body: Any) -> bytes:
    return body if isinstance(body, bytes) else json.dumps(body).encode()


@pytest.mark.parametrize("mode", list(GenerationMode), ids=lambda mode: mode.value)
@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: f"{operation.method} {operation.path}")
def test_every_answer_is_one_that_was_announced(api: Api, operation: Any, mode: GenerationMode):
    known = existing(api, operation.path) if mode is GenerationMode.POSITIVE else {}

    @BOUNDED
    @given(case=operation.as_strategy(generation_mode=mode, **({"path_parameters": known} if known else {})))
    def check(case: Case) -> None:
        Allowance.objects.all().delete()
        allowance.forget()
        answer = send(api, case)
        assert answer.status_code != 429, "so many requests are not allowed in a minute"
        case.validate_response(answer, checks=PROMISES)

    check()

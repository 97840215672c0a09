"""Whatever is sent is answered with a problem document, never with a page and never with 500."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from subagents.api import examples
from tests.access.calling import is_problem

if TYPE_CHECKING:
    from tests.access.calling import Api

pytestmark = pytest.mark.django_db
DEEP = b'{"x": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"
NESTED = json.dumps({**examples.DOCUMENT, "token_budget": {"a": {"b": [[[{}]]]}}}).encode()


def document(**fields: Any) -> dict[str, Any]:
    return {**examples.DOCUMENT, **fields}


@pytest.mark.parametrize(
    ("raw", "status", "code"),
    [
        (b"{", 400, "invalid_json"),
        (b"\xff\xfe{}", 400, "invalid_json"),
        (b'{"name": "\xff"}', 400, "invalid_json"),
        (b'{"name": NaN}', 400, "invalid_json"),
        (b'{"max_turns": -Infinity}', 400, "invalid_json"),
        (b'{"name": "a", "name": "b"}', 400, "invalid_json"),
        (b'{"\\ud800": 1, "\\ud800": 2}', 400, "invalid_json"),
        (DEEP, 400, "invalid_json"),
        (b'{"max_turns": ' + b"9" * 5000 + b"}", 400, "invalid_json"),
        ('{"name": "a"}'.encode("utf-16"), 400, "invalid_json"),
        (b"", 422, "invalid"),
        (b"null", 422, "invalid"),
        (b"[]", 422, "invalid"),
        (b'"text"', 422, "invalid"),
        (b"1e400", 422, "invalid"),
        (NESTED, 422, "invalid"),
        (b'{"name": "' + b"x" * (9 << 20) + b'"}', 413, "too_large"),
    ],
    ids=lambda value: repr(value[:24]) if isinstance(value, bytes) else None,
)
def test_a_body_that_is_no_document_says_why(api: Api, raw: bytes, status: int, code: str):
    for method, path in (("POST", "/subagents"), ("POST", "/agents"), ("POST", "/subagents/bulk")):
        is_problem(api(method, path, raw), status, code)
    api("POST", "/subagents", examples.DOCUMENT)
    answer = api("PATCH", "/subagents/researcher", raw, if_match="*")
    if raw:
        is_problem(answer, status, code)


@pytest.mark.parametrize(
    "content_type",
    ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "text/json", "x"],
)
def test_only_json_is_read(api: Api, content_type: str):
    answer = api("POST", "/subagents", json.dumps(examples.DOCUMENT).encode(), content_type=content_type)
    is_problem(answer, 415, "unsupported_media_type")


@pytest.mark.parametrize("content_type", ["application/json; charset=latin-1", "application/merge-patch+json"])
def test_json_under_another_label_is_json(api: Api, content_type: str):
    raw = json.dumps(document(display_name="\u8c03\u67e5"), ensure_ascii=False).encode()
    answer = api("POST", "/subagents", raw, content_type=content_type)
    assert answer.json()["definition"]["display_name"] == "\u8c03\u67e5"


@pytest.mark.parametrize(
    ("fields", "pointer", "words"),
    [
        ({"name": "a\x00b"}, "/name", ""),
        ({"description": "a\x00b"}, "/description", "NUL"),
        ({"system_prompt": "half \ud800"}, "/system_prompt", "NUL"),
        ({"system_prompt": "x" * (3 << 20)}, "/system_prompt", "200000"),
        ({"max_turns": True}, "/max_turns", "true"),
        ({"max_turns": 0}, "/max_turns", "up to 1000"),
        ({"max_turns": 1e9}, "/max_turns", ""),
        ({"max_turns": 10**30}, "/max_turns", ""),
        ({"timeout_seconds": "30m"}, "/timeout_seconds", "30m"),
        ({"tools": "bash"}, "/tools", "list"),
        ({"tools": [1]}, "/tools/0", "text"),
        ({"token_budget": {"max_tokens": -1}}, "/token_budget/max_tokens", ""),
        ({"token_budget": []}, "/token_budget", "object"),
        ({"enabled": "yes"}, "/enabled", "true or false"),
        ({"description": {"a": 1}}, "/description", "text"),
        ({"colour": "red"}, "/colour", "no such field"),
        ({"a/b~c": 1}, "/a~1b~0c", "no such field"),
        ({"name": None}, "/name", "required"),
    ],
)
def test_each_wrong_value_is_named_by_a_pointer(api: Api, fields: dict[str, Any], pointer: str, words: str):
    problem = is_problem(api("POST", "/subagents", document(**fields)), 422, "invalid")
    said = {error["pointer"]: error["detail"] for error in problem["errors"]}
    assert pointer in said
    assert words in said[pointer]
    assert problem["detail"]


def test_all_faults_are_named_at_once(api: Api):
    body = {"name": "A B", "max_turns": 0, "tools": 3}
    problem = is_problem(api("POST", "/subagents", body), 422, "invalid")
    pointers = [error["pointer"] for error in problem["errors"]]
    assert set(pointers) >= {"/name", "/max_turns", "/tools", "/description", "/system_prompt"}
    assert {error["code"] for error in problem["errors"] if error["pointer"] == "/description"} == {"required"}


def test_the_name_cannot_be_changed(api: Api):
    api("POST", "/subagents", examples.DOCUMENT)
    for method, body in (("PATCH", {"name": "other"}), ("PUT", document(name="other"))):
        problem = is_problem(api(method, "/subagents/researcher", body, if_match="*"), 422, "invalid")
        assert problem["errors"][0]["pointer"] == "/name"
    assert api("PATCH", "/subagents/researcher", {"name": "researcher"}, if_match="*").status_code == 200


@pytest.mark.parametrize("prompt", ["{a} %s {{x}} {% if %} ${X} <b>", "\\u0000 as six characters", "\U0001f378" * 9])
def test_a_prompt_comes_back_byte_for_byte(api: Api, prompt: str):
    assert api("POST", "/subagents", document(system_prompt=prompt)).json()["definition"]["system_prompt"] == prompt
    assert api.ok("/subagents/researcher")["definition"]["system_prompt"] == prompt


NAMES = st.sampled_from([*examples.DOCUMENT, "weird", ""])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec=None), max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)  # fmt: skip


@settings(
    max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(body=st.dictionaries(NAMES, VALUES, max_size=5), base=st.booleans())
def test_no_value_of_any_kind_breaks_anything(api: Api, body: dict[str, Any], base: bool):
    sent = {**(examples.DOCUMENT if base else {}), **body}
    for path in ("/subagents", "/agents"):
        answer = api("POST", path, sent)
        assert answer.status_code in {201, 409, 422, 429}, answer.content
        if answer.status_code != 201:
            is_problem(answer, answer.status_code, answer.json()["code"])
    assert api.get("/subagents").status_code in {200, 429}

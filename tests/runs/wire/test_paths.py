"""What holds on every path: a key with the right scope, one's own rows only, ids that are ids."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.runs.wire.callers import make_caller, unknown_id
from tests.runs.wire.test_access import in_shape

if TYPE_CHECKING:
    from tests.runs.wire.callers import Caller
    from tests.runs.wire.processes import WebProcess

pytestmark = pytest.mark.usefixtures("transactional_db")

# (method, path with the thread's id as {t}, body, needed scope)
OF_A_THREAD: list[tuple[str, str, Any, str]] = [
    ("GET", "/threads/{t}", None, "read"),
    ("PATCH", "/threads/{t}", {"metadata": {"a": 1}}, "run"),
    ("DELETE", "/threads/{t}", None, "run"),
    ("POST", "/threads/{t}/copy", None, "run"),
    ("GET", "/threads/{t}/state", None, "read"),
    ("POST", "/threads/{t}/state", {"values": {"a": 1}}, "run"),
    ("GET", "/threads/{t}/state/00000000-0000-8000-8000-000000000000", None, "read"),
    ("POST", "/threads/{t}/state/checkpoint", {"checkpoint": {}}, "read"),
    ("GET", "/threads/{t}/history", None, "read"),
    ("GET", "/threads/{t}/stream", None, "stream"),
    ("POST", "/threads/{t}/history", {}, "read"),
]
A = "/assistants/00000000-0000-8000-8000-000000000000"
OTHERS: list[tuple[str, str, Any, str]] = [
    ("POST", "/assistants", {"graph_id": "lead_agent"}, "run"),
    ("POST", "/assistants/search", {}, "read"),
    ("POST", "/assistants/count", {}, "read"),
    ("GET", A, None, "read"),
    ("PATCH", A, {}, "run"),
    ("DELETE", A, None, "run"),
    ("GET", A + "/graph", None, "read"),
    ("GET", A + "/schemas", None, "read"),
    ("GET", A + "/subgraphs", None, "read"),
    ("GET", A + "/subgraphs/x", None, "read"),
    ("POST", A + "/versions", {}, "read"),
    ("POST", A + "/latest", {"version": 1}, "run"),
    ("GET", "/info", None, "read"),
    ("GET", "/metrics", None, "admin"),
    ("PUT", "/store/items", {"namespace": ["a"], "key": "k", "value": {}}, "run"),
    ("GET", "/store/items?namespace=a&key=k", None, "read"),
    ("DELETE", "/store/items", {"namespace": ["a"], "key": "k"}, "run"),
    ("POST", "/store/items/search", {}, "read"),
    ("POST", "/store/namespaces", {}, "read"),
    ("POST", "/threads", {}, "run"),
    ("POST", "/threads/search", {}, "read"),
    ("POST", "/threads/count", {}, "read"),
    ("POST", "/threads/prune", {"thread_ids": []}, "run"),
]


async def asked(caller: Caller, method: str, path: str, body: Any, **options: Any) -> Any:
    return await caller.http.request(method, path, json=body, **options)


def names(rows: list[tuple[str, str, Any, str]]) -> list[str]:
    return [f"{method} {path}" for method, path, _body, _scope in rows]


@pytest.mark.parametrize(("method", "path", "body", "scope"), OF_A_THREAD, ids=names(OF_A_THREAD))
async def test_somebody_elses_thread_is_as_one_that_does_not_exist(
    anna: Caller, bert: Caller, method: str, path: str, body: Any, scope: str
):
    thread_id, nobodys = await anna.thread(), unknown_id()
    await anna.sdk.threads.update_state(thread_id, {"secret": "s3cret"})
    foreign = await asked(bert, method, path.format(t=thread_id), body)
    missing = await asked(bert, method, path.format(t=nobodys), body)
    assert in_shape(foreign, 404, "not_found")["detail"].replace(thread_id, nobodys) == missing.json()["detail"]
    assert (await anna.sdk.threads.get(thread_id))["values"]["secret"] == "s3cret"


@pytest.mark.parametrize(("method", "path", "body", "scope"), OF_A_THREAD, ids=names(OF_A_THREAD))
async def test_a_thread_is_named_by_a_uuid_only(anna: Caller, method: str, path: str, body: Any, scope: str):
    for bad in ("x", "%00", "{12345678-1234-5678-1234-567812345678}"):
        answer = await asked(anna, method, path.replace("{t}", bad), body)
        assert in_shape(answer, 422, "invalid")["metadata"]["field"] == "thread_id"


@pytest.mark.parametrize(("method", "path", "body", "scope"), OF_A_THREAD + OTHERS, ids=names(OF_A_THREAD + OTHERS))
async def test_every_path_wants_a_key_that_may_do_this(
    web: WebProcess, anna: Caller, method: str, path: str, body: Any, scope: str
):
    thread_id = await anna.thread()
    place = path.format(t=unknown_id() if scope == "stream" else thread_id)
    in_shape(await asked(anna, method, place, body, headers={"x-api-key": ""}), 401, "no_key")
    in_shape(await asked(anna, method, place, body, headers={"x-api-key": "sa_live_nonsense"}), 401, "bad_key")
    reader = await make_caller(web.url, ("read",), user=anna.user)
    answer = await asked(reader, method, place, body)
    if scope in ("read", "stream"):
        assert answer.status_code in (200, 404), answer.text
    else:
        in_shape(answer, 403, "scope_missing")
    await reader.close()


@pytest.mark.parametrize(
    ("path", "field", "body"),
    [
        ("/threads/search", "limit", {"limit": 0}),
        ("/threads/search", "limit", {"limit": "5"}),
        ("/threads/search", "offset", {"offset": -1}),
        ("/threads/search", "offset", {"offset": 10**12}),
        ("/threads/search", "metadata", {"metadata": []}),
        ("/threads/search", "values", {"values": "x"}),
        ("/threads/search", "values.messages", {"values": {"messages": []}}),
        ("/threads/search", "status", {"status": "odd"}),
        ("/threads/search", "ids", {"ids": "x"}),
        ("/threads/search", "ids[1]", {"ids": [unknown_id(), "x"]}),
        ("/threads/search", "sort_by", {"sort_by": "owner"}),
        ("/threads/search", "sort_order", {"sort_order": "up"}),
        ("/threads/search", "select", {"select": ["owner_id"]}),
        ("/threads/search", "select", {"select": "thread_id"}),
        ("/threads/search", "extract", {"extract": []}),
        ("/threads/search", "extract.a", {"extract": {"a": "owner.password"}}),
        ("/threads/search", "extract.a", {"extract": {"a": "values[[0]"}}),
        ("/threads/count", "status", {"status": 5}),
        ("/threads/prune", "thread_ids", {}),
        ("/threads/prune", "thread_ids[0]", {"thread_ids": ["x"]}),
        ("/threads/prune", "strategy", {"thread_ids": [], "strategy": "burn"}),
        ("/threads/{t}/state", "values", {"values": "x"}),
        ("/threads/{t}/state", "values", {"values": [1]}),
        ("/threads/{t}/state", "values.messages", {"values": {"messages": 5}}),
        ("/threads/{t}/state", "values.messages[0].role", {"values": {"messages": [{"content": "x"}]}}),
        ("/threads/{t}/state", "values.messages[0].id", {"values": {"messages": [{"type": "remove"}]}}),
        ("/threads/{t}/state", "checkpoint", {"checkpoint": "x"}),
        ("/threads/{t}/state", "checkpoint_id", {"checkpoint_id": "x"}),
        ("/threads/{t}/state", "checkpoint.checkpoint_id", {"checkpoint": {"checkpoint_id": 5}}),
        ("/threads/{t}/history", "limit", {"limit": 0}),
        ("/threads/{t}/history", "before", {"before": "x"}),
        ("/threads/{t}/history", "before", {"before": []}),
        ("/threads/{t}/history", "metadata", {"metadata": 5}),
        ("/threads/{t}/history", "select", {"select": ["secret"]}),
    ],
    ids=str,
)
async def test_a_wrong_field_is_named(anna: Caller, path: str, field: str, body: dict[str, Any]):
    answer = await anna.post(path.format(t=await anna.thread()), body)
    assert in_shape(answer, 422, "invalid")["metadata"]["field"] == field

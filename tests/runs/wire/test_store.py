"""The store and what the deployment says of itself, through the real SDK."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.utils import timezone
from langgraph_sdk.errors import BadRequestError

from runs.agent_protocol import store_items
from runs.models import StoreItem
from tests.runs.wire.callers import in_database, make_caller, said
from tests.runs.wire.test_access import in_shape
from tests.scripted_model import scripts

if TYPE_CHECKING:
    from tests.runs.wire.callers import Caller
    from tests.runs.wire.processes import WebProcess

pytestmark = pytest.mark.usefixtures("transactional_db")


async def keys(caller: Caller, *prefix: str, **options: Any) -> list[str]:
    return [item["key"] for item in (await caller.sdk.store.search_items(list(prefix), **options))["items"]]


async def test_a_value_is_put_read_replaced_and_deleted(anna: Caller):
    store = anna.sdk.store
    await store.put_item(["a", "b"], "k", {"v": 1}, index=False)
    first = await store.get_item(["a", "b"], "k")
    assert (first["namespace"], first["key"], first["value"]) == (["a", "b"], "k", {"v": 1})
    await store.put_item(["a", "b"], "k", {"v": 2})
    second = await store.get_item(["a", "b"], "k")
    assert (second["value"], second["created_at"]) == ({"v": 2}, first["created_at"])
    assert second["updated_at"] > first["updated_at"]
    for _ in range(2):
        assert await store.delete_item(["a", "b"], "k") is None
    answer = await anna.http.get("/store/items", params={"namespace": "a.b", "key": "k"})
    assert (answer.status_code, answer.json()) == (200, None)


async def test_a_namespace_comes_as_text_with_periods_or_as_a_list(anna: Caller):
    assert (await anna.http.put("/store/items", json={"namespace": "x.y", "key": "k", "value": {}})).status_code == 204
    for query in ({"namespace": "x.y", "key": "k"}, {"namespace": ["x", "y"], "key": "k"}):
        assert (await anna.http.get("/store/items", params=query)).json()["namespace"] == ["x", "y"]


async def test_an_empty_namespace_is_a_bad_request(anna: Caller):
    with pytest.raises(BadRequestError, match="Namespace cannot be empty"):
        await anna.sdk.store.put_item([], "k", {"v": 1})
    for path in ("/store/items?key=k", "/store/items?namespace=&key=k"):
        in_shape(await anna.http.get(path), 400, "invalid")


async def test_each_person_has_a_store_of_their_own(anna: Caller, bert: Caller):
    await anna.sdk.store.put_item(["shared"], "k", {"secret": 1})
    answer = await bert.http.get("/store/items", params={"namespace": "shared", "key": "k"})
    assert answer.json() is None
    assert await keys(bert, "shared") == []
    assert (await bert.sdk.store.list_namespaces())["namespaces"] == []
    await bert.sdk.store.put_item(["shared"], "k", {"v": 2})
    await bert.sdk.store.delete_item(["shared"], "k")
    assert (await anna.sdk.store.get_item(["shared"], "k"))["value"] == {"secret": 1}


async def test_items_are_searched_below_a_namespace_by_their_fields(anna: Caller):
    put = anna.sdk.store.put_item
    for number in range(4):
        await put(["docs", "en"], f"k{number}", {"n": number, "kind": "even" if number % 2 == 0 else "odd", "t": [1]})
    await put(["docs", "EN"], "other", {"n": 1})
    await put(["docsx"], "not-below", {"n": 1})
    assert await keys(anna, "docs", "en") == ["k0", "k1", "k2", "k3"]
    assert len(await keys(anna, "docs")) == 5
    assert await keys(anna, "docs", "en", filter={"kind": "odd"}) == ["k1", "k3"]
    assert await keys(anna, "docs", "en", filter={"n": {"$gt": 0, "$lte": 2}}) == ["k1", "k2"]
    assert await keys(anna, "docs", "en", filter={"n": {"$ne": 0}, "kind": "even"}) == ["k2"]
    assert await keys(anna, "docs", "en", filter={"kind": {"$gt": 5}}) == []
    assert await keys(anna, "docs", "en", filter={"t": [1], "n": 3}) == ["k3"]
    assert await keys(anna, "docs", "en", limit=2, offset=1) == ["k1", "k2"]
    assert await keys(anna, "docs", "en", filter={"n": {"$gte": 0}}, limit=2, offset=1) == ["k1", "k2"]
    assert await keys(anna, "docs", "en", query="anything") == ["k0", "k1", "k2", "k3"]
    (item,) = (await anna.sdk.store.search_items(["docs", "EN"]))["items"]
    assert item["score"] is None


async def test_namespaces_are_listed_by_their_ends_and_depth(anna: Caller):
    for namespace in (["u", "1", "notes"], ["u", "2", "notes"], ["u", "2", "files"], ["v"]):
        await anna.sdk.store.put_item(namespace, "k", {})
    store = anna.sdk.store

    async def listed(**options: Any) -> list[list[str]]:
        return list((await store.list_namespaces(**options))["namespaces"])

    assert await listed(prefix=["u"], max_depth=2) == [["u", "1"], ["u", "2"]]
    assert await listed(suffix=["notes"]) == [["u", "1", "notes"], ["u", "2", "notes"]]
    assert await listed(prefix=["u", "*", "files"]) == [["u", "2", "files"]]
    assert await listed(limit=2, offset=2) == [["u", "2", "notes"], ["v"]]


async def test_an_item_is_gone_when_its_time_is_over_and_reading_prolongs_it(anna: Caller):
    for key in ("short", "read", "unread"):
        await anna.sdk.store.put_item(["ttl"], key, {}, ttl=10)

    def age() -> None:
        now = timezone.now()
        StoreItem.objects.filter(owner=anna.user, key="short").update(expires_at=now - timedelta(seconds=1))
        StoreItem.objects.filter(owner=anna.user).exclude(key="short").update(expires_at=now + timedelta(minutes=1))

    await in_database(age)
    assert await keys(anna, "ttl", refresh_ttl=False) == ["read", "unread"]
    assert await anna.sdk.store.get_item(["ttl"], "read", refresh_ttl=True)
    await anna.sdk.store.get_item(["ttl"], "unread", refresh_ttl=False)
    later = timezone.now() + timedelta(minutes=5)
    left = await in_database(
        lambda: (
            store_items.prune_expired(later, True)["stored_items"],
            store_items.prune_expired(later, False)["stored_items"],
            list(StoreItem.objects.filter(owner=anna.user).values_list("key", flat=True)),
        )
    )
    assert left[0] == left[1] >= 2
    assert left[2] == ["read"]


async def test_text_that_no_database_takes_is_harmless_in_the_store(anna: Caller):
    raw = '{"namespace": ["a\\ud83d"], "key": "k\\u0000", "value": {"\\u0000": "\\ud83d"}}'
    answer = await anna.http.put("/store/items", content=raw, headers={"content-type": "application/json"})
    assert answer.status_code == 204, answer.text
    ((found),) = (await anna.sdk.store.search_items([]))["items"]
    assert "\x00" not in str(found)
    assert (await anna.http.get("/store/items?namespace=a&key=%00%ff")).json() is None


@pytest.mark.parametrize(
    ("method", "path", "field", "body"),
    [
        ("PUT", "/store/items", "key", {"namespace": ["a"], "value": {}}),
        ("PUT", "/store/items", "key", {"namespace": ["a"], "key": "", "value": {}}),
        ("PUT", "/store/items", "key", {"namespace": ["a"], "key": "x" * 301, "value": {}}),
        ("PUT", "/store/items", "value", {"namespace": ["a"], "key": "k"}),
        ("PUT", "/store/items", "value", {"namespace": ["a"], "key": "k", "value": [1]}),
        ("PUT", "/store/items", "value", {"namespace": ["a"], "key": "k", "value": {"x": "x" * 300_000}}),
        ("PUT", "/store/items", "namespace", {"namespace": 5, "key": "k", "value": {}}),
        ("PUT", "/store/items", "namespace", {"namespace": ["a"] * 21, "key": "k", "value": {}}),
        ("PUT", "/store/items", "namespace", {"namespace": ["a" * 199] * 6, "key": "k", "value": {}}),
        ("PUT", "/store/items", "namespace[0]", {"namespace": ["a.b"], "key": "k", "value": {}}),
        ("PUT", "/store/items", "namespace[1]", {"namespace": ["a", ""], "key": "k", "value": {}}),
        ("PUT", "/store/items", "namespace[0]", {"namespace": ["a\x1fb"], "key": "k", "value": {}}),
        ("PUT", "/store/items", "ttl", {"namespace": ["a"], "key": "k", "value": {}, "ttl": -1}),
        ("DELETE", "/store/items", "key", {"namespace": ["a"]}),
        ("POST", "/store/items/search", "namespace_prefix", {"namespace_prefix": {}}),
        ("POST", "/store/items/search", "filter", {"filter": "x"}),
        ("POST", "/store/items/search", "filter.n", {"filter": {"n": {"$regex": "x"}}}),
        ("POST", "/store/items/search", "limit", {"limit": -1}),
        ("POST", "/store/namespaces", "max_depth", {"max_depth": 0}),
        ("POST", "/store/namespaces", "suffix[0]", {"suffix": [None]}),
    ],
    ids=str,
)
async def test_a_wrong_field_is_named(anna: Caller, method: str, path: str, field: str, body: dict[str, Any]):
    answer = await anna.http.request(method, path, json=body)
    assert in_shape(answer, 422, "invalid")["metadata"]["field"] == field


@pytest.mark.usefixtures("worker", "model")
async def test_numbers_are_for_administrators_and_count_everybodys_runs(anna: Caller, web: WebProcess):
    await anna.sdk.runs.wait(await anna.thread(), "lead_agent", input=said(scripts.says("ok")[1]))
    in_shape(await anna.http.get("/metrics"), 403, "scope_missing")
    admin = await make_caller(web.url, ("admin",))
    answer = await admin.http.get("/metrics")
    await admin.close()
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    lines = answer.text.splitlines()
    values = dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
    assert int(values['deerflow_runs_ended_last_hour{status="success"}']) >= 1
    assert values['deerflow_runs_active{status="running"}'].isdigit()
    assert {"deerflow_queue_depth", "deerflow_workers", "deerflow_worker_slots"} <= set(values)


async def test_the_deployment_says_what_it_can_do(anna: Caller):
    about = (await anna.http.get("/info")).json()
    assert (about["flags"]["assistants"], about["flags"]["crons"]) == (True, False)
    assert (await anna.http.get("/ok", headers={"x-api-key": ""})).json()["ok"] is True

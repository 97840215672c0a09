"""Whose key opens what."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.contrib.auth import get_user_model
from django.utils import timezone

from access import keys as api_keys
from tests.runs.wire.callers import asks, caller_at, in_database, make_caller, said, unknown_id
from tests.scripted_model import scripts

if TYPE_CHECKING:
    import httpx

    from tests.runs.wire.callers import Caller
    from tests.runs.wire.processes import WebProcess

pytestmark = pytest.mark.usefixtures("transactional_db", "worker")

READS = [
    ("GET", "/threads/{thread}"),
    ("GET", "/threads/{thread}/runs"),
    ("GET", "/threads/{thread}/runs/{run}"),
    ("GET", "/threads/{thread}/runs/{run}/join"),
    ("GET", "/threads/{thread}/runs/{run}/stream"),
]
WRITES = [
    ("POST", "/threads/{thread}/runs"),
    ("POST", "/threads/{thread}/runs/wait"),
    ("POST", "/threads/{thread}/runs/stream"),
    ("POST", "/threads/{thread}/runs/{run}/cancel"),
    ("DELETE", "/threads/{thread}/runs/{run}"),
]
CREATION = ("POST", "/threads")
READS_ALONE = [("GET", "/runs/{run}"), ("GET", "/runs/{run}/join"), ("GET", "/runs/{run}/stream")]
CREATIONS = [
    CREATION,
    ("POST", "/runs"),
    ("POST", "/runs/wait"),
    ("POST", "/runs/stream"),
    ("POST", "/runs/batch"),
    ("POST", "/runs/cancel"),
]
OF_THE_RUN = [route for route in READS + WRITES if "{run}" in route[1]]


def in_shape(answer: httpx.Response, status: int, code: str) -> dict[str, Any]:
    body: dict[str, Any] = answer.json()
    assert (answer.status_code, body["code"]) == (status, code), answer.text
    assert isinstance(body["detail"], str)
    assert body["detail"] == body["message"]
    assert isinstance(body["metadata"], dict)
    return body


async def request(caller: Caller, route: tuple[str, str], thread: str, run: str, **options: Any) -> httpx.Response:
    method, path = route
    body: Any = asks("hello") if method == "POST" and not path.endswith("cancel") and path != "/threads" else None
    body = [body] if path.endswith("batch") else body
    return await caller.http.request(method, path.format(thread=thread, run=run), json=body, **options)


@pytest.fixture
async def annas(anna: Caller) -> tuple[str, str]:
    """A thread of Anna's and its run, which has ended."""
    thread_id = await anna.thread()
    run = await anna.sdk.runs.create(thread_id, "lead_agent", input=said(scripts.instant()[1]))
    await anna.sdk.runs.join(thread_id, run["run_id"])
    return thread_id, run["run_id"]


@pytest.mark.parametrize("route", [*CREATIONS, *READS, *READS_ALONE, *WRITES], ids=" ".join)
async def test_every_route_wants_a_valid_key(anna: Caller, annas: tuple[str, str], route: tuple[str, str]):
    for headers in ({"x-api-key": ""}, {"x-api-key": "", "authorization": "Basic abc"}):
        in_shape(await request(anna, route, *annas, headers=headers), 401, "no_key")
    for wrong in ("sa_live_wrong", "x" * 5000, anna.key[:-1], anna.key + " x", "\u00e9"):
        answer = await request(anna, route, *annas, headers={"x-api-key": wrong.encode("latin-1")})
        in_shape(answer, 401, "bad_key")


@pytest.mark.parametrize("route", [*READS, *WRITES], ids=" ".join)
async def test_somebody_elses_thread_does_not_exist(
    anna: Caller, bert: Caller, annas: tuple[str, str], route: tuple[str, str]
):
    body = in_shape(await request(bert, route, *annas), 404, "not_found")
    missing = await request(bert, route, unknown_id(), unknown_id())
    assert set(in_shape(missing, 404, "not_found")) == set(body)
    assert len(await anna.sdk.runs.list(annas[0])) == 1


@pytest.mark.parametrize("route", READS_ALONE, ids=" ".join)
async def test_somebody_elses_run_does_not_exist_by_its_own_id(
    anna: Caller, bert: Caller, annas: tuple[str, str], route: tuple[str, str]
):
    body = in_shape(await request(bert, route, *annas), 404, "not_found")
    assert set(in_shape(await request(bert, route, unknown_id(), unknown_id()), 404, "not_found")) == set(body)
    assert (await request(anna, route, *annas)).status_code == 200


@pytest.mark.parametrize("route", OF_THE_RUN, ids=" ".join)
async def test_somebody_elses_run_is_not_found_through_ones_own_thread(
    bert: Caller, annas: tuple[str, str], route: tuple[str, str]
):
    in_shape(await request(bert, route, await bert.thread(), annas[1]), 404, "not_found")


async def test_somebody_elses_thread_cannot_be_taken_over_or_interrupted(
    anna: Caller, bert: Caller, annas: tuple[str, str]
):
    in_shape(await bert.post("/threads", {"thread_id": annas[0]}), 409, "exists")
    in_shape(await bert.post("/threads", {"thread_id": annas[0], "if_exists": "do_nothing"}), 404, "not_found")
    for options in ({"if_not_exists": "create"}, {"multitask_strategy": "interrupt"}):
        in_shape(await bert.post(f"/threads/{annas[0]}/runs", asks("mine", **options)), 404, "not_found")
    assert len(await anna.sdk.runs.list(annas[0])) == 1


async def test_another_persons_interrupt_leaves_a_running_run_alone(anna: Caller, bert: Caller, model: Any):
    thread_id = await anna.thread()
    script_id, prompt = scripts.gated("not-yours")
    run = await anna.sdk.runs.create(thread_id, "lead_agent", input=said(prompt))
    await model.until(lambda seen: bool(seen.calls_of(script_id)))
    answer = await bert.post(f"/threads/{thread_id}/runs", asks("mine", multitask_strategy="interrupt"))
    in_shape(answer, 404, "not_found")
    in_shape(await bert.post(f"/threads/{thread_id}/runs/{run['run_id']}/cancel"), 404, "not_found")
    model.open_gate("not-yours")
    await anna.sdk.runs.join(thread_id, run["run_id"])
    assert (await anna.sdk.runs.get(thread_id, run["run_id"]))["status"] == "success"


async def test_a_reading_key_reads_and_does_nothing_else(web: WebProcess, anna: Caller, annas: tuple[str, str]):
    reader = await make_caller(web.url, ("read",), user=anna.user)
    for route in [*READS, *READS_ALONE]:
        assert (await request(reader, route, *annas)).status_code == 200, route
    for route in [*CREATIONS, *WRITES]:
        in_shape(await request(reader, route, *annas), 403, "scope_missing")
    stopping = await reader.http.get(
        f"/threads/{annas[0]}/runs/{annas[1]}/stream", params={"cancel_on_disconnect": "true"}
    )
    in_shape(stopping, 403, "scope_missing")
    await reader.close()


async def test_an_administrators_key_may_everything_on_its_own_threads_only(web: WebProcess, annas: tuple[str, str]):
    admin = await make_caller(web.url, ("admin",))
    assert await admin.thread()
    in_shape(await request(admin, READS[0], *annas), 404, "not_found")
    await admin.close()


async def test_a_key_may_also_come_as_a_bearer_token(anna: Caller):
    headers = {"x-api-key": "", "authorization": f"bearer  {anna.key}"}
    assert (await anna.post("/threads", {}, headers=headers)).status_code == 200


async def test_a_revoked_expired_or_ownerless_key_is_refused_at_the_next_request(web: WebProcess, anna: Caller):
    now = timezone.now()

    def make(expires_at: Any = None) -> tuple[Any, str]:
        return api_keys.make_key(anna.user, "t", ["run"], expires_at)

    row, key = await in_database(make)
    other = caller_at(web.url, anna.user, key)
    assert (await other.post("/threads", {})).status_code == 200
    assert await in_database(api_keys.revoke, row.pk) is True
    in_shape(await other.post("/threads", {}), 401, "bad_key")
    for expires_at, status in ((now - timedelta(seconds=1), 401), (now + timedelta(hours=1), 200)):
        _row, key = await in_database(make, expires_at)
        assert (await other.post("/threads", {}, headers={"x-api-key": key})).status_code == status
    await in_database(lambda: get_user_model().objects.filter(pk=anna.user.pk).update(is_active=False))
    in_shape(await anna.post("/threads", {}), 401, "bad_key")
    await other.close()


async def test_the_host_must_be_one_of_ours(anna: Caller):
    for host in ("evil.example", "", "127.0.0.1@evil.example", "127.0.0.1.evil.example"):
        in_shape(await anna.post("/threads", {}, headers={"host": host}), 400, "unknown_host")
    for host in ("localhost", "LOCALHOST:8000", "[::1]:80"):
        assert (await anna.post("/threads", {}, headers={"host": host})).status_code == 200


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/", 404, "not_found"),
        ("GET", "/nothing", 404, "not_found"),
        ("GET", "/threads/", 404, "not_found"),
        ("POST", "/threads/{thread}/runs/", 404, "not_found"),
        ("GET", "/threads/{thread}/runs/{run}/other", 404, "not_found"),
        ("GET", "/threads", 405, "method_not_allowed"),
        ("PUT", "/threads/{thread}/runs/{run}", 405, "method_not_allowed"),
        ("GET", "/runs", 405, "method_not_allowed"),
        ("POST", "/runs/{run}/stream", 405, "method_not_allowed"),
        ("DELETE", "/threads/{thread}/state", 405, "method_not_allowed"),
        ("GET", "/threads/{thread}/runs/{run}/cancel", 405, "method_not_allowed"),
        ("PUT", "/threads/{thread}", 405, "method_not_allowed"),
    ],
)
async def test_what_is_not_there_says_so_in_the_wires_shape(
    anna: Caller, annas: tuple[str, str], method: str, path: str, status: int, code: str
):
    answer = await anna.http.request(method, path.format(thread=annas[0], run=annas[1]))
    in_shape(answer, status, code)
    assert (status == 405) == ("allow" in answer.headers)


async def test_anybody_may_ask_whether_it_is_there(anna: Caller):
    answer = await anna.http.get("/ok", headers={"x-api-key": ""})
    assert answer.json() == {"ok": True}

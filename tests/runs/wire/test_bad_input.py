"""What a program may send, and how it is told what is wrong with it."""

from __future__ import annotations

import asyncio
import itertools
import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.runs.wire.callers import asks, contents, make_caller, said
from tests.runs.wire.test_access import in_shape
from tests.scripted_model import scripts

if TYPE_CHECKING:
    from tests.runs.wire.callers import Caller
    from tests.runs.wire.processes import WebProcess

pytestmark = pytest.mark.usefixtures("transactional_db", "worker")
DEEP = "[" * 3000 + "]" * 3000


def nested(depth: int) -> Any:
    value: Any = "x"
    for _ in range(depth):
        value = [value]
    return value


def message(**fields: Any) -> dict[str, Any]:
    return {"input": {"messages": [{"role": "user", "content": "x", **fields}]}}


WRONG: list[tuple[str, dict[str, Any]]] = [
    ("assistant_id", {"assistant_id": None}),
    ("assistant_id", {"assistant_id": 7}),
    ("assistant_id", {"assistant_id": "nobody"}),
    ("input", {"input": "text"}),
    ("input", {"input": None}),
    ("input.messages", {"input": {}}),
    ("input.messages", {"input": {"messages": []}}),
    ("input.messages", {"input": {"messages": 3}}),
    ("input.messages", {"input": {"messages": ["x"] * 5001}}),
    ("input.messages[0]", {"input": {"messages": [None]}}),
    ("input.messages[1]", {"input": {"messages": ["x", 5]}}),
    ("input.messages[0].role", {"input": {"messages": [{"content": "x"}]}}),
    ("input.messages[0].role", message(role=["user"])),
    ("input.messages[0].type", message(type="robot")),
    ("input.messages[0].content", message(content=None)),
    ("input.messages[0].content", message(content={"text": "x"})),
    ("input.messages[0].content", message(content="")),
    ("input.messages[0].content", message(content=" \n ")),
    ("input.messages[0].content", message(content=[])),
    ("input.messages[0].content", message(content="x" * 1_000_000)),
    ("input.messages[0].content", message(content=[{"type": "text", "text": "x" * 1_000_000}])),
    ("input.messages[0].content[0]", message(content=[5])),
    ("input.messages[0].content[0].text", message(content=[{"type": "text", "text": 5}])),
    ("input.messages[0].id", message(id={"a": 1})),
    ("input.messages[0].id", message(id="x" * 201)),
    ("input.messages[0].name", message(name=5)),
    ("input.messages[0].tool_calls", message(role="ai", tool_calls="x")),
    ("input.messages[0].tool_calls[0]", message(role="ai", tool_calls=[3])),
    ("input.messages[0].tool_calls[0].name", message(role="ai", tool_calls=[{"args": {}}])),
    ("input.messages[0].tool_calls[0].args", message(role="ai", tool_calls=[{"name": "ls", "args": "x"}])),
    ("input.messages[0].tool_call_id", message(role="tool")),
    ("input.messages[0].status", message(role="tool", tool_call_id="a", status="odd")),
    ("metadata", {"metadata": [1]}),
    ("metadata", {"metadata": {"big": "x" * 70_000}}),
    ("metadata", {"metadata": {"n": 123456789012345678901234567890}}),
    ("input", message(content=[{"type": "text", "text": "x", "n": -1e30}])),
    ("context", {"context": "x"}),
    ("config", {"config": []}),
    ("config.configurable", {"config": {"configurable": 1}}),
    ("context.subagent_enabled", {"context": {"subagent_enabled": "yes"}}),
    ("context.max_total_subagents", {"context": {"max_total_subagents": True}}),
    ("config.configurable.model_name", {"config": {"configurable": {"model_name": 5}}}),
    ("multitask_strategy", {"multitask_strategy": "x"}),
    ("multitask_strategy", {"multitask_strategy": ["reject"]}),
    ("if_not_exists", {"if_not_exists": True}),
    ("on_disconnect", {"on_disconnect": "x"}),
    ("on_completion", {"on_completion": "x"}),
    ("durability", {"durability": "never"}),
    ("stream_mode", {"stream_mode": "debug"}),
    ("stream_mode", {"stream_mode": [{"a": 1}]}),
    ("stream_mode", {"stream_mode": {"a": 1}}),
    ("webhook", {"webhook": "http://127.0.0.1/"}),
    ("webhook", {"webhook": "http://localhost:8000/"}),
    ("webhook", {"webhook": "http://169.254.169.254/latest/meta-data"}),
    ("webhook", {"webhook": "http://[::ffff:10.0.0.1]/"}),
    ("webhook", {"webhook": "/threads/relative"}),
    ("webhook", {"webhook": "ftp://hooks.example/"}),
    ("webhook", {"webhook": "http://a:b@hooks.example/"}),
    ("webhook", {"webhook": "http://hooks.example/" + "x" * 3000}),
    ("webhook", {"webhook": 5}),
    ("after_seconds", {"after_seconds": -1}),
    ("after_seconds", {"after_seconds": "5"}),
    ("after_seconds", {"after_seconds": True}),
    ("after_seconds", {"after_seconds": 1e9}),
    ("command", {"command": "resume"}),
    ("command.resume", {"command": {"resume": 1}}),
    ("command.goto", {"command": {"goto": "model"}}),
    ("command.update.messages", {"command": {"update": {"note": "x"}}}),
    ("checkpoint", {"checkpoint": "x"}),
    ("checkpoint.checkpoint_id", {"checkpoint": {"checkpoint_id": 5}}),
    ("checkpoint.checkpoint_ns", {"checkpoint": {"checkpoint_ns": "inner"}}),
    ("checkpoint_id", {"checkpoint_id": "x"}),
    ("interrupt_before", {"interrupt_before": "*"}),
    ("interrupt_after", {"interrupt_after": ["model"]}),
    ("deep", {"deep": nested(150)}),
]


@pytest.mark.parametrize(("field", "change"), WRONG, ids=[f"{n}-{field}" for n, (field, _) in enumerate(WRONG)])
async def test_a_wrong_field_is_named_and_starts_nothing(anna: Caller, field: str, change: dict[str, Any]):
    thread_id = await anna.thread()
    for mount, path in itertools.product((f"/threads/{thread_id}", ""), ("", "/wait", "/stream")):
        answer = await anna.post(f"{mount}/runs{path}", {**asks("x"), **change})
        body = in_shape(answer, 422, "invalid")
        assert body["metadata"]["field"] == field
        assert body["detail"].startswith(f"{field}: ")
    answer = await anna.post("/runs/batch", [asks("x"), {**asks("x"), **change}])
    assert in_shape(answer, 422, "invalid")["metadata"]["field"] in {f"[1].{field}", field}
    assert await anna.sdk.runs.list(thread_id) == []


@pytest.mark.parametrize(
    ("field", "body"),
    [
        ("thread_id", {"thread_id": "x"}),
        ("thread_id", {"thread_id": 5}),
        ("thread_id", {"thread_id": "{12345678-1234-5678-1234-567812345678}"}),
        ("metadata", {"metadata": "x"}),
        ("metadata", {"metadata": {"big": "x" * 70_000}}),
        ("if_exists", {"if_exists": "replace"}),
        ("supersteps", {"supersteps": 5}),
        ("supersteps[0].updates", {"supersteps": [{"updates": 5}]}),
        ("supersteps[0].updates", {"supersteps": [{"updates": [{"command": {"resume": 1}}]}]}),
        ("values", {"supersteps": [{"updates": [{"values": 5}]}]}),
        ("ttl", {"ttl": {"ttl": -5}}),
        ("ttl", {"ttl": True}),
        ("ttl.strategy", {"ttl": {"ttl": 5, "strategy": "burn"}}),
    ],
)
async def test_a_thread_is_not_made_of_wrong_fields(anna: Caller, field: str, body: dict[str, Any]):
    assert in_shape(await anna.post("/threads", body), 422, "invalid")["metadata"]["field"] == field


@pytest.mark.parametrize(
    ("raw", "headers", "status", "code"),
    [
        (b"{", {}, 422, "invalid_json"),
        (b"\xff\xfe", {}, 422, "invalid_json"),
        (b'{"metadata": NaN}', {}, 422, "invalid_json"),
        (b'{"metadata": {"a": 1e999}}', {}, 422, "invalid_json"),
        (b'{"metadata": "\\ud800" x}', {}, 422, "invalid_json"),
        (b'{"metadata": {"a": "\\ud800", "b": ' + DEEP.encode() + b"}}", {}, 422, "invalid_json"),
        (DEEP.encode(), {}, 422, "invalid_json"),
        (b"[]", {}, 422, "invalid"),
        (b'"text"', {}, 422, "invalid"),
        (b"{}", {"content-type": "text/plain"}, 415, "unsupported_media_type"),
        (b"a=b", {"content-type": "application/x-www-form-urlencoded"}, 415, "unsupported_media_type"),
        (b" " * (9 << 20), {}, 413, "too_large"),
        (b'{"metadata": {"a": "' + b"x" * (9 << 20) + b'"}}', {}, 413, "too_large"),
    ],
    ids=str,
)
async def test_a_body_that_cannot_be_read_is_refused(
    anna: Caller, raw: bytes, headers: dict[str, str], status: int, code: str
):
    thread_id = await anna.thread()
    headers = {"content-type": "application/json", **headers}
    for path in ("/threads", f"/threads/{thread_id}/runs", "/runs", "/runs/cancel"):
        in_shape(await anna.http.post(path, content=raw, headers=headers), status, code)


@pytest.mark.parametrize("bad", ["x", "1", "%00", "%ff", "00000000-0000-0000-0000-00000000000g", "a" * 5000])
async def test_an_id_that_is_none_is_named(anna: Caller, bad: str):
    thread_id = await anna.thread()
    body = in_shape(await anna.http.get(f"/threads/{bad}"), 422, "invalid")
    assert body["metadata"]["field"] == "thread_id"
    for path in ("", "/join", "/stream"):
        answer = await anna.http.get(f"/threads/{thread_id}/runs/{bad}{path}")
        assert in_shape(answer, 422, "invalid")["metadata"]["field"] == "run_id"


@pytest.mark.parametrize(
    "query",
    ["limit=x", "limit=-1", "offset=1e3", "limit=", "offset=99999999999", "status=odd", "select=secret", "limit=٣"],
)
async def test_a_wrong_page_is_refused(anna: Caller, query: str):
    thread_id = await anna.thread()
    await anna.sdk.runs.wait(thread_id, "lead_agent", input=said(scripts.instant()[1]))
    answer = await anna.http.get(f"/threads/{thread_id}/runs?{query}")
    assert in_shape(answer, 422, "invalid")["metadata"]["field"] == query.partition("=")[0]


async def test_context_and_configurable_exclude_each_other(anna: Caller):
    both = {"context": {"a": 1}, "config": {"configurable": {"b": 1}}}
    answer = await anna.post(f"/threads/{await anna.thread()}/runs", asks("x", **both))
    in_shape(answer, 400, "invalid")


async def test_an_unknown_assistant_id_is_not_found(anna: Caller):
    answer = await anna.post(
        f"/threads/{await anna.thread()}/runs", asks("x") | {"assistant_id": "11111111-2222-3333-4444-555555555555"}
    )
    in_shape(answer, 404, "not_found")


async def test_the_options_of_a_full_request_that_change_nothing_are_taken(anna: Caller):
    body = asks(
        scripts.says("Yes.")[1],
        stream_mode=["values"],
        stream_subgraphs=True,
        stream_resumable=True,
        durability="async",
        feedback_keys=["useful"],
        interrupt_before=[],
        checkpoint_during=True,
        config={"tags": ["a"], "recursion_limit": 50, "configurable": {"subagent_enabled": False}},
        on_completion="keep",
        unheard_of=1,
    )
    answer = await anna.post(f"/threads/{await anna.thread()}/runs/wait", body)
    assert contents(answer.json())[-1] == "Yes."


async def test_text_that_no_database_takes_is_made_storable(anna: Caller):
    raw = (
        b'{"assistant_id":"lead_agent","metadata":{"a\\u0000":"\\udfff","n":123456789012345678},'
        b'"input":{"messages":[{"role":"user","content":"nul \\u0000 half \\ud800 pair \\ud83d\\ude00"}]}}'
    )
    thread_id = await anna.thread()
    answer = await anna.http.post(
        f"/threads/{thread_id}/runs/wait", content=raw, headers={"content-type": "application/json"}
    )
    assert contents(answer.json())[0] == "nul \ufffd half \ufffd pair \U0001f600"
    (run,) = await anna.sdk.runs.list(thread_id)
    assert run["metadata"]["a\ufffd"] == "\ufffd"
    assert run["metadata"]["n"] == 123456789012345678


async def test_messages_of_other_kinds_and_spellings_are_taken_over(anna: Caller):
    call = {"id": "c1", "type": "function", "function": {"name": "ls", "arguments": '{"path": "."}'}}
    history = [
        {"type": "system", "content": "Be kind."},
        "plain words",
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "a.txt"},
        {
            "role": "user",
            "content": [{"type": "text", "text": scripts.says("Read.")[1]}],
            "id": "own-id",
            "name": "Ann",
        },
    ]
    thread_id = await anna.thread()
    values = await anna.sdk.runs.wait(thread_id, "lead_agent", input={"messages": history})
    kinds = [message["type"] for message in values["messages"]]
    assert kinds == ["system", "human", "ai", "tool", "human", "ai"]
    assert values["messages"][2]["tool_calls"] == [{"id": "c1", "name": "ls", "args": {"path": "."}}]
    assert (values["messages"][4]["id"], values["messages"][4]["name"]) == ("own-id", "Ann")
    assert values["messages"][-1]["content"] == "Read."


async def test_odd_metadata_comes_back_as_it_was(anna: Caller):
    odd = {"": None, "é": [1.5, True, {"x": []}], "__proto__": {}, "deep": nested(90), "long": "x" * 60_000}
    thread = await anna.sdk.threads.create(metadata=odd)
    assert (await anna.sdk.threads.get(thread["thread_id"]))["metadata"] == odd


@pytest.fixture(scope="package")
def fuzzer(web: WebProcess) -> Any:
    """Somebody who sends anything, and a thread of theirs, on a loop of their own."""
    with asyncio.Runner() as runner:
        caller = runner.run(make_caller(web.url))
        thread_id = runner.run(caller.thread())
        yield runner, caller, thread_id
        runner.run(caller.close())


scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=20)
    | st.sampled_from(["lead_agent", "values", "user", "interrupt", "reject", "create", "cancel", "\ud800", "\x00"])
)
names = st.text(max_size=8) | st.sampled_from(
    ["messages", "role", "type", "content", "text", "id", "tool_calls", "args", "configurable", "max_total_subagents"]
)
anything = st.recursive(scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(names, inner, max_size=4))
bodies = st.fixed_dictionaries(
    {},
    optional={
        "assistant_id": st.just("lead_agent") | anything,
        "input": st.fixed_dictionaries({"messages": st.lists(st.dictionaries(names, anything, max_size=5), max_size=3)})
        | anything,
        "metadata": anything,
        "context": anything,
        "config": anything,
        "stream_mode": anything,
        "multitask_strategy": anything,
        "if_not_exists": anything,
        "on_disconnect": anything,
        "thread_id": anything,
        "if_exists": anything,
        "webhook": anything,
        "after_seconds": anything,
        "run_ids": anything,
        "status": anything,
    },
)


FUZZED = ["/threads", "/threads/{}/runs", "/threads/{}/runs/stream", "/runs", "/runs/batch", "/runs/cancel"]


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(body=bodies | anything, path=st.sampled_from(FUZZED))
def test_no_body_whatever_is_an_error_of_our_own(fuzzer: Any, body: Any, path: str):
    runner, caller, thread_id = fuzzer
    raw = json.dumps(body).encode()

    async def sent() -> Any:
        headers = {"content-type": "application/json"}
        async with caller.http.stream("POST", path.format(thread_id), content=raw, headers=headers) as answer:
            if answer.status_code != 200:
                await answer.aread()
            return answer

    answer = runner.run(sent())
    assert answer.status_code < 500, raw
    if answer.status_code != 200:
        in_shape(answer, answer.status_code, answer.json()["code"])

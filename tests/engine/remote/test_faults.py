"""What another server can do wrong, each with the sentence it costs: never an exception of a library, never a hang."""

from __future__ import annotations

import asyncio
import socket
from uuid import UUID

import pytest

from engine.outbound.policy import Policy
from engine.remote.client import RemoteAgent, RemoteServers
from engine.remote.faults import FaultKind, RemoteFault
from engine.remote.transport import CheckedTransport
from tests.engine.remote.hostile import RUN, THREAD, drop_by_drop, hostile_server, never, raw, say, without_end

LOOPBACK = Policy.of(["127.0.0.1/32"])
SECRET = "Bearer hush-hush-9"


@pytest.fixture
async def hostile():
    async with hostile_server() as server:
        yield server


def remote(url: str, **fields) -> RemoteAgent:
    return RemoteAgent(name="worker", graph_id="worker", url=url, headers={"Authorization": SECRET}, **fields)


def servers(policy: Policy = LOOPBACK, *, environ=None, **transport) -> RemoteServers:
    return RemoteServers(lambda: policy, environ or {}, transport=lambda: CheckedTransport(lambda: policy, **transport))


async def fault_of(url: str, *, policy: Policy = LOOPBACK, **transport) -> RemoteFault:
    """The fault of all four operations, which is one and the same."""
    own, agent, found = servers(policy, **transport), remote(url), []
    operations = (
        lambda: own.start(agent, "work", thread_id=UUID(THREAD), metadata={}),
        lambda: own.status(agent, THREAD, RUN),
        lambda: own.update(agent, THREAD, "more", metadata={}),
        lambda: own.cancel(agent, THREAD, RUN),
    )
    try:
        for operation in operations:
            with pytest.raises(RemoteFault) as caught:
                await operation()
            found.append(caught.value)
    finally:
        await own.aclose()
    assert len({fault.sentence for fault in found}) == 1
    assert "hush" not in found[0].sentence
    return found[0]


@pytest.mark.parametrize(
    ("act", "kind", "words"),
    [
        (say(500, {"detail": "out of memory"}), FaultKind.BROKEN, "failed (500). out of memory"),
        (say(502, b"<html><h1>Bad gateway</h1>", "text/html"), FaultKind.BROKEN, "failed (502)."),
        (say(401, {"detail": "no key"}), FaultKind.UNAUTHORIZED, "does not accept the credentials (401). no key"),
        (say(403, {}), FaultKind.UNAUTHORIZED, "(403)"),
        (say(404, {"detail": "thread not found"}), FaultKind.NOT_FOUND, "(404). thread not found"),
        (say(422, {"message": "assistant_id: unknown"}), FaultKind.REJECTED, "(422). assistant_id: unknown"),
        (say(429, {}, retry_after="30"), FaultKind.BUSY, "It asks to wait 30 seconds."),
        (say(429, b"slow down", "text/plain", retry_after="soon"), FaultKind.BUSY, "(429)"),
        (say(200, b""), FaultKind.NOT_PROTOCOL, "the answer is empty"),
        (say(204, b""), FaultKind.NOT_PROTOCOL, "the answer is empty"),
        (say(200, b"<html>welcome</html>", "text/html"), FaultKind.NOT_PROTOCOL, "the answer is not JSON"),
        (say(200, b"[" * 50_000), FaultKind.NOT_PROTOCOL, "the answer is not JSON"),
        (say(200, [1, 2]), FaultKind.NOT_PROTOCOL, "the answer is no"),
        (say(200, {"run_id": "../../admin", "thread_id": "..", "status": "success"}), FaultKind.NOT_PROTOCOL, "is no"),
        (say(200, {"run_id": RUN, "thread_id": 7, "status": "dancing"}), FaultKind.NOT_PROTOCOL, "is no"),
        (say(200, b"\x1f\x8b", content_encoding="gzip"), FaultKind.NOT_PROTOCOL, "encoded in a way"),
        (raw(b""), FaultKind.CUT, "ended the connection"),
        (raw(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{"), FaultKind.CUT, "ended the connection"),
        (raw(b"SSH-2.0-OpenSSH_9.2\r\n\r\n"), FaultKind.NOT_PROTOCOL, "the answer is not HTTP"),
    ],
)
async def test_each_bad_answer_is_one_sentence_that_says_what_is_wrong(hostile, act, kind, words):
    hostile.acts["*"] = act
    own, agent = servers(), remote(hostile.url)
    try:
        with pytest.raises(RemoteFault) as caught:
            await own.status(agent, THREAD, RUN)
        with pytest.raises(RemoteFault) as started:
            await own.start(agent, "work", thread_id=UUID(THREAD), metadata={})
    finally:
        await own.aclose()
    assert (caught.value.kind, started.value.kind) == (kind, kind)
    assert words in caught.value.sentence
    assert "<" not in caught.value.sentence


async def test_a_server_that_never_answers_costs_the_time_it_is_given(hostile):
    hostile.acts["*"] = never
    fault = await fault_of(hostile.url, answer_seconds=0.2)
    assert (fault.kind, fault.sentence) == (FaultKind.TIMEOUT, "127.0.0.1 did not answer within 0.2 seconds.")


async def test_an_answer_that_comes_drop_by_drop_costs_no_more_than_that(hostile):
    hostile.acts["*"] = drop_by_drop
    assert (await fault_of(hostile.url, answer_seconds=0.3)).kind is FaultKind.TIMEOUT


async def test_an_answer_without_an_end_is_read_up_to_the_limit_only(hostile):
    hostile.acts["*"] = without_end
    fault = await fault_of(hostile.url, longest_answer_bytes=1 << 20)
    assert fault.sentence == "The answer of 127.0.0.1 is larger than 1 MB and was not read."


async def test_a_huge_answer_is_not_read_to_its_end(hostile):
    hostile.acts["*"] = say(200, b" " * (3 << 20))
    assert (await fault_of(hostile.url, longest_answer_bytes=1 << 20)).kind is FaultKind.TOO_LARGE


async def test_a_dead_host_and_an_unknown_name_are_told_apart():
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        assert (await fault_of(f"http://127.0.0.1:{port}")).kind is FaultKind.REFUSED

    async def nobody(host, port):
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    assert (await fault_of("https://nowhere.example", names=nobody)).kind is FaultKind.DNS


async def test_a_server_without_tls_where_it_is_expected_is_named_as_that():
    async def plain(reader, writer):
        await reader.read(1)
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(plain, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    fault = await fault_of(f"https://127.0.0.1:{port}")
    server.close()
    assert fault.kind is FaultKind.TLS


async def test_private_addresses_are_refused_however_they_are_written(hostile):
    for url in (hostile.url, f"http://localhost:{hostile.port}", f"http://0x7f.1:{hostile.port}", "http://[::1]:1"):
        assert (await fault_of(url, policy=Policy())).kind is FaultKind.ADDRESS
    assert hostile.asked == []


async def test_a_public_name_that_stands_for_a_private_address_is_refused_when_connecting(hostile):
    async def rebound(host, port):
        return ["127.0.0.1"]

    fault = await fault_of(f"http://agents.example:{hostile.port}", policy=Policy(), names=rebound)
    assert fault.kind is FaultKind.ADDRESS
    assert "agents.example" in fault.sentence
    assert hostile.asked == []


async def test_no_redirect_leads_to_another_host_or_to_a_private_address(hostile):
    allowed = Policy.of(["127.0.0.1/32"])
    for where in ("http://127.0.0.2:1/x", "http://169.254.169.254/latest", "file:///etc/passwd", "//other.example/"):
        hostile.acts["*"] = say(307, {}, location=where)
        assert (await fault_of(hostile.url, policy=allowed)).kind is FaultKind.REDIRECT
    assert {one.headers["host"] for one in hostile.asked} == {f"127.0.0.1:{hostile.port}"}


async def test_a_redirect_within_the_host_is_followed_with_the_request_whole(hostile):
    place = f"/threads/{THREAD}/runs"
    hostile.acts[f"POST {place}"] = say(308, {}, location=f"/v2{place}")
    own = servers()
    done = await own.update(remote(hostile.url), THREAD, "more", metadata={})
    await own.aclose()
    assert done.run_id == RUN
    assert hostile.asked[-1].path == f"/v2{place}"
    assert hostile.asked[-1].body["input"]["messages"][0]["content"] == "more"
    assert hostile.asked[-1].headers["authorization"] == SECRET


async def test_a_redirect_that_goes_in_circles_ends(hostile):
    hostile.acts["*"] = say(307, {}, location="/again")
    assert "again and again" in (await fault_of(hostile.url)).sentence
    hostile.acts["*"] = say(302, {}, location="/elsewhere")
    own = servers()
    with pytest.raises(RemoteFault, match="loses the request"):
        await own.update(remote(hostile.url), THREAD, "more", metadata={})
    await own.aclose()


async def test_a_server_that_repeats_a_secret_header_does_not_bring_it_into_a_sentence(hostile):
    hostile.acts["*"] = say(403, {"detail": f"bad header Authorization: {SECRET}; token hush-hush-9"})
    assert (await fault_of(hostile.url)).sentence.endswith("bad header Authorization: ••••; token ••••")


async def test_no_more_than_a_few_requests_go_to_one_host_at_the_same_time(hostile):
    at_work, most = 0, 0
    sound = hostile.answer
    gate = asyncio.Event()

    async def counted(writer, asked):
        nonlocal at_work, most
        at_work += 1
        most = max(most, at_work)
        if most == 8:
            gate.set()
        await gate.wait()
        at_work -= 1
        await sound(writer, asked)

    hostile.answer = counted
    own, agent = servers(), remote(hostile.url)
    seen = await asyncio.gather(*(own.status(agent, THREAD, RUN) for _ in range(40)))
    await own.aclose()
    assert len(seen) == 40
    assert most == 8

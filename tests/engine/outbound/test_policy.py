"""Which addresses may be reached, in whatever spelling they come."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from aiohttp import web
from aiohttp.abc import AbstractResolver

from engine.outbound.connecting import NotReached, Sender
from engine.outbound.policy import Policy, refusal_of, refusal_of_text

if TYPE_CHECKING:
    import socket
    from collections.abc import AsyncIterator

NOBODY = Policy()


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "127.1",
        "0x7f000001",
        "2130706433",
        "0",
        "0.0.0.0",
        "10.0.0.1",
        "172.16.3.4",
        "192.168.0.1",
        "100.64.0.1",
        "169.254.169.254",
        "224.0.0.1",
        "255.255.255.255",
        "[::1]",
        "[::]",
        "[fe80::1]",
        "[fd00::1]",
        "[ff02::1]",
        "[::ffff:127.0.0.1]",
        "[::ffff:a9fe:a9fe]",
        "[64:ff9b::7f00:1]",
        "[2002:7f00:1::]",
        "localhost",
        "LOCALHOST.",
        "a.localhost",
    ],
)
def test_what_is_not_public_is_refused_in_every_spelling(host: str):
    assert refusal_of_text(f"http://{host}:8080/x", NOBODY)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "x",
        "/threads/x",
        "//hooks.example/x",
        "ftp://hooks.example/",
        "file:///etc/passwd",
        "http://",
        "http://:80/",
        "http://hooks.example:0/",
        "http://hooks.example:99999/",
        "http://[::1/",
        "http://name@hooks.example/",
        "http://hooks.example/a b",
        "http://hooks.example/\n",
        "http://hooks.example\\@127.0.0.1/",
    ],
)
def test_what_is_no_url_is_refused(url: str):
    assert refusal_of_text(url, NOBODY)


@pytest.mark.parametrize("url", ["https://hooks.example/a?b=c", "http://93.184.216.34/", "http://[2606:4700::1111]/"])
def test_public_addresses_are_reached(url: str):
    assert refusal_of_text(url, NOBODY) == ""


def test_hosts_and_networks_that_are_named_are_reached_and_their_neighbours_are_not():
    policy = Policy.of(["agents.internal", "10.1.0.0/16", "::1/128"])
    assert refusal_of_text("http://10.1.2.3/", policy) == refusal_of_text("http://[::1]/", policy) == ""
    assert policy.allows("Agents.Internal.", "192.168.0.7")
    assert refusal_of_text("http://10.2.0.1/", policy)
    assert not policy.allows("other.internal", "192.168.0.7")
    assert not policy.allows("other.internal", "no address")


async def test_a_name_that_stands_for_this_machine_is_refused(monkeypatch: pytest.MonkeyPatch):
    async def inside(*_arguments: Any, **_options: Any) -> list[Any]:
        return [(2, 1, 6, "", ("127.0.0.1", 0))]

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", inside)
    assert "outbound.allow_private" in await refusal_of("http://rebinds.example/", NOBODY)
    assert await refusal_of("http://rebinds.example/", Policy.of(["127.0.0.0/8"])) == ""


class Names(AbstractResolver):
    """Answers each question with the next of some addresses."""

    def __init__(self, *answers: str) -> None:
        self.answers = list(answers)

    async def resolve(self, host: str, port: int = 0, family: socket.AddressFamily | int = 2) -> list[Any]:
        address = self.answers.pop(0)
        return [{"hostname": host, "host": address, "port": port, "family": 2, "proto": 0, "flags": 0}]

    async def close(self) -> None:
        return


@pytest.fixture
async def port() -> AsyncIterator[int]:
    """A server on 127.0.0.2 that says for whom it was asked."""

    async def answer(request: web.Request) -> web.Response:
        return web.Response(status=201 if request.headers["host"].startswith("hooks.example") else 500)

    application = web.Application()
    application.router.add_post("/", answer)
    runner = web.AppRunner(application)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.2", 0)
    await site.start()
    yield runner.addresses[0][1]
    await runner.cleanup()


async def test_the_address_that_was_checked_is_the_one_that_is_reached(port: int):
    policy = Policy.of(["127.0.0.2/32"])
    sender = Sender(lambda: policy, timeout_seconds=10, names=Names("127.0.0.2", "127.0.0.1"))
    try:
        assert await sender.post(f"http://hooks.example:{port}/", b"{}", {}) == 201
        with pytest.raises(NotReached):  # the same name stands for another address by now
            await sender.post(f"http://hooks.example:{port}/", b"{}", {})
        with pytest.raises(NotReached):
            await sender.post(f"http://127.0.0.1:{port}/", b"{}", {})
    finally:
        await sender.close()


async def test_the_policy_is_asked_anew_for_each_request(port: int):
    policies = [Policy.of(["127.0.0.2/32"])]
    sender = Sender(lambda: policies[0], timeout_seconds=10)
    try:
        assert await sender.post(f"http://127.0.0.2:{port}/", b"{}", {"host": "hooks.example"}) == 201
        policies[0] = NOBODY
        with pytest.raises(NotReached):
            await sender.post(f"http://127.0.0.2:{port}/", b"{}", {"host": "hooks.example"})
    finally:
        await sender.close()

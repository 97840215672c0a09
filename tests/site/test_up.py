"""The real thing: `manage.py up` and `manage.py demo` as processes, on the test run's kind of database."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from http.cookiejar import CookieJar
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlencode, urlsplit
from urllib.request import HTTPCookieProcessor, OpenerDirector, Request, build_opener

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

from tests.databases import own_database
from tests.patience import PATIENCE_SECONDS
from tests.site.processes import BASE_DIR, Spoken, alive, descendants, eventually, started

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [
    pytest.mark.workers,
    pytest.mark.skipif(sys.platform != "linux", reason="reads /proc, which other systems do not have"),
]
PASSWORD = "correct horse 9 battery"
KILLED_AFTER_SECONDS = 20  # what `up` gives its processes


@pytest.fixture
def environment(tmp_path: Path) -> Iterator[dict[str, str]]:
    """An installation of its own: an empty home folder and an empty database, on the server this test run uses."""
    own = {**os.environ, "DEER_FLOW_HOME": str(tmp_path / "home"), "DEMO_PACE": "0"}
    for name in ("DEER_FLOW_CONFIG", "DATABASE_URL"):
        own.pop(name, None)
    with own_database() as database:
        yield {**own, **database}


def command(name: str, *arguments: str) -> list[str]:
    return [sys.executable, "manage.py", name, "--port", "0", *arguments]


@pytest.fixture
def running(environment: dict[str, str]) -> Iterator[Spoken]:
    with started(command("up", "--workers", "1"), environment) as product:
        product.wait_for("Ready after", 60)
        assert becomes_ready(base_url(product))
        yield product


def base_url(product: Spoken) -> str:
    found = re.search(r"Ready after .* s: (http://[^/]+)/", product.text)
    assert found, product.text
    return found.group(1)


def setup_address(product: Spoken) -> str:
    found = re.search(r"http://\S+/setup/\S+/", product.text)
    assert found, product.text
    return found.group(0)


def submit(browser: OpenerDirector, address: str, **fields: str) -> str:
    """Fill in the form at the address; returns where that led."""
    page = browser.open(address).read().decode()
    token = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', page)
    assert token, page
    answer = browser.open(address, urlencode({"csrfmiddlewaretoken": token.group(1), **fields}).encode())
    return str(answer.url)


def get(url: str) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=PATIENCE_SECONDS)
    try:
        connection.request("GET", urlsplit(url).path)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def becomes_ready(base: str) -> bool:
    return eventually(lambda: get(f"{base}/readyz")[0] == 200)


def test_an_empty_installation_becomes_ready_and_its_link_makes_the_administrator(running: Spoken):
    base = base_url(running)
    browser = build_opener(HTTPCookieProcessor(CookieJar()))
    link = setup_address(running)
    assert submit(browser, link, username="ada", password1=PASSWORD, password2=PASSWORD) == f"{base}/chat/"
    assert get(link)[0] == 410


def test_sigterm_ends_every_process_with_status_0(running: Spoken):
    family = descendants(running.pid)
    assert len(family) >= 5  # web, cluster, sentinel, monitor, worker
    os.kill(running.pid, signal.SIGTERM)
    assert running.end(30) == 0
    assert "Traceback" not in running.text
    assert not [pid for pid in family if alive(pid)]


@pytest.mark.faults
def test_killing_the_supervisor_leaves_nothing(running: Spoken):
    family = descendants(running.pid)
    os.kill(running.pid, signal.SIGKILL)
    assert eventually(lambda: not any(alive(pid) for pid in family))


@pytest.mark.faults
def test_killing_the_cluster_takes_its_forks_along_and_brings_a_new_one(running: Spoken):
    cluster = next(pid for pid in descendants(running.pid) if len(descendants(pid)) >= 3)
    forks = descendants(cluster)
    os.kill(cluster, signal.SIGKILL)
    assert eventually(lambda: not any(alive(pid) for pid in forks))
    running.wait_for("The workers stopped (killed by SIGKILL); starting again in 1 s.")
    assert eventually(lambda: len(descendants(running.pid)) == len(forks) + 2)


def test_the_supervisor_costs_little_memory(running: Spoken):
    fields = Path(f"/proc/{running.pid}/smaps_rollup").read_text(encoding="ascii")
    found = re.search(r"^Pss:\s+(\d+) kB", fields, re.MULTILINE)
    assert found
    assert int(found.group(1)) < 16_000


async def test_open_sockets_and_streams_end_at_a_stop_before_anybody_is_killed(
    running: Spoken, environment: dict[str, str]
):
    base = base_url(running)
    jar = CookieJar()
    browser = build_opener(HTTPCookieProcessor(jar))
    form = {"username": "ada", "password1": PASSWORD, "password2": PASSWORD}
    await asyncio.to_thread(submit, browser, setup_address(running), **form)
    key = await asyncio.to_thread(api_key, environment)
    thread_id = json.loads(call(base, key, "/langgraph/threads", {}).read())["thread_id"]
    human = {"role": "user", "content": "demo: lead slow. Wait."}
    asked = {"assistant_id": "lead_agent", "input": {"messages": [human]}, "stream_mode": ["values"]}
    stream = call(base, key, f"/langgraph/threads/{thread_id}/runs/stream", asked)
    assert b"metadata" in stream.readline()
    headers = {"Cookie": "; ".join(f"{cookie.name}={cookie.value}" for cookie in jar), "Origin": base}
    address = f"{base.replace('http', 'ws', 1)}/ws/threads/{thread_id}/?after=0"
    async with connect(address, additional_headers=headers) as websocket:
        await websocket.recv()
        began = time.monotonic()
        os.kill(running.pid, signal.SIGTERM)
        drained = asyncio.to_thread(drain, stream)
        with pytest.raises(ConnectionClosed):
            while True:
                await asyncio.wait_for(websocket.recv(), PATIENCE_SECONDS)
        await drained
        assert time.monotonic() - began < KILLED_AFTER_SECONDS  # it was asked, not killed
    assert await asyncio.to_thread(running.end) == 0


def api_key(environment: dict[str, str]) -> str:
    argv = [sys.executable, "manage.py", "apikeys", "create", "--user", "ada", "--scope", "run", "--json"]
    made = subprocess.run(argv, cwd=BASE_DIR, env=environment, capture_output=True, text=True, check=True)
    return str(json.loads(made.stdout)["key"])


def call(base: str, key: str, path: str, body: object) -> http.client.HTTPResponse:
    headers = {"Content-Type": "application/json", "x-api-key": key}
    answer: http.client.HTTPResponse = build_opener().open(Request(base + path, json.dumps(body).encode(), headers))
    return answer


def drain(stream: http.client.HTTPResponse) -> None:
    try:
        while stream.read1(65_536):
            pass
    except (http.client.HTTPException, OSError):
        return
    finally:
        stream.close()


def test_two_may_start_at_the_same_moment_on_an_empty_database(environment: dict[str, str]):
    argv = command("up", "--workers", "1")
    with started(argv, environment) as one, started(argv, environment) as other:
        for product in (one, other):
            product.wait_for("Ready after", 60)
            assert becomes_ready(base_url(product))
            assert "Traceback" not in product.text


def test_everything_works_below_a_sub_path(environment: dict[str, str]):
    with started(command("up", "--workers", "1"), {**environment, "SCRIPT_NAME": "/agents"}) as product:
        product.wait_for("Ready after", 60)
        base = base_url(product)
        assert f"{base}/agents/setup/" in product.text
        status, page = get(f"{base}/agents/login/")
        sheet = re.search(r'<link rel="stylesheet" href="([^"]+)"', page.decode())
        assert sheet
        assert status == 200
        assert sheet.group(1).startswith("/agents/")
        for path in (sheet.group(1), "/agents/langgraph/ok", "/healthz"):
            assert get(base + path)[0] == 200, path


def test_a_taken_port_is_named_and_ends_the_start_with_status_1(environment: dict[str, str]):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        with started([sys.executable, "manage.py", "up", "--port", port], environment) as product:
            assert product.end(30) == 1
    assert f"Cannot listen on 127.0.0.1 port {port}" in product.text
    assert "Traceback" not in product.text


def test_a_refused_configuration_ends_the_first_start_with_every_problem(environment: dict[str, str], tmp_path: Path):
    broken = tmp_path / "config.yaml"
    broken.write_text("modles: []\nsubagents:\n  max_total_per_run: many\n")
    with started(command("up"), {**environment, "DEER_FLOW_CONFIG": str(broken)}) as product:
        assert product.end(30) == 1
    assert "config.yaml:1:1 modles" in product.text
    assert "config.yaml:3:" in product.text
    assert "Traceback" not in product.text


def test_the_demonstration_prints_its_password_once_and_keeps_its_data(environment: dict[str, str]):
    with started(command("demo", "--workers", "1"), environment) as product:
        product.wait_for("Ready after", 120)
        password = re.search(r"as admin with the password (\S+)", product.text)
        assert password, product.text
        browser = build_opener(HTTPCookieProcessor(CookieJar()))
        base = base_url(product)
        assert submit(browser, f"{base}/login/", username="admin", password=password.group(1)) == f"{base}/chat/"
        assert "Note-taking apps for a small team" in browser.open(f"{base}/chat/").read().decode()
        catalogue = browser.open(f"{base}/admin/subagents/managedsubagent/").read().decode()
        for name in ("market-researcher", "translator", "meeting-notes", "fact-checker"):
            assert name in catalogue
        os.kill(product.pid, signal.SIGINT)
        assert product.end(30) == 0
    with started(command("demo", "--workers", "1"), environment) as again:
        text = again.wait_for("Ready after", 60)
        assert "with the password" not in text
        assert "changepassword admin" in text

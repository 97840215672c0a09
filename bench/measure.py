"""The scenarios. Each answers figures by name; a figure's unit is the end of its name.

A scenario that does not get the right answer raises WrongResult: a server is not fast that is wrong.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bench.client import ENDED, ModelAccount, Wire, WrongResult, token_of
from tests.scripted_model import scripts

if TYPE_CHECKING:
    from bench.processes import Server

Figures = dict[str, float]
WARM_UP_RUNS = 5
ACCEPTED_AT_ONCE = 32  # requests in flight while a burst is handed in
BURST_TIMEOUT_SECONDS = 120.0


@dataclass(slots=True)
class Subject:
    """One server under measurement."""

    name: str
    wire: Wire
    server: Server
    model: ModelAccount


Scenario = Callable[[Subject], Awaitable[Figures]]


def percentile(values: list[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def expect_answer(answer: object, script_id: str) -> None:
    if f"ok:{script_id}" not in json.dumps(answer):
        raise WrongResult(f"ok:{script_id} is missing in {json.dumps(answer)[:300]}")


async def instant(subject: Subject, runs: int = 60) -> Figures:
    """A run with a model that answers at once, one after the other: waited for, and created then polled."""
    waited: list[float] = []
    for number in range(WARM_UP_RUNS + runs):
        script_id, prompt = scripts.instant()
        thread_id, started_at = await subject.wire.new_thread(), time.monotonic()
        expect_answer(await subject.wire.sdk_wait(thread_id, prompt), script_id)
        if number >= WARM_UP_RUNS:
            waited.append(time.monotonic() - started_at)
    cpu_before = subject.server.cpu_seconds()
    polled = [await _create_and_poll(subject.wire) for _ in range(runs)]
    return {
        "wait p50 ms": statistics.median(waited) * 1000,
        "wait p99 ms": percentile(waited, 0.99) * 1000,
        "create and poll p50 ms": statistics.median(polled) * 1000,
        "server CPU per run ms": (subject.server.cpu_seconds() - cpu_before) / runs * 1000,
    }


async def _create_and_poll(wire: Wire) -> float:
    thread_id, started_at = await wire.new_thread(), time.monotonic()
    run_id = await wire.create(thread_id, scripts.instant()[1])
    while (status := await wire.status(thread_id, run_id)) not in ENDED:
        await asyncio.sleep(0.002)
    if status != "success":
        raise WrongResult(f"an instant run ended as {status}")
    return time.monotonic() - started_at


async def first_token(subject: Subject, runs: int = 25, count: int = 20) -> Figures:
    """From the request to the first piece of text, every token complete and in order."""
    first: list[float] = []
    expected = "".join(f"t{number} " for number in range(count))
    for number in range(WARM_UP_RUNS + runs):
        thread_id = await subject.wire.new_thread()
        started_at, first_at, text = time.monotonic(), None, ""
        async for part in subject.wire.sdk_stream(thread_id, scripts.tokens(count)[1]):
            text += token_of(part)
            first_at = first_at or (time.monotonic() if text else None)
        if text != expected or first_at is None:
            raise WrongResult(f"streamed {text[:200]!r} instead of {expected!r}")
        if number >= WARM_UP_RUNS:
            first.append(first_at - started_at)
    return {
        "first token p50 ms": statistics.median(first) * 1000,
        "first token p99 ms": percentile(first, 0.99) * 1000,
    }


async def throughput(subject: Subject, seconds: float = 5.0) -> Figures:
    """Instant runs with 8, 32 and 128 in flight."""
    figures: Figures = {}
    for in_flight in (8, 32, 128):
        durations: list[float] = []
        cpu_before, started_at = subject.server.cpu_seconds(), time.monotonic()
        clients = [_one_after_another(subject.wire, started_at + seconds, durations) for _ in range(in_flight)]
        await asyncio.gather(*clients)
        elapsed = time.monotonic() - started_at
        cpu = subject.server.cpu_seconds() - cpu_before
        figures[f"{in_flight} in flight: runs/s"] = len(durations) / elapsed
        figures[f"{in_flight} in flight: p99 ms"] = percentile(durations, 0.99) * 1000
        figures[f"{in_flight} in flight: server CPU per run ms"] = cpu / len(durations) * 1000
    return figures


async def _one_after_another(wire: Wire, until: float, durations: list[float]) -> None:
    while (started_at := time.monotonic()) < until:
        script_id, prompt = scripts.instant()
        expect_answer(await wire.wait(await wire.new_thread(), prompt), script_id)
        durations.append(time.monotonic() - started_at)


async def delegate(subject: Subject, runs: int = 6, children: int = 3, seconds: float = 1.0) -> Figures:
    """A lead with three subagents of one second in parallel. Ideal: one second."""
    walls: list[float] = []
    most: list[int] = []
    for number in range(1 + runs):
        await subject.model.reset()
        script_id, child_ids, prompt = scripts.delegate(children, seconds)
        thread_id, started_at = await subject.wire.new_thread(), time.monotonic()
        answer = await subject.wire.sdk_wait(thread_id, prompt)
        wall = time.monotonic() - started_at
        expect_answer(answer, script_id)
        calls_per_child = [len(await subject.model.calls(child_id)) for child_id in child_ids]
        if calls_per_child != [1] * children:
            raise WrongResult("not every subagent asked the model exactly once")
        if number:
            walls.append(wall)
            most.append((await subject.model.counters())["max_in_flight"])
    return {
        "wall p50 over ideal": statistics.median(walls) / seconds,
        "overhead p50 ms": (statistics.median(walls) - seconds) * 1000,
        "least parallel model calls": float(min(most)),
    }


def background(runs: int, seconds: float) -> Scenario:
    """That many background runs at once, each read back as ended."""

    async def scenario(subject: Subject) -> Figures:
        thread_ids = await _in_batches([subject.wire.new_thread for _ in range(runs)])
        await subject.model.reset()
        cpu_before, started_at = subject.server.cpu_seconds(), time.monotonic()
        async with subject.server.peak() as peak:
            creations = [_creation(subject.wire, thread_id, seconds) for thread_id in thread_ids]
            run_ids = await _in_batches(creations)
            accepted = time.monotonic() - started_at
            await _model_is_done(subject.model, runs, started_at)
            endings = await _read_back(subject.wire, list(zip(thread_ids, run_ids, strict=True)), started_at)
            makespan = time.monotonic() - started_at
        if endings != {"success": runs}:
            raise WrongResult(f"the runs ended as {dict(endings)}")
        return {
            "makespan over ideal": makespan / seconds,
            "makespan over ideal + acceptance": makespan / (seconds + accepted),
            "acceptance s": accepted,
            "most in flight at the model": float((await subject.model.counters())["max_in_flight"]),
            "peak PSS MB": peak.pss_bytes / 2**20,
            "server CPU s": subject.server.cpu_seconds() - cpu_before,
        }

    return scenario


def _creation(wire: Wire, thread_id: str, seconds: float) -> Callable[[], Awaitable[str]]:
    prompt = scripts.sleeper(seconds)[1]
    return lambda: wire.create(thread_id, prompt)


async def _in_batches(requests: list[Callable[[], Awaitable[str]]]) -> list[str]:
    """The answers in the requests' order, at most ACCEPTED_AT_ONCE under way."""
    slots = asyncio.Semaphore(ACCEPTED_AT_ONCE)

    async def one(request: Callable[[], Awaitable[str]]) -> str:
        async with slots:
            return await request()

    return await asyncio.gather(*map(one, requests))


async def _model_is_done(model: ModelAccount, calls: int, started_at: float) -> None:
    """Watched at the model, so that waiting puts no load on the server."""
    while time.monotonic() - started_at < BURST_TIMEOUT_SECONDS:
        counters = await model.counters()
        if counters["requests"] >= calls and counters["in_flight"] == 0:
            return
        await asyncio.sleep(0.02)
    raise WrongResult(f"not over within {BURST_TIMEOUT_SECONDS} s: {await model.counters()}")


async def _read_back(wire: Wire, runs: list[tuple[str, str]], started_at: float) -> Counter[str]:
    endings: Counter[str] = Counter()
    while runs and time.monotonic() - started_at < BURST_TIMEOUT_SECONDS:
        statuses = await _in_batches([_reading(wire, *run) for run in runs])
        endings.update(status for status in statuses if status in ENDED)
        runs = [run for run, status in zip(runs, statuses, strict=True) if status not in ENDED]
    endings.update(["not ended"] * len(runs))
    return endings


def _reading(wire: Wire, thread_id: str, run_id: str) -> Callable[[], Awaitable[str]]:
    return lambda: wire.status(thread_id, run_id)


async def memory(subject: Subject) -> Figures:
    """The tree at rest, every process of it started."""
    script_id, prompt = scripts.instant()
    expect_answer(await subject.wire.sdk_wait(await subject.wire.new_thread(), prompt), script_id)
    await asyncio.sleep(2.0)
    cpu_before, started_at = subject.server.cpu_seconds(), time.monotonic()
    await asyncio.sleep(2.0)
    idle_cpu = (subject.server.cpu_seconds() - cpu_before) / (time.monotonic() - started_at)
    return {
        "idle PSS MB": subject.server.pss_bytes() / 2**20,
        "idle CPU share of a core": idle_cpu,
        "processes": float(len(subject.server.processes())),
    }


SCENARIOS: dict[str, Scenario] = {
    "memory": memory,
    "instant": instant,
    "first_token": first_token,
    "throughput": throughput,
    "delegate": delegate,
    "burst": background(200, 1.0),
    "background300": background(300, 2.0),
}

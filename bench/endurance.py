"""Mixed work at full slots while a worker is killed again and again: `python -m bench.endurance --minutes 10`.

Prints how many runs ended how, what was wrong (nothing may be), and the memory of the process tree over time.
Exits with 1 when a run is stuck, ended twice, lost an answer or did a tool call twice.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import itertools
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.__main__ import scripted_model, serving
from bench.client import ENDED, Wire, WrongResult
from bench.databases import database
from bench.processes import Server, free_port
from bench.product import PROJECT, Product, prepare
from tests.scripted_model import scripts

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

CLIENTS = 16  # more than the slots below, so that something always waits
SLOTS = 4
LIMITS = f"runs:\n  workers: 2\n  slots_per_worker: {SLOTS}\n  max_pending_per_owner: 1000\n"
SAMPLE_SECONDS = 5.0
PROCESSES = {"web": "uvicorn", "workers": "qcluster"}  # the word that tells each by its command line
SETTLE_SECONDS = 120.0
POLL_SECONDS = 0.1


@dataclass(slots=True)
class Work:
    """What the clients have asked for and how it ended."""

    wire: Wire
    until: float
    ended: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    kills: int = 0

    async def run(self, kind: str, prompt: str, right: set[str]) -> None:
        thread_id = await self.wire.new_thread()
        await self.follow(kind, thread_id, await self.wire.create(thread_id, prompt), right)

    async def follow(self, kind: str, thread_id: str, run_id: str, right: set[str]) -> None:
        while (status := await self.wire.status(thread_id, run_id)) not in ENDED:
            await asyncio.sleep(POLL_SECONDS)
        self.ended[f"{kind}: {status}"] += 1
        if status not in right:
            self.wrong.append(f"{kind} {run_id} ended as {status}")


async def three_subagents(work: Work) -> None:
    children = [scripts.append_line(f"{number}.txt", sleep=1.5) for number in range(3)]
    await work.run("three subagents", scripts.delegate_to(children)[1], {"success"})


async def long_answer(work: Work) -> None:
    await work.run("long answer", scripts.tokens(60, rate=20)[1], {"success"})


async def endless_loop(work: Work) -> None:
    await work.run("endless loop", scripts.tool_loop("ls", {"path": "."})[1], {"success", "error"})


async def busy_provider(work: Work) -> None:
    await work.run("busy provider", scripts.flaky([503, 429])[1], {"success"})


async def cancelled(work: Work) -> None:
    thread_id = await work.wire.new_thread()
    run_id = await work.wire.create(thread_id, scripts.delegate(3, 30.0)[2])
    await asyncio.sleep(2)
    with contextlib.suppress(Exception):  # it may have ended: that it did is asked next
        await work.wire.sdk.runs.cancel(thread_id, run_id)
    await work.follow("cancelled", thread_id, run_id, {"interrupted"})


KINDS: list[Callable[[Work], Awaitable[None]]] = [
    three_subagents,
    long_answer,
    three_subagents,
    endless_loop,
    busy_provider,
    cancelled,
]


async def client(work: Work, kinds: itertools.cycle[Callable[[Work], Awaitable[None]]]) -> None:
    while time.monotonic() < work.until:
        await next(kinds)(work)


async def killer(work: Work, product: Product, server: Server, every_seconds: float) -> None:
    for victim in itertools.count():
        await asyncio.sleep(every_seconds)
        ours = {process.pid for process in server.processes()}
        workers = [pid for pid in await asyncio.to_thread(audit, product, "--workers") if pid in ours]
        if workers:
            os.kill(workers[victim % len(workers)], signal.SIGKILL)
            work.kills += 1


async def memory(server: Server, samples: dict[str, list[int]]) -> None:
    """PSS by process, sampled in a thread beside the load."""
    while True:
        for name, word in PROCESSES.items():
            samples[name].append(await asyncio.to_thread(server.pss_bytes_of, word))
        await asyncio.sleep(SAMPLE_SECONDS)


def over_time(samples: list[int], parts: int = 6) -> list[int]:
    """Medians of equal parts, MB."""
    size = max(1, len(samples) // parts)
    return [round(statistics.median(samples[start : start + size]) / 1e6) for start in range(0, len(samples), size)]


def audit(product: Product, *arguments: str) -> Any:
    argv = [sys.executable, "-m", "bench.audit", *arguments]
    ended = subprocess.run(argv, cwd=PROJECT, env=product.env, capture_output=True, text=True, check=False)
    if ended.returncode:
        raise WrongResult(ended.stderr[-1000:])
    return json.loads(ended.stdout)


async def load(wire: Wire, product: Product, server: Server, seconds: float, every_seconds: float) -> dict[str, Any]:
    work = Work(wire, time.monotonic() + seconds)
    samples: dict[str, list[int]] = {name: [] for name in PROCESSES}
    kinds = itertools.cycle(KINDS)
    beside = [asyncio.create_task(killer(work, product, server, every_seconds))]
    beside.append(asyncio.create_task(memory(server, samples)))
    try:
        async with asyncio.timeout(seconds + SETTLE_SECONDS):
            await asyncio.gather(*(client(work, kinds) for _ in range(CLIENTS)))
    finally:
        for task in beside:
            task.cancel()
        await asyncio.gather(*beside, return_exceptions=True)
    found = await asyncio.to_thread(audit, product)
    found["faults"] += work.wrong
    grown = {f"PSS MB over time, {name}": over_time(values) for name, values in samples.items()}
    return {**found, "asked for": dict(work.ended), "kills": work.kills, **grown}


async def endure(options: argparse.Namespace, workplace: Path, url: str) -> int:
    async with scripted_model(workplace) as model:
        model_url = f"{model.root_url}/v1"
        product = prepare(
            workplace, port=free_port(), model_url=model_url, database_url=url, chat_model="openai", limits=LIMITS
        )
        async with serving("product", product, model, workplace) as subject:
            result = await load(subject.wire, product, subject.server, options.minutes * 60, options.kill_seconds)
    print(json.dumps(result, indent=2))
    return int(bool(result["faults"]))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.endurance", description=__doc__)
    parser.add_argument("--database", choices=["sqlite", "postgres"], default="sqlite")
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--kill-seconds", type=float, default=60.0, help="seconds between two killed workers")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bench-") as folder, database(options.database, Path(folder)) as url:
        return asyncio.run(endure(options, Path(folder), url))


if __name__ == "__main__":
    raise SystemExit(main())

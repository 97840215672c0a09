"""Measure the product against the floor: `python -m bench --database sqlite|postgres [--only burst]`.

Starts the scripted model, the floor and the product, runs each scenario on one after the other, prints a
table and writes bench/results/. With BENCH_HARNESS naming another bench's folder, runs that one instead.
Exits with 1 when a scenario did not get its right answers.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import aiohttp
import httpx

from bench import harness, report
from bench.client import ModelAccount, Wire, WrongResult
from bench.databases import database
from bench.measure import SCENARIOS, Figures, Subject
from bench.processes import Server, ServerFailed, free_port
from bench.product import ASSISTANT, CHAT_MODELS, PROJECT, Product, prepare, started_by

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

RESULTS = PROJECT / "bench" / "results"
SCENARIO_TIMEOUT_SECONDS = 300.0
FAULTS = (WrongResult, ServerFailed, TimeoutError, OSError, aiohttp.ClientError, httpx.HTTPError)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--database", choices=["sqlite", "postgres"], default="sqlite")
    parser.add_argument("--model", choices=[*CHAT_MODELS], default="openai", help="the product's chat model class")
    parser.add_argument("--only", default="", help=f"scenarios, with commas: {', '.join(SCENARIOS)}")
    parser.add_argument("--floor-only", action="store_true", help="measure the floor alone")
    parser.add_argument("--start", help="another server's command; {port} and {model} in it are filled in")
    parser.add_argument("--path", default="", help="with --start: where its threads and runs are mounted")
    parser.add_argument("--key", default="", help="with --start: an API key")
    return parser.parse_args()


def make_product(options: argparse.Namespace, workplace: Path, database_url: str, model_url: str) -> Product:
    port = free_port()
    if not options.start:
        return prepare(workplace, port=port, model_url=model_url, database_url=database_url, chat_model=options.model)
    headers = {"x-api-key": options.key} if options.key else {}
    env = {**os.environ, **({"DATABASE_URL": database_url} if database_url else {})}
    return started_by(options.start, port=port, model_url=model_url, path=options.path, env=env, headers=headers)


@contextlib.asynccontextmanager
async def scripted_model(workplace: Path) -> AsyncIterator[ModelAccount]:
    log = workplace / "model.log"
    argv = [sys.executable, "-m", "tests.scripted_model", "--port", "0"]
    with Server("scripted model", argv, env=dict(os.environ), cwd=PROJECT, log=log) as server:
        root_url = await server.first_line(r"(http://[\d.:]+)/v1")
        async with aiohttp.ClientSession() as session:
            yield ModelAccount(root_url, session)


@contextlib.asynccontextmanager
async def serving(name: str, product: Product, model: ModelAccount, workplace: Path) -> AsyncIterator[Subject]:
    log = workplace / f"{name}.log"
    with Server(name, product.argv, env=product.env, cwd=PROJECT, log=log) as server:
        await server.wait_until(product.ready_url)
        async with Wire(product.url, ASSISTANT, product.headers).connected() as wire:
            yield Subject(name, wire, server, model)


async def measured(scenario: str, subject: Subject) -> Figures | str:
    """The scenario's figures, or a sentence that says why there are none."""
    print(f"{scenario} on {subject.name} …", file=sys.stderr, flush=True)
    try:
        async with asyncio.timeout(SCENARIO_TIMEOUT_SECONDS):
            return await SCENARIOS[scenario](subject)
    except FAULTS as fault:
        return f"{type(fault).__name__}: {fault}"


async def compare(
    options: argparse.Namespace, workplace: Path, make: Callable[[str], Product], chosen: list[str]
) -> int:
    async with scripted_model(workplace) as model, contextlib.AsyncExitStack() as stack:
        model_url = f"{model.root_url}/v1"
        servers = {} if options.floor_only else {"product": make(model_url)}
        floor = f"{sys.executable} -m bench.floor --port {{port}} --model {{model}}"
        servers["floor"] = started_by(floor, port=free_port(), model_url=model_url, path="")
        subjects = [
            await stack.enter_async_context(serving(name, server, model, workplace)) for name, server in servers.items()
        ]
        results: report.Results = {}
        for scenario in chosen:
            results[scenario] = {subject.name: await measured(scenario, subject) for subject in subjects}
    report.show(results, list(servers))
    name = options.database if options.model == "openai" else f"{options.database}-{options.model}"
    report.write(results, RESULTS / f"{name}.json", database=options.database)
    return int(any(isinstance(figures, str) for by_server in results.values() for figures in by_server.values()))


def main() -> int:
    options = parse()
    chosen = [name.strip() for name in options.only.split(",") if name.strip()]
    other = os.environ.get("BENCH_HARNESS")
    if not other and set(chosen) - set(SCENARIOS):
        print(f"no such scenario; there are {', '.join(SCENARIOS)}", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        workplace = Path(folder)
        kind = "sqlite" if options.floor_only else options.database
        with database(kind, workplace) as database_url:
            make = partial(make_product, options, workplace, database_url)
            if other:
                RESULTS.mkdir(exist_ok=True)
                running = harness.run(Path(other), workplace, RESULTS, make_product=make, only=chosen)
            else:
                running = compare(options, workplace, make, chosen or list(SCENARIOS))
            return asyncio.run(running)


if __name__ == "__main__":
    try:
        raise SystemExit(main())
    except ServerFailed as fault:
        print(fault, file=sys.stderr)
        raise SystemExit(1) from None

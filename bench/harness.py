"""Another bench on the same product: its `bench.py`, model server and floor; our command, URL and key."""

from __future__ import annotations

import asyncio
import os
import sys
from typing import TYPE_CHECKING

from bench.processes import Server, free_port
from bench.product import ASSISTANT, PROJECT, Product

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


async def run(
    harness: Path, workplace: Path, results: Path, *, make_product: Callable[[str], Product], only: list[str]
) -> int:
    """Run it for floor and product, one result file each. Answers the first exit code that is not 0.

    The product is measured as a server that is already there: the harness would send its key as a header
    that the SDK keeps for itself and refuses, and lets nobody choose the headers of a server it starts.
    """
    port = free_port()
    root_url = f"http://127.0.0.1:{port}"
    argv = [sys.executable, str(harness / "fakellm.py"), "--port", str(port)]
    with Server("model", argv, env=dict(os.environ), cwd=workplace, log=workplace / "model.log") as model:
        await model.wait_until(f"{root_url}/stats")
        product = make_product(f"{root_url}/v1")
        environment = harness_environment(root_url, workplace)
        bench = [sys.executable, str(harness / "bench.py"), *(["--only", ",".join(only)] if only else [])]
        code = await _measured([*bench, "floor", "--out", str(results / "harness-floor.json")], environment, workplace)
        if code:
            return code
        log = workplace / "product.log"
        with Server("product", product.argv, env=product.env, cwd=PROJECT, log=log) as server:
            await server.wait_until(product.ready_url)
            running = arguments_for(product, server.processes()[0].pid)
            out = str(results / "harness-ours.json")
            return await _measured([*bench, *running, "--out", out], environment, workplace)


async def _measured(argv: list[str], environment: dict[str, str], workplace: Path) -> int:
    process = await asyncio.create_subprocess_exec(*argv, env=environment, cwd=workplace)
    return await process.wait()


def arguments_for(product: Product, pid: int) -> list[str]:
    """How the harness finds a server that somebody else has started."""
    arguments = ["--url", product.url, "--assistant", ASSISTANT, "--name", "ours", "--pid", str(pid)]
    return [*arguments, "--header", f"authorization=Bearer {product.key}"] if product.key else arguments


def harness_environment(model_root_url: str, workplace: Path) -> dict[str, str]:
    return {
        **os.environ,
        "FAKE_LLM_ROOT": model_root_url,
        "BENCH_PYTHON": sys.executable,
        "BENCH_WORK": str(workplace / "harness"),
    }

"""Another bench on the same product: its `bench.py`, model server and floor; our command, URL and key."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from typing import TYPE_CHECKING

from bench.processes import Server, free_port
from bench.product import ASSISTANT, PROJECT, Product

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

PEERS = ("floor", "ours")


async def run(
    harness: Path, workplace: Path, results: Path, *, make_product: Callable[[str], Product], only: list[str]
) -> int:
    """Run it for floor and product, one result file each. Answers the first exit code that is not 0."""
    port = free_port()
    root_url = f"http://127.0.0.1:{port}"
    argv = [sys.executable, str(harness / "fakellm.py"), "--port", str(port)]
    with Server("model", argv, env=dict(os.environ), cwd=workplace, log=workplace / "model.log") as model:
        await model.wait_until(f"{root_url}/stats")
        product = make_product(f"{root_url}/v1")
        environment = harness_environment(product, root_url, workplace)
        chosen = ["--only", ",".join(only)] if only else []
        for peer in PEERS:
            out = results / f"harness-{peer}.json"
            argv = [sys.executable, str(harness / "bench.py"), peer, "--out", str(out), *chosen]
            code = subprocess.run(argv, env=environment, cwd=workplace, check=False).returncode
            if code:
                return code
    return 0


def harness_environment(product: Product, model_root_url: str, workplace: Path) -> dict[str, str]:
    return {
        **product.env,
        "FAKE_LLM_ROOT": model_root_url,
        "BENCH_PYTHON": sys.executable,
        "BENCH_WORK": str(workplace / "harness"),
        "OURS_CMD": shlex.join(product.argv),
        "OURS_URL": product.url,
        "OURS_READY": product.ready_url.removeprefix(product.url),
        "OURS_KEY": product.key,
        "OURS_CWD": str(PROJECT),
        "OURS_ASSISTANT": ASSISTANT,
    }

"""The server alone: `python -m tests.scripted_model --port 9100 [--plan]`."""

from __future__ import annotations

import argparse
import asyncio
import signal

from tests.scripted_model.calls import Ledger
from tests.scripted_model.choice import ReplyChoice
from tests.scripted_model.plan import Planner
from tests.scripted_model.server import ScriptedServer


async def serve(port: int, choice: ReplyChoice) -> None:
    runner, port = await ScriptedServer(choice, Ledger(keeps_bodies=False)).listen(port)
    print(f"scripted model on http://127.0.0.1:{port}/v1", flush=True)
    stopping = asyncio.Event()
    for signal_number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(signal_number, stopping.set)
    await stopping.wait()
    await runner.cleanup()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.scripted_model", description=__doc__)
    parser.add_argument("--port", type=int, default=9100, help="0 takes a free one; the first line says which")
    parser.add_argument("--plan", action="store_true", help="answer unscripted requests as a lead or subagent")
    parser.add_argument("--rate", type=float, default=25.0, help="pieces of text per second with --plan")
    parser.add_argument("--latency", type=float, default=0.4, help="seconds to the first byte with --plan")
    options = parser.parse_args()
    planner = Planner(rate_per_second=options.rate, latency_seconds=options.latency) if options.plan else None
    asyncio.run(serve(options.port, ReplyChoice(planner=planner)))


if __name__ == "__main__":
    main()

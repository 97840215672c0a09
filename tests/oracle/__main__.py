"""`python -m tests.oracle LANGGRAPH`: play the script to both servers and print what differs and is on no list."""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
from collections import Counter
from pathlib import Path

from langgraph_sdk import get_client

from tests.oracle.compare import differences, known
from tests.oracle.script import play
from tests.oracle.servers import ours, reference
from tests.oracle.tape import Tape

ARTEFACTS = Path("test-artefacts")


async def played(url: str, key: str) -> Tape:
    tape = Tape()
    # A server that failed may close a connection that the next call would take up again.
    sdk = get_client(url=url, api_key=key or None, headers={"connection": "close"})
    sdk.http.client.event_hooks["response"].append(tape.hear)
    try:
        await play(sdk, tape)
    finally:
        await sdk.aclose()
    return tape


def both(program: str) -> tuple[Tape, Tape]:
    """What this server answered, and what the reference did; kept in test-artefacts, too."""
    with tempfile.TemporaryDirectory() as folder:
        with reference(Path(folder, "theirs"), program) as (url, key):
            theirs = asyncio.run(played(url, key))
        with ours(Path(folder, "ours")) as (url, key):
            mine = asyncio.run(played(url, key))
    ARTEFACTS.mkdir(exist_ok=True)
    for name, tape in (("ours", mine), ("theirs", theirs)):
        (ARTEFACTS / f"oracle-{name}.json").write_text(json.dumps(tape.steps, indent=1, default=str), "utf-8")
    return mine, theirs


def main(program: str) -> int:
    mine, theirs = both(program)
    reasons, seen, unknown = known(), Counter[int](), []
    for difference in differences(mine, theirs):
        covering = next((number for number, one in enumerate(reasons) if one.covers(difference)), None)
        if covering is None:
            unknown.append(difference)
        else:
            seen[covering] += 1
    for number, one in enumerate(reasons):
        print(f"{seen[number]:5} x  {one.step} {one.path}\n         {one.reason}")
    for one_unknown in unknown:
        print(one_unknown)
    idle = [one for number, one in enumerate(reasons) if not seen[number]]
    for one in idle:
        print(f"no longer differs: {one.step} {one.path}")
    print(
        f"{len(theirs.steps)} steps, {seen.total()} known differences for {len(reasons) - len(idle)} reasons,"
        f" {len(unknown)} unknown, {len(idle)} no longer there"
    )
    return 1 if unknown or idle else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))

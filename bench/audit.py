"""What a database must say after any history: `python -m bench.audit [--workers]`, in the product's environment.

Prints JSON: with --workers the process ids of the workers that live, else what was found wrong and the totals.
"""

from __future__ import annotations

import argparse
import json
import os
import traceback
from collections import Counter
from typing import Any

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "deerflow_site.settings")
django.setup()

from django.db.models import Sum  # noqa: E402 - the models exist only after set-up
from django_q.models import OrmQ  # noqa: E402

from runs.models import Message, Run, Thread, WorkerHeartbeat  # noqa: E402
from runs.workspaces import workspaces_root  # noqa: E402
from tests.runs.invariants import assert_whole  # noqa: E402

TOKENS = ("input_tokens", "output_tokens")


def live_workers() -> list[int]:
    return [int(row.name.rpartition(":")[2]) for row in WorkerHeartbeat.objects.order_by("started_at")]


def faults() -> list[str]:
    found = [f"run {run.pk} is {run.status}" for run in Run.objects.active()]
    found += [f"queue row {pk} is left" for pk in OrmQ.objects.values_list("pk", flat=True)]
    for thread in Thread.objects.iterator():
        found += _broken_rules(thread) + _doubled_results(thread)
    found += [f"run {run.pk} counts other tokens than its messages" for run in Run.objects.all() if not _adds_up(run)]
    return found + _doubled_lines()


def totals() -> dict[str, Any]:
    every = Run.objects.aggregate(**{name: Sum(name) for name in TOKENS})
    return {
        "runs": Run.objects.count(),
        "statuses": dict(Counter(" ".join(row).strip() for row in Run.objects.values_list("status", "stop_reason"))),
        "errors": dict(Counter(Run.objects.exclude(error_code="").values_list("error_code", flat=True))),
        "continued after a lost worker": Run.objects.filter(lost_workers__gt=0).count(),
        "attempts": Run.objects.aggregate(all=Sum("attempt"))["all"],
        **every,
        "by agent": _tokens_by("agent"),
        "by model": _tokens_by("model"),
    }


def _tokens_by(column: str) -> dict[str, list[int | None]]:
    sums = Run.objects.values_list(column).annotate(*(Sum(name) for name in TOKENS)).order_by(column)
    return {str(value): tokens for value, *tokens in sums}


def _adds_up(run: Run) -> bool:
    rows = Message.objects.filter(thread_id=run.thread_id, run_id=run.pk).values_list("data", flat=True)
    usages = [usage for row in rows if (usage := json.loads(row).get("usage_metadata"))]
    return all((getattr(run, name) or 0) == sum(usage[name] for usage in usages) for name in TOKENS)


def _broken_rules(thread: Thread) -> list[str]:
    """What the tests ask of every history: no gap in the log, one end for each run, statuses that agree."""
    try:
        assert_whole([thread.pk])
    except AssertionError as fault:
        rule = traceback.extract_tb(fault.__traceback__)[-1].line
        return [f"thread {thread.pk} breaks the rule: {rule}"]
    return []


def _doubled_results(thread: Thread) -> list[str]:
    messages = [json.loads(row) for row in Message.objects.filter(thread=thread).values_list("data", flat=True)]
    calls = Counter(call["id"] for message in messages for call in message.get("tool_calls") or ())
    results = Counter(message["tool_call_id"] for message in messages if message["type"] == "tool")
    return [] if calls == results else [f"thread {thread.pk}: {len(calls)} tool calls, {results.total()} results"]


def _doubled_lines() -> list[str]:
    """Each line of an appended file is some script's own: two of one are a tool call that was done twice."""
    found = []
    for path in workspaces_root().glob("*/*.txt"):
        doubled = [line for line, times in Counter(path.read_text().splitlines()).items() if times > 1]
        found += [f"{path.name} in {path.parent.name}: {line} was written more than once" for line in doubled]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", action="store_true")
    if parser.parse_args().workers:
        print(json.dumps(live_workers()))
    else:
        print(json.dumps({"faults": faults(), **totals()}))


if __name__ == "__main__":
    main()

"""A long day in one conversation: every kind of event and every ending a card can show."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid4

from runs.event_types import (
    Delta,
    RunEnded,
    RunQueued,
    RunStarted,
    RunWaiting,
    TaskCreated,
    TaskEnded,
    TaskStarted,
    TaskStep,
)
from tests.web.log_writer import LogWriter

if TYPE_CHECKING:
    from datetime import datetime

MODEL = "default-large"
QUESTION = (
    "Compare what five CRM vendors charge a 40-seat team, and check whether our churn data says price is why people"
    " leave."
)
PLAN = (
    "I’ll split this in three: one researcher on list prices, the SQL analyst on our churn, and a coder for the"
    " comparison sheet. I assume annual billing in USD."
)
THOUGHT = "HubSpot splits seats into core and sales seats, so I need both list prices before comparing."
CHURN = "Churn fell on every plan except **Starter**, which rose from 3.1 % to 4.4 %."
ANSWER = """The churn part is back. Only **Starter** got worse, and the rise begins in May, the month its price went up:

| Plan | Q1 | Q2 | Q3 |
|---|--:|--:|--:|
| Starter | 3.1 % | 4.0 % | 4.4 % |
| Team | 2.2 % | 2.0 % | 1.9 % |

```python
def churn(lost: int, total: int) -> float:
    return lost / total  # per quarter
```

So price looks like the cause there, *not elsewhere*."""


def task(log: LogWriter, run_id: Any, call: str, name: str, label: str, title: str, **more: Any) -> str:
    task_id = more.pop("task", str(uuid4()))
    created = TaskCreated(
        task=task_id,
        thread=str(uuid4()),
        tool_call_id=call,
        subagent=name,
        display_name=label,
        title=title,
        prompt=f"{title}. Use the workspace and report in three sentences.",
        model=MODEL,
        max_turns=50,
        timeout_seconds=300,
        max_tokens=1_000_000,
        **more,
    )
    log.fact(run_id, created, seconds=0.1)
    return task_id


DELEGATIONS = (
    ("sql-analyst", "SQL analyst", "Churn by plan, last 4 quarters"),
    ("market-researcher", "Market researcher", "Map the reseller network"),
    ("bash", "", "Convert 400 PDFs to text"),
    ("coder", "Coder", "Refactor the importer"),
    ("coder", "Coder", "Write the importer"),
)
OUTCOMES: tuple[dict[str, Any], ...] = (
    {"status": "success", "result": CHURN, "model_calls": 9, "total_tokens": 21_400, "seconds": 97.0},
    {
        "status": "success",
        "stop_reason": "token_capped",
        "detail": {"limit": 1_000_000, "layer": "subagents.token_budget.max_tokens"},
        "result": "11 of 16 regions are covered.",
        "model_calls": 44,
        "total_tokens": 1_000_000,
        "seconds": 1100.0,
    },
    {
        "status": "timeout",
        "error_code": "timed_out",
        "detail": {"limit": 300, "layer": "subagents.agents.bash.timeout_seconds"},
        "model_calls": 31,
        "total_tokens": 64_000,
        "seconds": 300.0,
    },
    {
        "status": "cancelled",
        "cancelled_by": "lin",
        "model_calls": 6,
        "seconds": 125.0,
    },
    {
        "status": "error",
        "error_code": "model_unreachable",
        "error": "connection refused",
        "model_calls": 1,
        "seconds": 3.0,
    },
)


def endings(owner: Any, *, at: datetime) -> LogWriter:
    """Five tasks, each ended in its own way, a refused one, and an answer."""
    log = LogWriter(owner, title="Every ending", at=at)
    run = log.run(status="success")
    _asked(log, run.pk, "Show me every ending.")
    calls = [
        {"id": f"e{n}", "name": "task", "args": {"description": title}} for n, (*_who, title) in enumerate(DELEGATIONS)
    ]
    refused = {"id": "e9", "name": "task", "args": {"description": "Too many"}}
    written = {"id": "w1", "name": "write_file", "args": {"path": "notes/plan.md"}}
    log.message(run.pk, {"type": "ai", "content": "Five at once.", "tool_calls": [*calls, refused, written]})
    log.message(run.pk, {"type": "tool", "tool_call_id": "w1", "name": "write_file", "content": "Wrote 12 lines."})
    said = "Not started: at most 4 subagents at once."
    log.message(run.pk, {"type": "tool", "tool_call_id": "e9", "name": "task", "status": "error", "content": said})
    tasks = [task(log, run.pk, f"e{n}", *who) for n, who in enumerate(DELEGATIONS)]
    for item in tasks:
        log.fact(run.pk, TaskStarted(task=item, attempt=1, worker="host:42"), seconds=0.2)
        _step(log, run.pk, item, turn=1, call="c1", tool="read_file", text="data/input.csv", answer="400 lines")
    for item, outcome in zip(tasks, OUTCOMES, strict=True):
        log.fact(run.pk, TaskEnded(task=item, **outcome))
    log.message(run.pk, {"type": "ai", "content": ANSWER})
    log.fact(run.pk, RunEnded(status="success", model_calls=2, total_tokens=9_800))
    return log


def working(owner: Any, *, at: datetime) -> LogWriter:
    """A lead in the middle of its work: one task runs, one is done, one waits, one message is queued behind."""
    log = LogWriter(owner, title="CRM pricing study", at=at)
    run = log.run(started_at=at)
    _asked(log, run.pk, QUESTION)
    titles = ["Compare pricing of five CRM vendors", "Churn by plan, last 4 quarters", "Build the comparison sheet"]
    calls = [{"id": f"w{n}", "name": "task", "args": {"description": title}} for n, title in enumerate(titles)]
    log.message(run.pk, {"type": "ai", "content": PLAN, "tool_calls": calls}, seconds=8)
    researcher = task(log, run.pk, "w0", "market-researcher", "Market researcher", titles[0])
    analyst = task(log, run.pk, "w1", "sql-analyst", "SQL analyst", titles[1])
    task(log, run.pk, "w2", "coder", "Coder", titles[2])
    log.fact(run.pk, RunWaiting(waiting_for="children"))
    for item in (researcher, analyst):
        log.fact(run.pk, TaskStarted(task=item, attempt=1, worker="host:42"))
    outcome = TaskEnded(task=analyst, status="success", result=CHURN, model_calls=9, total_tokens=21_400, seconds=37.0)
    log.fact(run.pk, outcome, seconds=37)
    search = {"tool": "web_search", "text": "“HubSpot CRM seat price 2026”", "answer": "10 results"}
    _step(log, run.pk, researcher, turn=16, call="a", **search)
    thought = TaskStep(task=researcher, turn=17, kind="text", text=THOUGHT, total_tokens=46_200)
    log.fact(run.pk, thought, seconds=27)
    fetch = TaskStep(task=researcher, turn=18, kind="tool", call="b", tool="web_fetch", text="pipedrive.com/en/pricing")
    log.fact(run.pk, fetch, seconds=4)
    later = log.run(status="pending")
    queued = RunQueued(agent="lead_agent", behind=str(run.pk), text="Also say which vendor has an EU data centre.")
    log.fact(later.pk, queued)
    return log


def speaking(owner: Any, *, at: datetime, until: int | None = None) -> LogWriter:
    """A lead in the middle of a sentence."""
    log = LogWriter(owner, title="A reply that is being written", at=at)
    run = log.run(started_at=at)
    _asked(log, run.pk, "What did the churn data say?")
    text = ANSWER[:until]
    for start in range(0, len(text), 12):
        log.fact(run.pk, Delta(id="reply-1", text=text[start : start + 12]), seconds=0.02)
    return log


def _asked(log: LogWriter, run_id: UUID, question: str) -> None:
    log.message(run_id, {"type": "human", "content": question})
    log.fact(run_id, RunQueued(agent="lead_agent"))
    log.fact(run_id, RunStarted(attempt=1, worker="host:41"))


def _step(log: LogWriter, run_id: UUID, item: str, *, turn: int, call: str, tool: str, text: str, answer: str) -> None:
    log.fact(run_id, TaskStep(task=item, turn=turn, kind="tool", call=call, tool=tool, text=text), seconds=2)
    log.fact(run_id, TaskStep(task=item, turn=turn, kind="tool_result", call=call, tool=tool, text=answer), seconds=1.9)

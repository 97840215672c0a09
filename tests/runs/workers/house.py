"""A small house for tests of the worker: a person, a configuration on the scripted server, workers that can be lost."""

from __future__ import annotations

import asyncio
import json
import threading
from collections import Counter
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Self

import yaml
from django.utils import timezone
from django_q.models import OrmQ

from runs import services
from runs.event_types import EventType
from runs.log import read
from runs.models import Event, Message, Run, Thread
from runs.statuses import ENDED
from runs.transcript import load
from runs.worker import plans
from runs.worker.host import RunHost
from runs.workspaces import workspace_folder
from subagents import registry
from subagents.errors import NameTaken
from subagents.kinds import AGENT, SUBAGENT
from subagents.services import Actor, create, replace
from tests.patience import PATIENCE_SECONDS
from tests.scripted_model.strict import faults
from tests.site.processes import eventually

if TYPE_CHECKING:
    from pathlib import Path
    from uuid import UUID

    from runs.transcript import WireMessage
    from subagents.custom_agents import CustomAgent
    from subagents.definitions import Definition
    from tests.scripted_model import ScriptedModel

KEY = "sk-scripted-0123456789abcdef0123456789"


class Worker:
    """A worker in a thread of this process, with its own event loop. Leaving the block ends it without a word."""

    def __init__(self, *, name: str = "worker", slots: int = 100, grace_seconds: float = 0.0, **options: Any) -> None:
        self.name = name
        self._options = {"lease_seconds": 8, "max_attempts": 3, **options}
        self._slots, self._grace_seconds = slots, grace_seconds
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), name=name)
        self._ready = threading.Event()
        self._stop_asked = False

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._ready.wait(PATIENCE_SECONDS)
        return self

    def __exit__(self, *_raised: object) -> None:
        self.lose()

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self.host = RunHost(name=self.name, slots=self._slots, grace_seconds=self._grace_seconds, **self._options)
        self._serving = asyncio.create_task(self.host.serve(stop_asked=lambda: self._stop_asked))
        self._ready.set()
        await asyncio.wait([self._serving])
        await plans.close_models()
        if not self._serving.cancelled():
            self._serving.result()

    def stop(self) -> None:
        """As on SIGTERM: claim nothing more, wait out the grace, hand over. Returns when it has ended."""
        self._stop_asked = True
        self.wake()
        self._thread.join(PATIENCE_SECONDS)
        assert not self._thread.is_alive()

    def lose(self) -> None:
        """As when its process is killed: nothing is written any more, its leases stay as they are."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._serving.cancel)
            self._thread.join(PATIENCE_SECONDS)
        assert not self._thread.is_alive()

    def wake(self) -> None:
        self._loop.call_soon_threadsafe(self.host.wake)


class House:
    """What a test asks of the platform, in one place."""

    def __init__(self, model: ScriptedModel, owner: Any, config_file: Path) -> None:
        self.model = model
        self.owner = owner
        self._config_file = config_file
        self.configure()

    def configure(self, **sections: Any) -> None:
        """Put a configuration in force: the scripted model as only model, no bash, and what these sections say."""
        model = self.scripted_entry("scripted")
        more_models = sections.pop("more_models", [])
        sections = {"models": [model, *more_models], "sandbox": {"provider": "local"}, **sections}
        text = yaml.safe_dump(sections, sort_keys=False)
        self._config_file.write_text(text, encoding="utf-8")
        registry.forget()

    def scripted_entry(self, name: str) -> dict[str, Any]:
        """An entry of `models` on the scripted server."""
        return {
            "name": name,
            "use": "langchain_openai:ChatOpenAI",
            "model": "scripted",
            "api_key": KEY,
            "base_url": self.model.url,
        }

    def manage(self, name: str, **fields: Any) -> Definition:
        """Store a managed subagent; saving it again replaces it."""
        written = {"name": name, "description": f"Does {name}.", "system_prompt": f"You are {name}.", **fields}
        return self._stored(SUBAGENT, written)

    def agent(self, name: str, **fields: Any) -> CustomAgent:
        """Store a custom agent; saving it again replaces it."""
        return self._stored(AGENT, {"name": name, "system_prompt": f"You are {name}.", **fields})

    def _stored(self, kind: Any, written: dict[str, Any]) -> Any:
        actor = Actor(label="test")
        try:
            return create(kind, written, actor=actor)
        except NameTaken:
            version = registry.store(kind).get(written["name"]).version
            return replace(kind, written["name"], written, expected_version=version, actor=actor)

    def ask(self, prompt: str, *, thread: Thread | None = None, agent: str | None = None, **options: Any) -> Run:
        thread = thread or services.create_thread(owner=self.owner)
        return services.start_run(thread=thread, text=prompt, agent=agent, options=options)

    def work(self, **worker: Any) -> None:
        """Execute everything that is queued and whatever follows from it."""
        with Worker(**worker):
            self.until(lambda: not Run.objects.active().exists())

    def answer(self, prompt: str, **asked: Any) -> Run:
        """Ask, work, and give the run as it ended."""
        run = self.ask(prompt, **asked)
        self.work()
        return self.again(run)

    def until(self, condition: Any, seconds: float = PATIENCE_SECONDS) -> None:
        assert eventually(condition, seconds), "it did not come true: " + ", ".join(
            f"{run.agent} {run.status} {run.waiting_for} {run.error}" for run in Run.objects.all()
        )

    def until_status(self, run: Run, *statuses: str) -> Run:
        self.until(lambda: self.again(run).status in statuses)
        return self.again(run)

    def until_ended(self, *runs: Run) -> list[Run]:
        self.until(lambda: not Run.objects.active().filter(pk__in=[run.pk for run in runs]).exists())
        return [self.again(run) for run in runs]

    def until_calls(self, *script_ids: str) -> None:
        """Wait until the model has been asked by each of these scripts and answers none of them yet."""
        self.model.wait_for(
            lambda model: all(any(c.ended_at is None for c in model.calls_of(one)) for one in script_ids),
            PATIENCE_SECONDS,
        )

    def again(self, run: Run) -> Run:
        return Run.objects.get(pk=run.pk)

    def children(self, run: Run) -> list[Run]:
        return list(Run.objects.filter(parent_id=run.pk).order_by("created_at", "pk"))

    def messages(self, run: Run) -> list[WireMessage]:
        """The transcript of the run's thread."""
        return load([run.thread_id]).get(run.thread_id, [])

    def results(self, run: Run) -> list[WireMessage]:
        return [message for message in self.messages(run) if message["type"] == "tool"]

    def said(self, run: Run) -> str:
        """The last message of the run's thread."""
        return str(self.messages(run)[-1]["content"])

    def events(self, run: Run, *types: EventType) -> list[dict[str, Any]]:
        """The log of the run's thread: each row's JSON with its `type` as "event"."""
        rows = read(run.thread_id, 0)
        return [{**json.loads(row.data), "event": row.type} for row in rows if not types or row.type in types]

    def file(self, run: Run, name: str) -> Path:
        return workspace_folder(run.thread_id) / name

    def let_leases_lapse(self, *runs: Run) -> None:
        """As if a lease had passed without anybody renewing it: of these runs, or of all."""
        rows = OrmQ.objects.filter(pk__in=[self.again(run).queue_id for run in runs]) if runs else OrmQ.objects.all()
        rows.update(lock=timezone.now() - timedelta(seconds=1))

    def assert_sound(self) -> None:
        """What holds for every history, however it came about."""
        assert not Run.objects.active().exists()
        assert not OrmQ.objects.exists()
        for call in self.model.requests:
            assert faults(call.messages) == []
        for thread in Thread.objects.all():
            seqs = list(Event.objects.filter(thread_id=thread.pk).order_by("seq").values_list("seq", flat=True))
            assert seqs == list(range(1, thread.last_seq + 1))
            calls, results = _calls_and_results(load([thread.pk]).get(thread.pk, []))
            assert results == calls
        for run in Run.objects.all():
            assert run.status in ENDED
            assert _endings(run.thread_id, run.pk, EventType.RUN_ENDED, "") == 1
            if run.parent_id:
                parent = Run.objects.get(pk=run.parent_id)
                assert _endings(parent.thread_id, parent.pk, EventType.TASK_ENDED, str(run.pk)) == 1
            _assert_usage_is_the_sum_of_its_messages(run)
            assert KEY not in run.error


def _endings(thread_id: UUID, run_id: UUID, kind: EventType, task: str) -> int:
    rows = Event.objects.filter(thread_id=thread_id, run_id=run_id, type=kind).values_list("data", flat=True)
    return sum(json.loads(data).get("task", "") == task for data in rows)


def _calls_and_results(messages: list[WireMessage]) -> tuple[Counter[str], Counter[str]]:
    calls = Counter(call["id"] for message in messages for call in message.get("tool_calls") or ())
    assert set(calls.values()) <= {1}
    return calls, Counter(message["tool_call_id"] for message in messages if message["type"] == "tool")


def _assert_usage_is_the_sum_of_its_messages(run: Run) -> None:
    rows = Message.objects.filter(thread_id=run.thread_id, run_id=run.pk).values_list("data", flat=True)
    usages = [usage for row in rows if (usage := json.loads(row).get("usage_metadata"))]
    for column in ("input_tokens", "output_tokens"):
        assert (getattr(run, column) or 0) == sum(usage[column] for usage in usages)
    if not usages:
        assert run.total_tokens is None

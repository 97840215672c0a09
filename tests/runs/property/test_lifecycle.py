"""Any interleaving of what people, workers and lost machines do to runs keeps the invariants."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from django.utils import timezone
from django_q.conf import Conf
from django_q.models import OrmQ
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from runs import queue, services
from runs.continuing import continue_run, may_continue
from runs.errors import BadInput, Fenced, NotContinuable, NotSteerable, Steered, ThreadBusy
from runs.event_types import EventType
from runs.lifecycle import Cancel, Ending, Finish, HandOver, Held, Progress, ReadSteers, StartChild, commit
from runs.models import Event, Run, Thread
from runs.services import MultitaskStrategy
from runs.statuses import ACTIVE, ENDED, RunStatus
from runs.transcript import text_of
from runs.worker import sweep
from subagents import registry
from tests.runs.acts import ai, child_verb, claim, delta, lose_lease, transcript
from tests.runs.factories import PersonFactory, ThreadFactory
from tests.runs.invariants import assert_queue_whole, assert_whole

CALLS = st.sampled_from(["call-1", "call-2"])
ENDS = st.sampled_from(sorted(ENDED))
# A rollback takes words back, which these histories count.
STRATEGIES = st.sampled_from(sorted(set(MultitaskStrategy) - {MultitaskStrategy.ROLLBACK}))
PLACE = st.integers(0, 5)


class Lifecycle(RuleBasedStateMachine):
    """Two conversations of one person. `held` is every lease a worker ever got, those it lost included."""

    @initialize()
    def two_conversations(self) -> None:
        self.owner = PersonFactory()
        self.threads = [ThreadFactory(owner=self.owner) for _ in range(2)]
        self.held: list[Held] = []
        self.ended: dict[Any, str] = {}
        self.taken_back: set[str] = set()
        self.steers: dict[str, Any] = {}  # by message id, the run it was for
        self.number = 0

    # --- people and programs -------------------------------------------------------------------------------------
    @rule(place=PLACE, strategy=STRATEGIES)
    def send(self, place: int, strategy: MultitaskStrategy) -> None:
        thread = self.threads[place % 2]
        busy = Run.objects.active().filter(thread=thread).exists()
        self.number += 1
        try:
            run = services.start_run(thread=thread, text=f"message {self.number}", multitask=strategy)
        except ThreadBusy:
            assert busy and strategy == MultitaskStrategy.REJECT
            return
        run.refresh_from_db()
        assert (run.queue_id is None) <= busy

    @rule(place=PLACE)
    def cancel(self, place: int) -> None:
        run = self._some_run(place)
        if run is not None:
            self._note_if_it_waits(run)
            assert services.cancel_run(run_id=run.pk, by="lin") == (run.status in ACTIVE)

    @rule(place=PLACE)
    def remove_queued(self, place: int) -> None:
        run = self._some_run(place)
        if run is not None:
            waits = self._note_if_it_waits(run)
            assert services.remove_queued(run_id=run.pk, by="lin") == waits

    @rule(place=PLACE)
    def send_now(self, place: int) -> None:
        run = self._some_run(place)
        if run is not None:
            waits = run.status == RunStatus.PENDING and run.queue_id is None
            assert services.send_now(run_id=run.pk, by="lin") == waits

    @rule(place=PLACE)
    def steer(self, place: int) -> None:
        run = self._some_run(place)
        if run is None:
            return
        self.number += 1
        hears = run.status in ACTIVE and not run.cancel_requested and run.queue_id is not None
        try:
            message_id = services.steer_run(run_id=run.pk, text=f"steer {self.number}", by="lin")
        except (NotSteerable, BadInput) as refusal:
            assert not hears or isinstance(refusal, BadInput)
            return
        assert hears
        self.steers[str(message_id)] = run.pk

    @rule(place=PLACE)
    def go_on(self, place: int) -> None:
        run = self._some_run(place)
        if run is None:
            return
        try:
            new = continue_run(run_id=run.pk)
        except (NotContinuable, ThreadBusy):
            return
        assert may_continue(run)
        assert (new.continues_id, new.thread_id, new.parent_id) == (run.pk, run.thread_id, run.parent_id)

    @rule(place=PLACE)
    def stop_all(self, place: int) -> None:
        thread = self.threads[place % 2]
        for run in Run.objects.filter(thread=thread):
            self._note_if_it_waits(run)
        services.stop_all(thread_id=thread.pk, by="lin")

    # --- workers -------------------------------------------------------------------------------------------------
    @rule(free=st.integers(1, 4), most_attempts=st.sampled_from([1, 3]))
    def claim(self, free: int, most_attempts: int) -> None:
        for one in claim(free=free, max_attempts=most_attempts).runs:
            assert one.run.status == RunStatus.RUNNING
            self.held.append(one.held)

    @precondition(lambda self: self.held)
    @rule(place=PLACE, place_of_other=PLACE, status=ENDS, call=CALLS)
    def work(self, place: int, place_of_other: int, status: RunStatus, call: str) -> None:
        """Several verbs of one worker in one commit, as group commit sends them."""
        held, other = self._some_held(place), self._some_held(place_of_other)
        self._apply(
            Progress(held=held, entries=[ai("thinking"), delta()], changes={"model_calls": 1}),
            child_verb(held, call),
            Progress(held=other, entries=[delta()]),
            Finish(held=held, ending=Ending(status=status)),
        )

    @precondition(lambda self: self.held)
    @rule(place=PLACE, call=CALLS)
    def delegate(self, place: int, call: str) -> None:
        self._apply(child_verb(self._some_held(place), call))

    @precondition(lambda self: self.held)
    @rule(place=PLACE, status=ENDS)
    def finish(self, place: int, status: RunStatus) -> None:
        self._apply(Finish(held=self._some_held(place), ending=Ending(status=status), entries=[ai("answer")]))

    @precondition(lambda self: self.held)
    @rule(place=PLACE)
    def read_steers(self, place: int) -> None:
        held = self._some_held(place)
        unread = Run.objects.get(pk=held.run_id).steers
        (messages,) = self._apply(ReadSteers(held=held, turn=2))
        if not isinstance(messages, Fenced):
            assert messages == unread

    @precondition(lambda self: self.held)
    @rule(place=PLACE)
    def time_out(self, place: int) -> None:
        held = self._some_held(place)
        detail = {"limit": 30, "layer": "runs.timeout_seconds"}
        self._apply(Finish(held=held, ending=Ending(status=RunStatus.TIMEOUT, detail=detail)))

    @precondition(lambda self: self.held)
    @rule(place=PLACE)
    def hand_over(self, place: int) -> None:
        (queue_id,) = self._apply(HandOver(held=self._some_held(place)))
        if isinstance(queue_id, int):
            lose_lease(self._some_held(place))

    @precondition(lambda self: self.held)
    @rule(place=PLACE, order=st.permutations(["start", "cancel", "cancel another", "finish"]))
    def everybody_in_one_commit(self, place: int, order: list[str]) -> None:
        """Verbs see what those before them in the same commit have done, which the database does not know yet."""
        leases = dict(self._leases())
        current = [held for held in self.held if leases.get(held.run_id) == held.fence] or self.held
        held = current[place % len(current)]
        thread = Thread.objects.get(pk=held.thread_id)
        runs = list(Run.objects.active().filter(thread=thread).order_by("created_at")[:2])
        self.number += 1
        verbs: dict[str, Any] = {
            "start": services.start_verb(
                thread_id=thread.pk,
                owner_id=thread.owner_id,
                messages=[services.user_message(f"message {self.number}")],
            ),
            "finish": Finish(held=held, ending=Ending(status=RunStatus.SUCCESS)),
        }
        for name, run in zip(("cancel", "cancel another"), runs, strict=False):
            upper = tuple(Thread.objects.filter(runs=run.parent_id).values_list("pk", flat=True))
            verbs[name] = Cancel(run_id=run.pk, lock_threads=(thread.pk, *upper))
        commit([verbs[name] for name in order if name in verbs])

    # --- accidents -----------------------------------------------------------------------------------------------
    @precondition(lambda self: self.held)
    @rule(place=PLACE)
    def lose_a_worker(self, place: int) -> None:
        lose_lease(self._some_held(place))

    @rule(place=PLACE)
    def deliver_again(self, place: int) -> None:
        """A queue row of a run that has one already, or has ended: django-q2 delivers at least once."""
        run = self._some_run(place)
        if run is not None:
            OrmQ.objects.create(key=Conf.CLUSTER_NAME, payload=queue.package(run.pk), lock=timezone.now())
            self.claim(free=4, most_attempts=3)
            queue.drop(
                OrmQ.objects.exclude(
                    pk__in=Run.objects.filter(queue_id__isnull=False).values_list("queue_id", flat=True)
                ).values_list("pk", flat=True)
            )

    @rule()
    def sweep(self) -> None:
        sweep.sweep()

    @rule(place=PLACE)
    def lose_a_queue_row(self, place: int) -> None:
        row = OrmQ.objects.order_by("pk").first()
        if row is not None and place == 0:
            row.delete()
            sweep.sweep()

    # --- what always holds ---------------------------------------------------------------------------------------
    @invariant()
    def whole(self) -> None:
        mine = Thread.objects.filter(owner=self.owner).values_list("pk", flat=True)
        assert_whole(mine)
        assert_queue_whole()

    @invariant()
    def the_first_end_wins(self) -> None:
        runs = dict(Run.objects.filter(thread__owner=self.owner).values_list("pk", "status"))
        for run_id, status in self.ended.items():
            assert runs[run_id] == status
        self.ended = {run_id: status for run_id, status in runs.items() if status in ENDED}

    @invariant()
    def every_steer_is_unread_or_has_one_receipt(self) -> None:
        receipts = [
            orjson.loads(event.data)["id"]
            for event in Event.objects.filter(type=EventType.RUN_STEER_READ, thread__owner=self.owner)
        ]
        assert len(receipts) == len(set(receipts))
        unread = {m["id"] for run in Run.objects.filter(thread__owner=self.owner) for m in run.steers}
        assert unread | set(receipts) == set(self.steers)
        assert not unread & set(receipts)
        assert not Run.objects.filter(status__in=ENDED, thread__owner=self.owner).exclude(steers=[]).exists()

    @invariant()
    def one_child_for_each_call(self) -> None:
        calls = list(Run.objects.filter(parent__isnull=False, continues=None).values_list("parent_id", "tool_call_id"))
        assert len(calls) == len(set(calls))

    @invariant()
    def what_was_taken_back_is_never_said(self) -> None:
        said = {line for thread in self.threads for line in transcript(thread)}
        assert not {f"human: {text}" for text in self.taken_back} & said

    @invariant()
    def what_was_said_is_said_once(self) -> None:
        said = [line for thread in self.threads for line in transcript(thread) if line.startswith("human: message")]
        assert len(said) == len(set(said))

    def teardown(self) -> None:
        OrmQ.objects.all().delete()
        Thread.objects.all().delete()

    # --- how -----------------------------------------------------------------------------------------------------
    def _some_run(self, place: int) -> Run | None:
        runs = list(Run.objects.filter(thread__owner=self.owner).order_by("-created_at", "pk")[:6])
        return runs[place % len(runs)] if runs else None

    def _some_held(self, place: int) -> Held:
        return self.held[-1 - place % len(self.held)]

    def _note_if_it_waits(self, run: Run) -> bool:
        waits = run.status == RunStatus.PENDING and run.queue_id is None
        if waits:
            self.taken_back.update(text_of(message) for message in run.input)
        return waits

    def _apply(self, *verbs: Progress | Finish | HandOver | ReadSteers | StartChild) -> list[Any]:
        """Every verb of a lease that is not the run's newest is refused, every other one is not."""
        lives = {pk for pk, fence in self._leases()}
        before = dict(self._leases())
        outcomes = commit(verbs)
        for verb, outcome in zip(verbs, outcomes, strict=True):
            held = verb.parent if isinstance(verb, StartChild) else verb.held
            current = held.run_id in lives and before[held.run_id] == held.fence
            if not current:
                assert isinstance(outcome, Fenced)
            elif verb is verbs[0]:
                assert not isinstance(outcome, Exception) or isinstance(outcome, Steered)
        return outcomes

    def _leases(self) -> list[tuple[Any, int]]:
        running = Run.objects.filter(status=RunStatus.RUNNING)
        return list(running.values_list("pk", "fence"))


@pytest.mark.race
@pytest.mark.django_db
def test_any_interleaving_keeps_the_log_the_queue_and_the_statuses_whole(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(registry, "resolve_dispatch", lambda name, allowed: object())  # the scout may run
    run_state_machine_as_test(
        Lifecycle,
        settings=settings(
            max_examples=20,
            stateful_step_count=22,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            print_blob=True,
        ),
    )

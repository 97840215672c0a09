"""What a URL is told when a run has ended: signed, once, again when it did not answer, and never inside the house."""

from __future__ import annotations

import json
import threading
from collections import deque
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Self
from uuid import UUID

import pytest
from django.db import transaction
from standardwebhooks import Webhook
from standardwebhooks.webhooks import WebhookVerificationError

from runs import clock, services, temporary, webhooks
from runs.models import Run, Thread, WebhookDelivery, new_id
from runs.worker.deliveries import body_of, signing_secret
from tests.runs.wire.callers import contents, eventually, in_database, said
from tests.scripted_model import scripts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.runs.wire.callers import Caller
    from tests.scripted_model import ScriptedModel

pytestmark = pytest.mark.usefixtures("transactional_db", "worker")
LEAD = "lead_agent"


class Receiver:
    """An HTTP server that keeps what it is told and answers as it is bid, at an address the configuration allows."""

    def __init__(self) -> None:
        self.told: list[tuple[str, dict[str, str], bytes]] = []
        self.answers: deque[int] = deque()  # 200 when there is none
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                receiver.told.append((self.path, {k.lower(): v for k, v in self.headers.items()}, body))
                status = receiver.answers.popleft() if receiver.answers else 200
                self.send_response(status)
                if 300 <= status < 400:
                    self.send_header("location", f"{receiver.url}/elsewhere")
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *_arguments: Any) -> None:
                return

        self._server = ThreadingHTTPServer(("127.0.0.2", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.2:{self._server.server_port}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_fault: object) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as running:
        yield running


async def done(run_id: str) -> WebhookDelivery:
    """The delivery of a run once nothing more is tried."""

    async def over() -> bool:
        return bool(await in_database(WebhookDelivery.objects.filter(run_id=run_id, done_at__isnull=False).exists))

    await eventually(over, 60)
    delivery: WebhookDelivery = await in_database(WebhookDelivery.objects.get, run_id=run_id)
    return delivery


async def test_a_receiver_is_told_once_how_the_run_ended_with_a_signature_it_can_check(
    anna: Caller, receiver: Receiver
):
    thread_id = await anna.thread()
    body, url = said(scripts.says("Rome.")[1]), f"{receiver.url}/hook?x=1"
    run = await anna.sdk.runs.create(thread_id, LEAD, input=body, webhook=url, metadata={"m": 1})
    delivery = await done(run["run_id"])
    ((path, headers, raw),) = receiver.told
    assert (path, headers["content-type"]) == ("/hook?x=1", "application/json")
    assert headers["webhook-id"] == str(delivery.pk)
    told = Webhook(signing_secret()).verify(raw, headers)
    assert (told["run_id"], told["thread_id"], told["status"]) == (run["run_id"], thread_id, "success")
    assert contents(told["values"])[-1] == "Rome."
    assert told["metadata"]["m"] == 1
    assert told["error"] is None
    assert told["created_at"] <= told["run_started_at"] <= told["run_ended_at"] <= told["webhook_sent_at"]
    with pytest.raises(WebhookVerificationError):
        Webhook(signing_secret()).verify(raw.replace(b"Rome", b"Oslo"), headers)
    assert (delivery.delivered, delivery.attempts, delivery.body) == (True, 1, "")


async def test_a_receiver_is_told_of_failed_and_of_stopped_runs_too(
    anna: Caller, receiver: Receiver, model: ScriptedModel
):
    failing = said(scripts.flaky([500] * 9)[1])
    run = await anna.sdk.runs.create(await anna.thread(), LEAD, input=failing, webhook=receiver.url)
    await done(run["run_id"])
    script_id, prompt = scripts.hanging()
    thread_id = await anna.thread()
    stopped = await anna.sdk.runs.create(thread_id, LEAD, input=said(prompt), webhook=receiver.url)
    await model.until(lambda seen: bool(seen.calls_of(script_id)))
    await anna.sdk.runs.cancel(thread_id, stopped["run_id"])
    await done(stopped["run_id"])
    told = [json.loads(raw) for _path, _headers, raw in receiver.told]
    assert [(one["status"], one["error"]["error"]) for one in told] == [
        ("error", "model_server_error"),
        ("interrupted", "cancelled"),
    ]
    assert contents(told[1]["values"])[0] == prompt


async def test_a_receiver_that_fails_is_told_again_the_same_under_the_same_id(
    anna: Caller, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(webhooks, "PAUSES_SECONDS", (0, 0, 0, 0))
    receiver.answers.extend([500, 302, 429])
    body = said(scripts.instant()[1])
    run = await anna.sdk.runs.create(await anna.thread(), LEAD, input=body, webhook=f"{receiver.url}/hook")
    delivery = await done(run["run_id"])
    assert (delivery.delivered, delivery.attempts) == (True, 4)
    assert {path for path, _headers, _raw in receiver.told} == {"/hook"}, "a redirect is not followed"
    assert len({(headers["webhook-id"], raw) for _path, headers, raw in receiver.told}) == 1


async def test_a_receiver_that_never_answers_well_is_given_up(
    anna: Caller, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(webhooks, "PAUSES_SECONDS", (0,))
    receiver.answers.extend([500] * 9)
    body = said(scripts.instant()[1])
    run = await anna.sdk.runs.create(await anna.thread(), LEAD, input=body, webhook=receiver.url)
    delivery = await done(run["run_id"])
    assert (delivery.delivered, delivery.attempts, delivery.error) == (False, 2, "answered 500")
    assert len(receiver.told) == 2


async def test_an_address_that_became_private_is_not_reached(
    anna: Caller, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(webhooks, "PAUSES_SECONDS", ())
    later = await anna.sdk.runs.create(
        await anna.thread(), LEAD, input=said(scripts.instant()[1]), webhook=receiver.url, after_seconds=3600
    )

    def moved() -> None:
        inside = receiver.url.replace("127.0.0.2", "127.0.0.1")
        WebhookDelivery.objects.filter(run_id=later["run_id"]).update(url=inside)

    await in_database(moved)
    await anna.sdk.runs.cancel(later["thread_id"], later["run_id"])
    delivery = await done(later["run_id"])
    assert not delivery.delivered
    assert "outbound.allow_private" in delivery.error
    assert receiver.told == []


async def test_what_a_run_alone_came_to_is_told_also_when_its_thread_has_gone(anna: Caller, receiver: Receiver):
    receiver.answers.append(500)
    body = said(scripts.says("Gone.")[1])
    run = await anna.sdk.runs.create(None, LEAD, input=body, webhook=receiver.url)

    async def asked() -> bool:
        return bool(receiver.told)

    await eventually(asked, 60)
    removed = clock.now() + timedelta(seconds=temporary.KEPT_SECONDS + 1)
    await in_database(lambda: temporary.remove_ended(removed, most=1000))
    assert await in_database(Thread.objects.filter(pk=run["thread_id"]).count) == 0
    await in_database(lambda: WebhookDelivery.objects.filter(run_id=run["run_id"]).update(next_at=clock.now()))
    assert (await done(run["run_id"])).delivered
    assert contents(json.loads(receiver.told[1][2])["values"])[-1] == "Gone."


async def test_a_thread_is_not_removed_before_its_receiver_can_be_told(anna: Caller, receiver: Receiver):
    run = await anna.sdk.runs.create(
        None, LEAD, input=said(scripts.instant()[1]), webhook=receiver.url, after_seconds=3600
    )

    def ended_unseen() -> int:
        Run.objects.filter(pk=run["run_id"]).update(status="cancelled", queue_id=None, ended_at=clock.now())
        WebhookDelivery.objects.filter(run_id=run["run_id"]).update(done_at=None, next_at=None)
        before = temporary.remove_ended(clock.now() + timedelta(days=1), most=1000)
        return before + Thread.objects.filter(pk=run["thread_id"]).count()

    assert await in_database(ended_unseen) >= 1
    await done(run["run_id"])


def _delivery(**fields: Any) -> UUID:
    made = WebhookDelivery.objects.create(
        run_id=new_id(), url="http://127.0.0.1/", body="{}", created_at=clock.now(), **fields
    )
    return made.pk


async def test_of_several_that_take_a_delivery_one_gets_it_and_a_lost_one_is_due_again(web: Any):
    """Rows only: the delivery is due in the future of the worker that runs beside this test."""

    def take() -> list[Any]:
        now = clock.now()
        pk = _delivery(next_at=now + timedelta(days=1))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(clock, "now", lambda: now + timedelta(days=2))
            read_by_both = list(WebhookDelivery.objects.filter(pk=pk))
            patch.setattr(webhooks, "_due", lambda _now, _most: list(read_by_both))
            first, second = webhooks.claim(), webhooks.claim()
        WebhookDelivery.objects.filter(pk=pk).delete()
        return [[one.id == pk for one in first], second]

    assert await in_database(take) == [[True], []]


async def test_what_came_of_an_attempt_that_took_too_long_changes_nothing(web: Any):
    def late() -> tuple[int, Any, bool]:
        pk = _delivery(next_at=clock.now() + timedelta(days=1), attempts=2)
        webhooks.record(webhooks.Delivery(pk, "http://127.0.0.1/", "{}", 1), "answered 500")
        webhooks.record(webhooks.Delivery(pk, "http://127.0.0.1/", "{}", 1), "")
        row = WebhookDelivery.objects.get(pk=pk)
        WebhookDelivery.objects.filter(pk=pk).delete()
        return row.attempts, row.done_at, row.delivered

    assert await in_database(late) == (2, None, False)


async def test_a_deleted_run_tells_nobody(anna: Caller, receiver: Receiver):
    thread_id = await anna.thread()
    run = await anna.sdk.runs.create(thread_id, LEAD, input=said("never"), webhook=receiver.url, after_seconds=3600)
    await anna.sdk.runs.delete(thread_id, run["run_id"])

    def left() -> int:
        webhooks.ready(body_of)
        return WebhookDelivery.objects.filter(run_id=run["run_id"]).count()

    assert await in_database(left) == 0
    assert receiver.told == []


async def test_a_run_that_cannot_be_told_keeps_nobody_elses_from_being_told(anna: Caller, receiver: Receiver):
    runs = [
        await anna.sdk.runs.create(
            await anna.thread(), LEAD, input=said("never"), webhook=receiver.url, after_seconds=3600
        )
        for _ in range(2)
    ]

    def tell() -> list[bool]:
        odd = Run.objects.get(pk=runs[0]["run_id"])

        def body_of_others(run: Run, now: Any) -> str:
            if run.pk == odd.pk:
                raise ValueError("odd")
            return body_of(run, now)

        mine = WebhookDelivery.objects.filter(run_id__in=[run["run_id"] for run in runs])
        with transaction.atomic():  # the worker beside this test sees them only when both are told
            for run in runs:
                services.cancel_run(run_id=UUID(run["run_id"]), by="test")
            webhooks.ready(body_of_others)
            return [one.done_at is None and bool(one.body) for one in mine.order_by("created_at")]

    assert await in_database(tell) == [False, True]
    assert (await done(runs[1]["run_id"])).delivered
    assert "cannot be told" in (await done(runs[0]["run_id"])).error


async def test_deliveries_that_are_done_do_not_stay_for_ever(web: Any):
    def pruned() -> tuple[int, int]:
        now = clock.now()
        old = _delivery(done_at=now - timedelta(days=4000))
        new = _delivery(done_at=now)
        would = webhooks.prune(now, True)["webhook_deliveries"]
        did = webhooks.prune(now, False)["webhook_deliveries"]
        left = set(WebhookDelivery.objects.filter(pk__in=[old, new]).values_list("pk", flat=True))
        return would == did >= 1, left == {new}

    assert await in_database(pruned) == (True, True)

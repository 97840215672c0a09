"""What only shows from inside the web process, or has to be set there at once."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from runs.models import Thread
from subagents import registry
from tests.runs.wire.callers import asks, eventually, in_database, make_caller, said
from tests.runs.wire.test_connections import left
from tests.scripted_model import scripts

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.runs.inside.serving import WebServer
    from tests.runs.wire.callers import Caller
    from tests.scripted_model import ScriptedModel

pytestmark = pytest.mark.usefixtures("transactional_db", "worker")
LEAD = "lead_agent"


async def test_nothing_is_kept_of_streams_that_are_over(anna: Caller, web: WebServer, model: ScriptedModel):
    thread_id = await anna.thread()
    await anna.sdk.runs.wait(thread_id, LEAD, input=said(scripts.instant()[1]))
    await eventually(lambda: nothing_followed(web))
    before = await web.pending_tasks()
    for path in ("wait", "stream"):
        script_id, prompt = scripts.hanging()
        body = asks(prompt, on_disconnect="cancel")
        await left(anna, f"/threads/{await anna.thread()}/runs/{path}", body, model, script_id)
        for _ in range(10):
            await anna.post(f"/threads/{await anna.thread()}/runs/{path}", asks(scripts.instant()[1]))
    await eventually(lambda: nothing_followed(web))
    await eventually(lambda: as_few_tasks(web, before))


async def nothing_followed(web: WebServer) -> bool:
    return await web.followed_threads() == 0


async def as_few_tasks(web: WebServer, before: int) -> bool:
    return await web.pending_tasks() <= before


async def test_of_a_batch_that_is_too_much_nothing_is_started(web: Any, monkeypatch: pytest.MonkeyPatch):
    caller = await make_caller(web.url)
    monkeypatch.setattr("subagents.registry.current", await in_database(_with_room_for, 2))
    body = [asks(scripts.gated("never")[1]) for _ in range(3)]
    answer = await caller.post("/runs/batch", body)
    assert (answer.status_code, answer.json()["code"]) == (429, "too_many_pending")
    assert await in_database(Thread.objects.filter(owner=caller.user).count) == 0
    await caller.close()


def _with_room_for(most: int) -> Callable[..., Any]:
    now = registry.current()
    runs = now.config.runs.model_copy(update={"max_pending_per_owner": most})
    small = replace(now, config=now.config.model_copy(update={"runs": runs}))
    return lambda **_options: small

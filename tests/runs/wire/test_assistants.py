"""Custom agents as assistants: by name, by id, or as the option `agent_name`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from runs.assistant_ids import assistant_id
from runs.models import Run
from subagents import services as definitions
from subagents.kinds import AGENT
from tests.runs.wire.callers import asks, in_database, said, until_offered
from tests.runs.wire.test_bad_input import in_shape
from tests.scripted_model import scripts

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tests.runs.wire.callers import Caller

pytestmark = pytest.mark.usefixtures("transactional_db", "worker")
TESTS = definitions.Actor(label="a test")


@pytest.fixture
async def scribe(worker: None, anna: Caller) -> AsyncIterator[str]:
    """An agent that may call nobody, and one that is switched off."""
    made = [
        await in_database(
            definitions.create, AGENT, {"name": name, "system_prompt": f"You are {name}.", **fields}, actor=TESTS
        )
        for name, fields in (("scribe", {"allowed_subagents": []}), ("retired", {"enabled": False}))
    ]
    await until_offered(anna, "scribe")
    yield "scribe"
    for agent in made:
        await in_database(definitions.delete, AGENT, agent.name, expected_version=agent.version, actor=TESTS)


async def ran(caller: Caller, thread_id: str) -> Run:
    run: Run = await in_database(lambda: Run.objects.filter(thread_id=thread_id).latest("created_at"))
    return run


@pytest.mark.parametrize(
    ("assistant", "options"),
    [
        ("scribe", {}),
        (" Scribe ", {}),
        (assistant_id("scribe"), {}),
        ("lead_agent", {"context": {"agent_name": "scribe", "subagent_enabled": True}}),
        ("lead_agent", {"config": {"configurable": {"agent_name": "SCRIBE"}}}),
    ],
)
async def test_a_run_goes_to_the_agent_that_is_named(
    anna: Caller, scribe: str, assistant: str, options: dict[str, Any]
):
    thread_id = await anna.thread()
    forged = {"allowed_subagents": ["general-purpose"], "delegation_off": "", "mine": 1}
    prompt = said(scripts.instant()[1])
    await anna.sdk.runs.wait(thread_id, assistant, input=prompt, metadata=forged, **options)
    (listed,) = await anna.sdk.runs.list(thread_id)
    assert listed["assistant_id"] == assistant_id("scribe")
    assert listed["metadata"] == {"mine": 1, "allowed_subagents": [], "delegation_off": "scope_none"}
    assert (await ran(anna, thread_id)).definition["system_prompt"] == "You are scribe."


@pytest.mark.parametrize(
    ("field", "body"),
    [
        ("assistant_id", {"assistant_id": "retired"}),
        ("assistant_id", {"assistant_id": "nobody-at-all"}),
        ("context.agent_name", {"context": {"agent_name": "retired"}}),
        ("config.configurable.agent_name", {"config": {"configurable": {"agent_name": "nobody-at-all"}}}),
        ("context.agent_name", {"context": {"agent_name": ["scribe"]}}),
    ],
)
async def test_an_agent_that_cannot_be_used_is_refused_with_the_fields_path(
    anna: Caller, scribe: str, field: str, body: dict[str, Any]
):
    thread_id = await anna.thread()
    answer = await anna.post(f"/threads/{thread_id}/runs", asks("x") | body)
    refusal = in_shape(answer, 422, "invalid")
    assert refusal["metadata"]["field"] == field
    assert await anna.sdk.runs.list(thread_id) == []


async def test_the_id_of_an_agent_that_is_switched_off_is_not_found(anna: Caller, scribe: str):
    body = asks("x") | {"assistant_id": assistant_id("retired")}
    in_shape(await anna.post(f"/threads/{await anna.thread()}/runs", body), 404, "not_found")

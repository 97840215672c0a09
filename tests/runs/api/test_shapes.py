"""Answers have the shape that docs/openapi.yaml describes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from runs.api import examples
from tests.access.describing import conforms, described
from tests.runs.acts import claimed, start_child
from tests.runs.api.conftest import capped

if TYPE_CHECKING:
    from runs.models import Run
    from tests.access.calling import Api


@pytest.mark.django_db
def test_answers_have_the_shape_that_is_described(api: Api, run: Run):
    conforms(api("POST", "/threads", examples.NEW_THREAD).json(), described("/threads", "post", 201))
    start_child(claimed(run))
    one = "/runs/{run_id}"
    steered = api("POST", f"/runs/{run.pk}/steer", examples.STEER)
    conforms(steered.json(), described(f"{one}/steer", "post", 202))
    conforms(api.ok(f"/runs/{run.pk}"), described(one, "get", 200))
    conforms(api.ok("/runs"), described("/runs", "get", 200))
    conforms(api.ok("/threads"), described("/threads", "get", 200))
    conforms(api.ok(f"/threads/{run.thread_id}"), described("/threads/{thread_id}", "get", 200))
    conforms(api.ok(f"/threads/{run.thread_id}/events"), described("/threads/{thread_id}/events", "get", 200))
    cancelled = api("POST", f"/runs/{run.pk}/cancel")
    conforms(cancelled.json(), described(f"{one}/cancel", "post", 202))
    capped(run, input_tokens=10, output_tokens=5)
    continued = api("POST", f"/runs/{run.pk}/continue", examples.CONTINUE)
    conforms(continued.json(), described(f"{one}/continue", "post", 202))
    asked = api("POST", f"/threads/{run.thread_id}/runs", examples.NEW_RUN)
    conforms(asked.json(), described("/threads/{thread_id}/runs", "post", 202))
    refused = api("POST", f"/threads/{run.thread_id}/runs", {})
    conforms(refused.json(), described("/threads/{thread_id}/runs", "post", 422))

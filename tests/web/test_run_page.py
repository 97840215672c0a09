"""The admin's page of one run: whom it could call, why nobody, and what of its request was clamped."""

from __future__ import annotations

from html import unescape
from typing import TYPE_CHECKING, Any

import pytest
from django.test import Client

from tests.web.conftest import BACKEND
from tests.web.log_writer import person

if TYPE_CHECKING:
    from tests.web.log_writer import LogWriter

pytestmark = pytest.mark.django_db

PAGES: list[tuple[dict[str, Any], list[str]]] = [
    ({"allowed_subagents": ["clerk", "scout"]}, ["clerk, scout"]),
    ({"allowed_subagents": [], "delegation_off": "scope_none"}, ["this agent may not call any subagent"]),
    ({"allowed_subagents": [], "delegation_off": "request"}, ["the request switched it off (subagent_enabled)"]),
    (
        {"clamped": {"max_total_subagents": [99, 50], "max_concurrent_subagents": [9, 4]}},
        ["max_total_subagents: 99 was asked for, 50", "max_concurrent_subagents: 9 was asked for, 4"],
    ),
    ({"allowed_subagents": "<b>", "delegation_off": ["<b>"], "clamped": [["<b>"]]}, ["&lt;b&gt;"]),
    ({"mine": 1}, []),
]


@pytest.mark.parametrize(("metadata", "words"), PAGES, ids=str)
def test_the_page_says_whom_it_could_call_and_what_was_clamped(
    log: LogWriter, metadata: dict[str, Any], words: list[str]
):
    run = log.run(status="success", metadata=metadata)
    client = Client()
    client.force_login(person("boss", is_staff=True, is_superuser=True), backend=BACKEND)
    answer = client.get(f"/admin/runs/run/{run.pk}/change/")
    assert answer.status_code == 200
    html = answer.content.decode()
    assert "<b>" not in html
    for sentence in words:
        assert sentence in html or sentence in unescape(html)

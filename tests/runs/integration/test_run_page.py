"""A run's page in the admin says why it is as it is, and what can be done about it can be done there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from django.urls import reverse

from runs import services
from runs.lifecycle import Ending, Finish, commit_one
from runs.models import Run, new_id
from runs.statuses import RunStatus
from tests.runs.acts import claimed
from tests.runs.factories import ThreadFactory

if TYPE_CHECKING:
    from django.test import Client

pytestmark = pytest.mark.django_db


@pytest.fixture
def staff(admin_client: Client) -> Client:
    return admin_client


@pytest.fixture
def capped(db: None) -> Run:
    run = services.start_run(thread=ThreadFactory(), text="hello")
    detail = {"limit": 50, "layer": "runs.max_turns"}
    commit_one(
        Finish(held=claimed(run), ending=Ending(status=RunStatus.SUCCESS, stop_reason="turn_capped", detail=detail))
    )
    return run


def page(name: str, run_id: Any) -> str:
    return reverse(f"admin:runs_run_{name}", args=[run_id])


def test_it_names_the_limit_its_layer_and_a_way_out(staff, capped):
    text = staff.get(page("change", capped.pk)).content.decode()
    assert "50 model calls ← runs.max_turns" in text
    assert "Continue with a higher limit" in text
    assert f'formaction="{page("continue", capped.pk)}"' in text
    assert page("cancel", capped.pk) not in text


def test_a_waiting_run_says_its_place_and_can_be_cancelled(staff):
    run = services.start_run(thread=ThreadFactory(), text="hello")
    assert "Place 1 in line" in staff.get(page("change", run.pk)).content.decode()
    answer = staff.post(page("cancel", run.pk), follow=True)
    assert "Told to stop" in answer.content.decode()
    run.refresh_from_db()
    assert (run.status, run.cancelled_by) == ("cancelled", "admin")
    assert "It had already ended." in staff.post(page("cancel", run.pk), follow=True).content.decode()


def test_continuing_leads_to_the_new_run_and_a_second_time_says_why_not(staff, capped):
    answer = staff.post(page("continue", capped.pk), follow=True)
    new = Run.objects.latest("created_at")
    assert answer.redirect_chain[-1][0] == page("change", new.pk)
    assert new.continues_id == capped.pk
    assert "It was not continued" in staff.post(page("continue", capped.pk), follow=True).content.decode()


def test_a_link_does_nothing_and_a_run_that_is_gone_is_said(staff, capped):
    assert staff.get(page("continue", capped.pk)).status_code == 405
    for name in ("cancel", "continue"):
        answer = staff.post(page(name, new_id()), follow=True)
        assert "This run does not exist." in answer.content.decode()


def test_who_may_only_look_sees_why_but_no_buttons(client, capped, django_user_model):
    viewer = django_user_model.objects.create_user("vera", is_staff=True)
    from django.contrib.auth.models import Permission

    viewer.user_permissions.add(Permission.objects.get(codename="view_run"))
    client.force_login(viewer, backend="django.contrib.auth.backends.ModelBackend")
    text = client.get(page("change", capped.pk)).content.decode()
    assert "runs.max_turns" in text
    assert "formaction" not in text
    assert client.post(page("continue", capped.pk)).status_code == 403
    assert Run.objects.count() == 1

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from deerflow_site.checks import check_deployment, check_exposure, check_leases

if TYPE_CHECKING:
    from pathlib import Path

    from django.conf import LazySettings


def test_the_shipped_settings_have_nothing_to_complain_about():
    assert check_leases() == check_exposure() == []


def test_a_lease_must_outlive_several_looks_at_the_queue(settings: LazySettings):
    settings.LEASE_SECONDS = 2
    settings.Q_CLUSTER = {**settings.Q_CLUSTER, "poll": 0.6}
    (problem,) = check_leases()
    assert (problem.id, problem.hint) == ("deerflow.E001", "Set LEASE_SECONDS to at least 2.4.")


@pytest.mark.parametrize(("timeout", "retry"), [(600, 120), (600, 600), (None, 120), (None, None), (0, 60)])
def test_the_queue_must_not_start_a_long_task_twice(settings: LazySettings, timeout: int | None, retry: int | None):
    settings.Q_CLUSTER = {**settings.Q_CLUSTER, "timeout": timeout, "retry": retry}
    (problem,) = check_leases()
    assert problem.id == "deerflow.E002"
    assert problem.is_serious()
    assert f"({retry or 0})" in problem.msg
    assert f"({timeout})" in problem.msg


def test_times_without_a_zone_are_refused(settings: LazySettings):
    settings.USE_TZ = False
    (problem,) = check_leases()
    assert (problem.id, problem.is_serious()) == ("deerflow.E004", True)


def test_debug_is_refused_where_others_can_reach_the_site(settings: LazySettings):
    settings.DEBUG = True
    settings.ALLOWED_HOSTS = ["localhost"]
    assert check_exposure() == []
    settings.ALLOWED_HOSTS = ["localhost", "agents.example.com"]
    (problem,) = check_exposure()
    assert problem.id == "deerflow.E003"
    assert "agents.example.com" in problem.msg


@pytest.mark.parametrize(("mode", "problems"), [(0o700, []), (0o750, ["deerflow.W001"]), (0o701, ["deerflow.W001"])])
def test_the_folder_of_secrets_is_for_its_owner_only(
    settings: LazySettings, tmp_path: Path, mode: int, problems: list[str]
):
    tmp_path.chmod(mode)
    settings.DEER_FLOW_HOME = tmp_path
    assert [problem.id for problem in check_exposure()] == problems


def test_a_deployment_needs_names_and_tls(settings: LazySettings):
    settings.ALLOWED_HOSTS, settings.BEHIND_TLS = ["*"], False
    assert [problem.id for problem in check_deployment()] == ["deerflow.W002", "deerflow.W003"]
    settings.ALLOWED_HOSTS, settings.BEHIND_TLS = ["agents.example.com"], True
    assert check_deployment() == []

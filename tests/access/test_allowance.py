"""How often a caller may ask, over all processes."""

from __future__ import annotations

import pytest

from access import allowance
from access.models import Allowance

pytestmark = pytest.mark.django_db
NOON = 1_800_000_000.0 // 60 * 60


def granted(name: str, limit: int, times: int, now: float = NOON) -> int:
    return sum(allowance.take(name, limit, now=now).granted for _time in range(times))


@pytest.fixture(autouse=True)
def nothing_held() -> None:
    allowance.forget()


@pytest.mark.parametrize("limit", [1, 3, 19, 20, 21, 600])
def test_exactly_the_limit_is_let_through_in_a_minute(limit: int):
    assert granted("a", limit, limit + 30) == limit
    assert granted("b", limit, 1) == 1
    assert granted("a", limit, limit + 30, NOON + 60) == limit


@pytest.mark.parametrize("limit", [1, 20, 600])
@pytest.mark.parametrize("share", [2, 10, 50])
def test_several_processes_together_never_let_more_through(limit: int, share: int):
    total = 0
    for _process in range(3 * share):
        allowance.forget()  # what another process knows
        total += granted("a", limit, limit // share + 1)
    assert limit * 0.4 < total <= limit


def test_most_requests_write_nothing(django_assert_num_queries: object):
    with django_assert_num_queries(4):  # type: ignore[operator]
        assert granted("a", 600, 120) == 120
    with django_assert_num_queries(0):  # type: ignore[operator]
        allowance.forget()
    assert Allowance.objects.count() == 1


def test_a_refused_caller_asks_the_database_no_more_and_learns_when_to_come_back(django_assert_num_queries: object):
    granted("a", 5, 6)
    with django_assert_num_queries(0):  # type: ignore[operator]
        answer = allowance.take("a", 5, now=NOON + 20)
    assert (answer.granted, answer.remaining, answer.reset_seconds) == (False, 0, 40)

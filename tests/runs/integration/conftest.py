from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from runs.group_commit import GroupCommit
from tests.runs.acts import claimed
from tests.runs.factories import ThreadFactory, started

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from runs.lifecycle import Held
    from runs.models import Run


@pytest.fixture
async def database(transactional_db: None) -> AsyncIterator[GroupCommit]:
    """Database work beside the event loop, as a worker does it."""
    group = GroupCommit("test-db")
    yield group
    await group.close()


@pytest.fixture
async def conversation(database: GroupCommit) -> tuple[Run, Held]:
    def begin() -> tuple[Run, Held]:
        run = started()
        return run, claimed(run)

    return await database.call(begin)


@pytest.fixture
def thread(db: None) -> Any:
    return ThreadFactory()

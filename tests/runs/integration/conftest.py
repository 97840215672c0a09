from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from runs.group_commit import GroupCommit

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


@pytest.fixture
async def database(transactional_db: None) -> AsyncIterator[GroupCommit]:
    """Database work beside the event loop, as a worker does it."""
    group = GroupCommit("test-db")
    yield group
    await group.close()

"""Ids of new rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import uuid_utils.compat

if TYPE_CHECKING:
    import uuid


def new_id() -> uuid.UUID:
    """A UUIDv7: ordered by time, so that new rows go to one end of every index."""
    return uuid_utils.compat.uuid7()

"""Ids of assistants, made from their names: they survive a redeploy, and equal those of LangGraph's own server."""

from __future__ import annotations

import uuid
from functools import lru_cache

_ASSISTANTS = uuid.UUID("6ba7b821-9dad-11d1-80b4-00c04fd430c8")


@lru_cache(maxsize=1024)
def assistant_id(name: str) -> str:
    return str(uuid.uuid5(_ASSISTANTS, name))

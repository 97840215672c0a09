"""The Subagents page: the merged catalogue inside Django's admin."""

from __future__ import annotations

from subagents.admin.agents import AgentAdmin
from subagents.admin.page import CatalogueAdmin

__all__ = ["AgentAdmin", "CatalogueAdmin"]

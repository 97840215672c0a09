"""The Subagents page: the merged catalogue inside Django's admin."""

from __future__ import annotations

from subagents.admin.agents import AgentAdmin
from subagents.admin.page import CatalogueAdmin
from subagents.admin.remotes import RemoteAdmin

__all__ = ["AgentAdmin", "CatalogueAdmin", "RemoteAdmin"]

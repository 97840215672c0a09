"""The Custom agents page: leads that administrators make, and whom each may call."""

from __future__ import annotations

from subagents.admin.agents.page import AgentAdmin

__all__ = ["AgentAdmin"]

"""The Remote agents page: agents on other servers, their addresses and secret headers, and whether they answer."""

from __future__ import annotations

from subagents.admin.remotes.page import RemoteAdmin

__all__ = ["RemoteAdmin"]

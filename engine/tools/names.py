"""The names of tools, for whoever must speak of tools without loading them."""

from __future__ import annotations

from typing import Final

FILE_TOOLS: Final = ("ls", "read_file", "write_file", "str_replace", "glob", "grep")
BASH: Final = "bash"

# Source: the contract's list of what no subagent gets, whatever its definition says.
DELEGATION_TOOLS: Final = (
    "task",
    "start_async_task",
    "check_async_task",
    "update_async_task",
    "cancel_async_task",
    "list_async_tasks",
    "invoke_acp_agent",
    "ask_clarification",
    "present_files",
)

KNOWN_TOOLS: Final = frozenset({*FILE_TOOLS, BASH, "web_search", "web_fetch", "write_todos", *DELEGATION_TOOLS})

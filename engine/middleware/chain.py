"""The guards of every agent and their order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine.middleware.call_ids import CallIdsMiddleware
from engine.middleware.delegation_limit import SubagentLimitMiddleware
from engine.middleware.history_repair import HistoryRepairMiddleware
from engine.middleware.malformed_calls import MalformedCallsMiddleware
from engine.middleware.model_stream import ModelStreamMiddleware
from engine.middleware.system_prompt import SystemPromptMiddleware
from engine.middleware.token_budget import TokenBudgetMiddleware
from engine.middleware.tool_errors import ToolErrorsMiddleware
from engine.middleware.tool_results import ToolResultsMiddleware
from engine.middleware.turn_limit import TurnLimitMiddleware

if TYPE_CHECKING:
    from langchain.agents.middleware import AgentMiddleware


def guards() -> list[AgentMiddleware[Any, Any, Any]]:
    """A fresh set for one compiled agent, outermost first: a request passes them in this order, a reply in
    reverse.

    So a reply is first made sound, then counted and perhaps ended, and only calls that are left over are
    measured against the delegation limits; and a note added to a request is inside what the history repair
    checks.
    """
    return [
        SystemPromptMiddleware(),
        SubagentLimitMiddleware(),
        TurnLimitMiddleware(),
        TokenBudgetMiddleware(),
        HistoryRepairMiddleware(),
        MalformedCallsMiddleware(),
        CallIdsMiddleware(),
        ModelStreamMiddleware(),
        ToolResultsMiddleware(),
        ToolErrorsMiddleware(),
    ]

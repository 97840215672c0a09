"""The guards of every agent and their order."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from langchain.agents.middleware import AgentMiddleware

from engine.middleware.call_ids import CallIdsMiddleware
from engine.middleware.delegation_limit import SubagentLimitMiddleware
from engine.middleware.history_repair import HistoryRepairMiddleware
from engine.middleware.loop_detection import LoopDetectionMiddleware
from engine.middleware.malformed_calls import MalformedCallsMiddleware
from engine.middleware.model_stream import ModelStreamMiddleware
from engine.middleware.own_reasoning import OwnReasoningMiddleware
from engine.middleware.reply import Guard, Handler, Request, Response
from engine.middleware.summarization import SummarizationMiddleware, SummaryWriter
from engine.middleware.system_prompt import SystemPromptMiddleware
from engine.middleware.token_budget import TokenBudgetMiddleware
from engine.middleware.tool_errors import ToolErrorsMiddleware
from engine.middleware.tool_results import ToolResultsMiddleware
from engine.middleware.turn_limit import TurnLimitMiddleware
from engine.middleware.unusable_replies import EmptyRepliesMiddleware, RefusalsMiddleware

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain.tools.tool_node import ToolCallRequest

    from engine.models.gate import ModelGate


class Guards(Guard):
    """All rules as one middleware: LangChain wraps each middleware's hooks in a tracing span, with two thread hops a
    call, whether or not anything is traced.
    """

    def __init__(self, rules: Sequence[Guard]) -> None:
        super().__init__()
        self._model_rules = [rule for rule in rules if _overrides(rule, "awrap_model_call")]
        self._tool_rules = [rule for rule in rules if _overrides(rule, "awrap_tool_call")]

    async def awrap_model_call(self, request: Request, handler: Handler) -> Response:
        for rule in reversed(self._model_rules):
            handler = partial(_asked, rule.awrap_model_call, handler)
        return await handler(request)

    async def awrap_tool_call(self, request: ToolCallRequest, handler: Any) -> Any:
        for rule in reversed(self._tool_rules):
            handler = partial(_asked, rule.awrap_tool_call, handler)
        return await handler(request)


async def _asked(hook: Any, inner: Any, request: Any) -> Any:
    return await hook(request, inner)


def _overrides(rule: Guard, hook: str) -> bool:
    return getattr(type(rule), hook) is not getattr(AgentMiddleware, hook)


def guards(gate: ModelGate | None = None, summary_writers: Sequence[SummaryWriter] = ()) -> list[Guard]:
    """A fresh set for one compiled agent, outermost first: a request passes them in this order, a reply in
    reverse.

    So the history is shortened before anybody adds a note to the request, and a note is inside what the history
    repair checks; a reply is first made sound, then counted and perhaps ended, and only calls that are left over
    are measured against the delegation limits.
    """
    rules: list[Guard] = [
        SystemPromptMiddleware(),
        SummarizationMiddleware(summary_writers),
        EmptyRepliesMiddleware(),
        SubagentLimitMiddleware(),
        LoopDetectionMiddleware(),
        TurnLimitMiddleware(),
        TokenBudgetMiddleware(),
        OwnReasoningMiddleware(gate.name if gate else ""),
        HistoryRepairMiddleware(),
        RefusalsMiddleware(),
        MalformedCallsMiddleware(),
        CallIdsMiddleware(),
        ModelStreamMiddleware(gate),
        ToolResultsMiddleware(),
        ToolErrorsMiddleware(),
    ]
    return [Guards(rules)]

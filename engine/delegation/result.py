"""The one tool result of a `task` call."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import uuid4

from langchain_core.messages import ToolMessage

from engine.delegation.facts import facts_of, text_of
from engine.delegation.names import TASK
from engine.stop import SubagentStatus

if TYPE_CHECKING:
    from engine.ports import ChildResult


def delegation_message(call_id: str, result: ChildResult) -> ToolMessage:
    """What came of the call: text for the model, facts as its `artifact`."""
    return ToolMessage(
        content=text_of(result),
        tool_call_id=call_id,
        name=TASK,
        status="success" if result.status is SubagentStatus.COMPLETED else "error",
        artifact=facts_of(result),
        id=str(uuid4()),
    )

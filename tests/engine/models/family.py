"""A lead and its children in one process, on one workspace, with any chat model: what the platform does in many."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from engine.agent import Step, build, drive, final_text, partial_text
from engine.errors import EngineError, explain_model_error
from engine.ports import ChildCall, ChildResult, RosterEntry, RunContext
from engine.stop import SubagentStatus
from engine.tools.registry import build_tools
from tests.engine.fakes import limits, run_context

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_core.language_models.chat_models import BaseChatModel

    from engine.sandbox.base import Sandbox
    from engine.sandbox.workspace import Workspace

FILES = ("ls", "read_file", "write_file", "str_replace", "glob", "grep")
ROSTER = (
    RosterEntry(name="bash", description="Runs commands."),
    RosterEntry(name="general-purpose", description="Does anything."),
)
TOOLS = {"general-purpose": FILES, "bash": ("bash", "ls", "read_file", "write_file", "str_replace")}


@dataclass
class Family:
    model: BaseChatModel
    workspace: Workspace
    sandbox: Sandbox | None = None
    roster: tuple[RosterEntry, ...] = ROSTER
    child_turns: int = 10
    calls: list[ChildCall] = field(default_factory=list)
    children: list[tuple[list[BaseMessage], RunContext]] = field(default_factory=list)
    thread: list[BaseMessage] = field(default_factory=list)

    async def ask(self, text: str, *, delegation_enabled: bool = True) -> str:
        """One turn of the lead on the family's thread; returns its answer."""
        self.thread.append(HumanMessage(text))
        context = run_context(
            workspace=self.workspace,
            sandbox=self.sandbox,
            roster=self.roster,
            delegate=self,
            delegation_enabled=delegation_enabled,
        )
        await self._run(build(self.model, build_tools(FILES), is_subagent=False), self.thread, context)
        return final_text(self.thread)

    async def run_child(self, call: ChildCall) -> ChildResult:
        self.calls.append(call)
        context = run_context(
            is_subagent=True,
            workspace=self.workspace,
            sandbox=self.sandbox,
            delegate=self,
            roster=(),
            delegation_enabled=False,
            limits=limits(max_turns=self.child_turns),
        )
        messages: list[BaseMessage] = [HumanMessage(call.prompt)]
        self.children.append((messages, context))
        facts: dict[str, Any] = {"run_id": call.tool_call_id, "subagent": call.subagent_type}
        agent = build(self.model, build_tools(TOOLS[call.subagent_type]), is_subagent=True)
        try:
            await self._run(agent, messages, context)
        except EngineError as error:
            fault = explain_model_error(error)
            return ChildResult(status=SubagentStatus.FAILED, text=fault.sentence, **facts)
        text = final_text(messages) or partial_text(messages)
        reason = context.counters.stop_reason
        return ChildResult(status=SubagentStatus.COMPLETED, text=text, stop_reason=reason, **facts)

    async def tree_tokens(self) -> int:
        return 0

    def results(self, tool: str, messages: Sequence[BaseMessage] | None = None) -> list[ToolMessage]:
        among = self.thread if messages is None else messages
        return [one for one in among if isinstance(one, ToolMessage) and one.name == tool]

    @staticmethod
    async def _run(agent: Any, messages: list[BaseMessage], context: RunContext) -> None:
        async for one in drive(agent, messages, context):
            if isinstance(one, Step):
                messages += one.messages


def called(messages: Sequence[BaseMessage]) -> list[str]:
    return [call["name"] for one in messages if isinstance(one, AIMessage) for call in one.tool_calls]

"""The agents a person talks to: the default lead, and custom agents as leads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from subagents.definitions import INHERIT
from subagents.notes import gettext_noop
from subagents.scope import ALL_ENABLED, Scope

if TYPE_CHECKING:
    from subagents.custom_agents import CustomAgent
    from subagents.definitions import Definition

DEFAULT_LEAD: Final = "lead_agent"

_PROMPT: Final = """\
You are the lead agent. A person talks to you; you do the work, alone or with the help of subagents, and you give
the answer.

How to work
- Answer small questions directly. For real work, say in a sentence or two what you are going to do, then do it.
- Look things up with your tools instead of guessing. Never claim a result that you did not see.
- Files live in a workspace that you share with your subagents; use relative paths. Read a file before you change
  or quote it, and name the files you leave behind.
- When a tool fails, read its message and try another way. When something cannot be done, say so and why.
- When the request is unclear and a wrong guess would waste much work, ask one short question first; otherwise
  choose the most sensible reading and name it.

Your answer
- Begin with the result. Keep it as short as the question allows; use Markdown where it helps reading.
- Say where facts come from, what you assumed and what is left open.
- Write in the language of the person.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeadDefinition:
    """A lead as it is started. `display_name` of the default one is a message id: translate it where it is shown.

    `model` `inherit` is the first available configured model; `tools` and `skills` None are all, () none.
    """

    name: str
    display_name: str
    system_prompt: str
    model: str = INHERIT
    tools: tuple[str, ...] | None = None
    skills: tuple[str, ...] | None = None
    subagent_enabled: bool = True
    scope: Scope = ALL_ENABLED
    version: str | None = None  # of a custom agent
    is_graph: bool = False  # a graph of langgraph.json: it brings everything itself


DEFAULT: Final = LeadDefinition(name=DEFAULT_LEAD, display_name=gettext_noop("Lead agent"), system_prompt=_PROMPT)


def lead_of_graph(graph: Definition) -> LeadDefinition:
    """Return the lead that a graph of langgraph.json is. Whom it calls is its own code's business."""
    return LeadDefinition(
        name=graph.name,
        display_name=graph.title,
        system_prompt="",
        subagent_enabled=False,
        is_graph=True,
    )


def lead_of(agent: CustomAgent) -> LeadDefinition:
    """Return the lead that a custom agent is."""
    return LeadDefinition(
        name=agent.name,
        display_name=agent.title,
        system_prompt=agent.system_prompt,
        model=agent.model,
        tools=agent.tools,
        skills=agent.skills,
        subagent_enabled=agent.subagent_enabled,
        scope=agent.scope,
        version=agent.version,
    )

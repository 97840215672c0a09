"""Built-in tools by name, and the rule which of them a subagent gets. Loads a tool only when it is built."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from engine.tools.names import BASH, DELEGATION_TOOLS, KNOWN_TOOLS

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from langchain_core.tools import BaseTool

BUILTIN_TOOLS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "ls": "engine.tools.files:ls",
        "read_file": "engine.tools.files:read_file",
        "write_file": "engine.tools.files:write_file",
        "str_replace": "engine.tools.files:str_replace",
        "glob": "engine.tools.search:glob",
        "grep": "engine.tools.search:grep",
        BASH: "engine.tools.bash:bash",
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolChoice:
    """The tools an agent gets, and what became of the names it does not get.

    `denied` names exist but are not given: always denied, disallowed, not the lead's, or
    bash while no sandbox can run it. `unknown` names exist nowhere.
    """

    names: tuple[str, ...]
    unknown: tuple[str, ...] = ()
    denied: tuple[str, ...] = ()


def tool_names() -> tuple[str, ...]:
    return tuple(BUILTIN_TOOLS)


def build_tools(names: Sequence[str]) -> list[BaseTool]:
    """Return the tools of these names, each once, in their order. Raises KeyError for a name not built in.

    A tool holds nothing of a run, so the same objects serve every agent.
    """
    return [_load(BUILTIN_TOOLS[name]) for name in dict.fromkeys(names)]


def allowed_tools(
    requested: Sequence[str] | None,
    disallowed: Iterable[str],
    *,
    lead_tools: Sequence[str],
    bash_available: bool,
    known: Collection[str] = KNOWN_TOOLS,
) -> ToolChoice:
    """Return what a subagent gets of its lead's tools, in the lead's order.

    `requested` None asks for all of them, () for none, a list for those; nothing ever adds
    a tool the lead lacks. `known` are the names that exist in this deployment besides.
    """
    asked = tuple(dict.fromkeys(lead_tools if requested is None else requested))
    refused = {*DELEGATION_TOOLS, *disallowed, *(() if bash_available else (BASH,))}
    names = tuple(name for name in dict.fromkeys(lead_tools) if name in asked and name not in refused)
    exists = {*known, *lead_tools}
    return ToolChoice(
        names=names,
        unknown=tuple(name for name in asked if name not in exists),
        denied=tuple(name for name in asked if name in exists and name not in names),
    )


def _load(place: str) -> BaseTool:
    module, _, attribute = place.partition(":")
    found: BaseTool = getattr(importlib.import_module(module), attribute)
    return found

"""What a form can offer to choose from: the tools, skills and models that really exist."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.errors import NoModel
from engine.models.registry import ModelRegistry
from engine.tools.names import DELEGATION_TOOLS, KNOWN_TOOLS

if TYPE_CHECKING:
    from collections.abc import Collection

    from subagents.registry import Registry


@dataclass(frozen=True, slots=True, kw_only=True)
class Offered:
    """Names to pick from, in the order they are shown.

    `tools_complete` False: more tools may exist than are known here, so that none may be called unknown.
    `inherited_model` is the model that `inherit` means for the default lead now; "" when none can be used.
    """

    tools: tuple[str, ...] = ()
    tools_complete: bool = True
    skills: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    inherited_model: str = ""


def offered(now: Registry, *, never: Collection[str] = DELEGATION_TOOLS) -> Offered:
    """Gather the choices of the registry's moment. Tools in `never` are not offered: a subagent gets none of them."""
    configured = [tool.name for tool in now.config.tools]
    usable = [name for name in (*sorted(KNOWN_TOOLS), *configured) if name not in never]
    models = ModelRegistry(now.config.models, os.environ)
    try:
        inherited = models.default_name()
    except NoModel:
        inherited = ""
    return Offered(
        tools=tuple(dict.fromkeys(usable)),
        tools_complete=not now.config.mcp_servers,  # what their servers offer is known only to whoever connects
        skills=now.skills,
        models=models.names(),
        inherited_model=inherited,
    )

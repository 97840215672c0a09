"""Loads the agent stack once, before worker processes are forked from this one, so that they share its memory."""

from __future__ import annotations

import importlib
import logging
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from engine.config.schema import Config

logger = logging.getLogger(__name__)


def preload_engine(config: Config) -> None:
    """Import the engine, its tools and the provider packages that config.yaml names; nothing else, nothing connects."""
    from engine.tools.registry import build_tools, tool_names

    build_tools(tool_names())
    for model in config.models:
        module, _, _attribute = model.use.partition(":")
        try:
            importlib.import_module(module)
        except ImportError as fault:
            logger.warning("model %s: %s cannot be imported: %s", model.name, module, fault)

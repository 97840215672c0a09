"""A deterministic, scripted, OpenAI-compatible model server for tests, demos by hand and measurements."""

from __future__ import annotations

from tests.scripted_model.calls import ModelCall
from tests.scripted_model.reply import Reply, ToolCall
from tests.scripted_model.running import ScriptedModel

__all__ = ["ModelCall", "Reply", "ScriptedModel", "ToolCall"]

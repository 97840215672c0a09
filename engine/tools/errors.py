"""What a tool says when it did not do what it was asked."""

from __future__ import annotations

from langchain_core.tools import ToolException


class ToolFailed(ToolException):
    """An expected failure. Its sentence is told to the model as the tool's result, and the run goes on."""

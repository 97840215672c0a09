"""Names of delegation that modules without LangChain need too."""

from __future__ import annotations

from typing import Final

TASK: Final = "task"

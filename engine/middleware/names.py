"""How the platform speaks to a model in a request, for whoever must tell its notes from a person's words."""

from __future__ import annotations

from typing import Final

PLATFORM_NOTE: Final = "[Note from the platform, not from the person]"
ANSWER_NOW: Final = "Do not call a tool."  # how a note ends that asks for the run's last reply

"""What the platform writes into messages for a model, and on those of one, for whoever must know it again."""

from __future__ import annotations

from typing import Final

PLATFORM_NOTE: Final = "[Note from the platform, not from the person]"
WRITTEN_BY: Final = "model_entry"  # key of response_metadata: the name in config.yaml of the model that replied
ANSWER_NOW: Final = "Do not call a tool."  # how a note ends that asks for the run's last reply

"""How long a test waits for what another thread, process or page does: a bound for a busy machine, never a pace."""

from __future__ import annotations

PATIENCE_SECONDS = 60.0

"""A module that never imports."""

from __future__ import annotations

raise RuntimeError("this module never imports")

"""Which limit stopped a run, and how far it may be raised for a run that goes on from there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from django.utils.translation import gettext as _

from engine.limits import Limits, TokenLimit
from engine.stop import StopReason
from runs.errors import BadInput
from runs.statuses import RunStatus

LAYER: Final = "request"  # what a raised limit says of where it comes from
CEILINGS: Final[Mapping[str, int]] = {"max_turns": 1_000, "timeout_seconds": 86_400, "max_tokens": 10**12}
_FIELD_OF_CAP: Final[Mapping[str, str]] = {StopReason.TURN_CAPPED: "max_turns", StopReason.TOKEN_CAPPED: "max_tokens"}
_FACTOR: Final = 2


def offered(*, status: str, stop_reason: str, detail: Any) -> dict[str, int]:
    """What continuing raises when nobody says how far: the limit that stopped the run, doubled; {} when none did."""
    field = "timeout_seconds" if status == RunStatus.TIMEOUT else _FIELD_OF_CAP.get(stop_reason, "")
    limit = detail.get("limit") if isinstance(detail, Mapping) else None
    if not field or isinstance(limit, bool) or not isinstance(limit, int) or not 0 < limit < CEILINGS[field]:
        return {}
    return {field: min(CEILINGS[field], limit * _FACTOR)}


def checked(wanted: Any, *, path: str = "limits") -> dict[str, int]:
    """Limits somebody asks for, each a whole number within its ceiling. Raises BadInput with the field's path."""
    if not isinstance(wanted, Mapping):
        raise BadInput(path, _("expected an object"))
    for field, value in wanted.items():
        if field not in CEILINGS:
            raise BadInput(f"{path}.{field}", _("unknown; expected %(names)s") % {"names": ", ".join(CEILINGS)})
        if isinstance(value, bool) or not isinstance(value, int):
            raise BadInput(f"{path}.{field}", _("expected a whole number"))
        if not 1 <= value <= CEILINGS[field]:
            raise BadInput(f"{path}.{field}", _("expected 1 to %(limit)s") % {"limit": f"{CEILINGS[field]:,}"})
    return dict(wanted)


def with_raised(limits: Limits, raised: Mapping[str, int]) -> Limits:
    """The limits with those of `raised` that are higher; nothing is ever lowered, and a guard that is off stays off."""
    changes: dict[str, Any] = {}
    if raised.get("max_turns", 0) > limits.max_turns:
        changes |= {"max_turns": raised["max_turns"], "max_turns_layer": LAYER}
    if raised.get("timeout_seconds", 0) > limits.timeout_seconds:
        changes |= {"timeout_seconds": raised["timeout_seconds"], "timeout_layer": LAYER}
    if limits.tokens and raised.get("max_tokens", 0) > limits.tokens.max_tokens:
        changes["tokens"] = TokenLimit(
            max_tokens=raised["max_tokens"], warn_threshold=limits.tokens.warn_threshold, layer=LAYER
        )
    return replace(limits, **changes)

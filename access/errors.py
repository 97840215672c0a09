"""What this app raises on purpose."""

from __future__ import annotations


class AccessError(Exception):
    """Base of everything this app raises on purpose."""


class BadKeyRequest(AccessError):
    """A key cannot be made as asked. `field` is what is wrong, `message` a sentence without the field."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(f"{field}: {message}")
        self.field = field
        self.message = message


class BadIdempotencyKey(AccessError):
    """An Idempotency-Key that is none."""


class KeyReused(AccessError):
    """An Idempotency-Key that came with another request before."""

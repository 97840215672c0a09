"""Values that are stored encrypted: header values of remote agents. Bound to what they are for, shown as a mask only.

A sealed value opens for the header and the origin it was given for and for no other: whoever may change an address
cannot have a secret that they were never shown sent to a place of their own.
"""

from __future__ import annotations

import base64
import json
from hashlib import sha256
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from engine.remote.keys import MASK

if TYPE_CHECKING:
    from cryptography.fernet import Fernet

_MARK: Final = "sealed:"
_SHOWN: Final = 4
_LONG_ENOUGH: Final = 12  # a shorter value would be told by its end
_keys: list[str] = []


class CannotOpen(Exception):
    """The value was sealed with another key, or for something else."""


def configure(secret: str) -> None:
    """Set this installation's key. Once per process."""
    _keys[:] = [secret]


def is_sealed(value: str) -> bool:
    return value.startswith(_MARK)


def seal(value: str, *, name: str, url: str | None) -> str:
    """Return the value as it may be stored: ASCII, another text each time."""
    plain = json.dumps([name.lower(), origin_of(url), value]).encode()
    return _MARK + _fernet().encrypt(plain).decode("ascii")


def unseal(sealed: str, *, name: str, url: str | None) -> str:
    """Return what was sealed. Raises CannotOpen."""
    from cryptography.fernet import InvalidToken

    try:
        said_name, origin, value = json.loads(_fernet().decrypt(sealed.removeprefix(_MARK).encode("ascii", "replace")))
    except (InvalidToken, ValueError, TypeError) as fault:
        raise CannotOpen from fault
    if (said_name, origin) != (name.lower(), origin_of(url)):
        raise CannotOpen
    return str(value)


def masked(sealed: str, *, name: str, url: str | None) -> str:
    """What may be shown: a mask, with the end of a value that is long enough not to be told by it."""
    try:
        value = unseal(sealed, name=name, url=url)
    except CannotOpen:
        return MASK
    return MASK + value[-_SHOWN:] if len(value) >= _LONG_ENOUGH else MASK


def origin_of(url: str | None) -> str:
    """Scheme, host and port of an address: who gets what is sent there. "" for this deployment itself."""
    if not url:
        return ""
    parts = urlsplit(url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    return f"{parts.scheme}://{(parts.hostname or '').rstrip('.')}:{port}"


def _fernet() -> Fernet:
    from cryptography.fernet import Fernet

    if not _keys:
        raise CannotOpen
    return Fernet(base64.urlsafe_b64encode(sha256(_keys[0].encode()).digest()))

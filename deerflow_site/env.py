"""Typed readers of environment variables. A value that makes no sense stops the start with the variable's name.

Every reader also looks at `NAME_FILE`: a path whose content is the value (the way containers hand over secrets).
"""

from __future__ import annotations

import os
from pathlib import Path
from zoneinfo import ZoneInfo

from django.core.exceptions import ImproperlyConfigured

_TRUE = {"1", "true", "yes", "on"}
_FALSE = {"0", "false", "no", "off"}


def env_text(name: str, default: str = "") -> str:
    """The variable's text, stripped. Raises ImproperlyConfigured when `NAME_FILE` names a file that cannot be read."""
    file_name = os.environ.get(f"{name}_FILE")
    if file_name and name not in os.environ:
        try:
            return Path(file_name).read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as fault:
            raise ImproperlyConfigured(f"{name}_FILE: cannot read {file_name}: {fault}") from fault
    return os.environ.get(name, default).strip()


def env_bool(name: str, *, default: bool) -> bool:
    text = env_text(name).lower()
    if not text:
        return default
    if text in _TRUE or text in _FALSE:
        return text in _TRUE
    raise ImproperlyConfigured(f'{name}: expected true or false, got "{text}"')


def env_int(name: str, *, default: int, minimum: int, maximum: int) -> int:
    text = env_text(name)
    if not text:
        return default
    try:
        number = int(text)
    except ValueError:
        raise ImproperlyConfigured(f'{name}: expected a whole number, got "{text}"') from None
    if not minimum <= number <= maximum:
        raise ImproperlyConfigured(f"{name}: expected {minimum} to {maximum}, got {number}")
    return number


def env_choice(name: str, *, default: str, choices: tuple[str, ...]) -> str:
    text = env_text(name).lower() or default
    if text not in choices:
        raise ImproperlyConfigured(f'{name}: expected one of {", ".join(choices)}, got "{text}"')
    return text


def env_list(name: str, default: tuple[str, ...] = ()) -> list[str]:
    """Comma-separated values, empty ones dropped."""
    text = env_text(name)
    return [part.strip() for part in text.split(",") if part.strip()] if text else list(default)


def env_prefix(name: str) -> str:
    """A sub-path such as `/agents`, without a slash at its end; "" for none."""
    text = env_text(name).rstrip("/")
    if text and not text.startswith("/"):
        raise ImproperlyConfigured(f'{name}: expected a path that begins with a slash, got "{text}"')
    return text


def env_time_zone(name: str, *, default: str) -> str:
    text = env_text(name) or default
    try:
        ZoneInfo(text)
    except (KeyError, ValueError, OSError):
        raise ImproperlyConfigured(f'{name}: expected a time zone such as Asia/Shanghai, got "{text}"') from None
    return text

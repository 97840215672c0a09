"""Reading requests: JSON bodies, ids in paths, and fields by kind. Bad input names its field."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, NoReturn
from uuid import UUID

import orjson

from engine.text import clean_json
from runs.agent_protocol.errors import Refused
from runs.errors import BadInput
from runs.lifecycle.editing import MAX_METADATA_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from starlette.requests import Request

MAX_BODY_BYTES = 8 << 20
MAX_DEPTH = 100  # of lists and objects in each other; encoders give up at about 250
_DRAINED_BYTES = 64 << 20
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
_UUID = re.compile(r"[0-9a-fA-F]{8}(-?[0-9a-fA-F]{4}){3}-?[0-9a-fA-F]{12}\Z")
_64_BIT_DIGITS = 18
_LARGE_NUMBER = re.compile(rb"[0-9]{19}|[0-9][eE]\+?[0-9]{2}")  # or a text that looks like one
_LIMIT = 2.0**63


async def json_body(request: Request) -> dict[str, Any]:
    """The request's JSON object; {} for an empty body."""
    raw = await _raw_body(request)
    if not raw.strip():
        return {}
    body = _json(request, raw)
    if not isinstance(body, dict):
        raise Refused(422, "invalid", "the body must be a JSON object")
    return _cleaned(raw, body)


async def json_objects(request: Request, most: int) -> list[dict[str, Any]]:
    """The request's JSON array of objects, at least one and at most so many."""
    raw = await _raw_body(request)
    body = _json(request, raw)
    if not isinstance(body, list) or not all(isinstance(one, dict) for one in body):
        raise Refused(422, "invalid", "the body must be a JSON array of objects")
    if not 0 < len(body) <= most:
        raise Refused(422, "invalid", f"the body has {len(body):,} objects; between 1 and {most:,} are allowed")
    return [_cleaned(raw, one) for one in body]


def _json(request: Request, raw: bytes) -> Any:
    kind = request.headers.get("content-type", "application/json").partition(";")[0].strip().lower()
    if kind != "application/json" and not kind.endswith("+json"):
        raise Refused(415, "unsupported_media_type", "send the body as application/json")
    return _parsed(raw)


def _cleaned(raw: bytes, body: dict[str, Any]) -> dict[str, Any]:
    if raw.count(b"[") + raw.count(b"{") > MAX_DEPTH or _LARGE_NUMBER.search(raw):
        _check_containers(body)
    cleaned: dict[str, Any] = clean_json(body)  # type: ignore[assignment]
    return cleaned


async def _raw_body(request: Request) -> bytes:
    raw, size = bytearray(), 0
    async for piece in request.stream():
        size += len(piece)
        if size <= MAX_BODY_BYTES:
            raw += piece
        elif size > _DRAINED_BYTES:
            break
    # Only now: a client that is still sending would see a broken connection instead of the answer.
    if size > MAX_BODY_BYTES:
        raise Refused(413, "too_large", f"the body has more than {MAX_BODY_BYTES:,} bytes")
    return bytes(raw)


def _parsed(raw: bytes) -> Any:
    try:
        return orjson.loads(raw)
    except orjson.JSONDecodeError as fault:
        reason = fault
    if _SURROGATE.search(raw):
        # JSON can spell half a character, and orjson refuses it; `clean_json` replaces it as everywhere.
        try:
            return json.loads(raw, parse_constant=_no_constant, parse_int=_integer)
        except (ValueError, RecursionError):
            pass
    raise Refused(422, "invalid_json", f"the body is not JSON: {reason}")


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _integer(digits: str) -> int | float:
    return int(digits) if len(digits) <= _64_BIT_DIGITS else float(digits)


def _check_containers(body: dict[str, Any]) -> None:
    """Refuse what nests too deeply, and numbers past 64 bits.

    PostgreSQL gives such a number back with all its digits, which no encoder behind it takes.
    """
    level: list[tuple[str, Any]] = list(body.items())
    for _depth in range(MAX_DEPTH + 1):
        for name, value in level:
            if isinstance(value, float) and abs(value) >= _LIMIT:
                raise BadInput(name[:80], "a number in it does not fit into 64 bits")
        level = [(name, inner) for name, value in level for inner in _inside(value)]
        if not level:
            return
    raise BadInput(level[0][0][:80], f"it is nested deeper than {MAX_DEPTH} levels")


def _inside(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def path_id(request: Request, name: str) -> UUID:
    return an_id(request.path_params[name], name)


def an_id(value: Any, field: str) -> UUID:
    # UUID() itself takes braces, "urn:" and hyphens anywhere: one thread would have many addresses.
    if isinstance(value, str) and _UUID.match(value):
        return UUID(value)
    raise BadInput(field, "expected a UUID")


def an_object(body: Mapping[str, Any], field: str, *, path: str = "") -> dict[str, Any]:
    value = body.get(field)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise BadInput(path or field, "expected an object")
    return value


def a_choice(body: Mapping[str, Any], field: str, choices: Sequence[str], default: str) -> str:
    value = body.get(field)
    if value is None:
        return default
    if not isinstance(value, str) or value not in choices:
        raise BadInput(field, f"expected one of {', '.join(choices)}")
    return str(value)


def a_number(body: Mapping[str, Any], field: str, *, most: float) -> float:
    """A number of at least 0; 0 when there is none."""
    value = body.get(field)
    if value is None:
        return 0
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= most:
        raise BadInput(field, f"expected a number from 0 to {most:,}")
    return value


def some_metadata(body: Mapping[str, Any]) -> dict[str, Any]:
    """The body's `metadata`. Raises BadInput when it is not an object, or too large."""
    metadata = an_object(body, "metadata")
    if metadata and len(orjson.dumps(metadata)) > MAX_METADATA_BYTES:
        raise BadInput("metadata", f"it has more than {MAX_METADATA_BYTES:,} bytes as JSON")
    return metadata


def refuse_unsupported(body: Mapping[str, Any], fields: Sequence[str]) -> None:
    """Options that would change what happens, and that this server does not have, are refused rather than ignored."""
    for field in fields:
        if body.get(field) not in (None, False, [], {}):
            raise BadInput(field, "this server does not support it yet")

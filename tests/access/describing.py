"""The committed description of the API, and whether something is as it says."""

from __future__ import annotations

from typing import Any

import yaml
from django.conf import settings
from jsonschema import Draft202012Validator

DESCRIPTION: dict[str, Any] = yaml.safe_load((settings.BASE_DIR / "docs" / "openapi.yaml").read_text(encoding="utf-8"))


def _closed(schema: Any) -> Any:
    """The schema in JSON Schema's own words: `nullable` is OpenAPI 3.0's."""
    if isinstance(schema, list):
        return [_closed(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    inner = {key: _closed(value) for key, value in schema.items() if key != "nullable"}
    return {"anyOf": [inner, {"type": "null"}]} if schema.get("nullable") else inner


def conforms(value: Any, schema: dict[str, Any]) -> None:
    whole = {**_closed(schema), "components": _closed(DESCRIPTION["components"])}
    Draft202012Validator(whole).validate(value)


def content(part: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = next(iter(part["content"].values()))
    return found


def described(path: str, method: str, status: int) -> dict[str, Any]:
    """The schema of an answer; `path` is below `/api/v1`."""
    responses = DESCRIPTION["paths"][f"/api/v1{path}"][method]["responses"]
    schema: dict[str, Any] = content(responses[str(status)])["schema"]
    return schema

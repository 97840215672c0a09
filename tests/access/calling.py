"""Programs that call the API."""

from __future__ import annotations

import itertools
import json
from typing import Any

from django.test import Client

from access import keys
from tests.access.people import person

BASE = "/api/v1"
_numbers = itertools.count(1)


class Api:
    """A program with a key. Addresses are below `/api/v1`; bodies are JSON unless they are bytes."""

    def __init__(self, key: str, *, user: Any = None) -> None:
        self.key, self.user = key, user
        self.client = Client(headers={"authorization": f"Bearer {key}"}, raise_request_exception=False)

    def __call__(self, method: str, path: str, body: Any = None, *, content_type: str = "", **headers: str) -> Any:
        names = {name.replace("_", "-"): value for name, value in headers.items()}
        sent = body if isinstance(body, bytes) else json.dumps(body).encode() if body is not None else b""
        kind = content_type or "application/json"
        return self.client.generic(method, f"{BASE}{path}", sent, kind, headers=names)

    def get(self, path: str, **headers: str) -> Any:
        return self("GET", path, **headers)

    def ok(self, path: str) -> Any:
        answer = self.get(path)
        assert answer.status_code == 200, answer.content
        return answer.json()

    def names(self, path: str) -> list[str]:
        return [entry["name"] for entry in self.ok(path)["results"]]


def caller(*codenames: str, scopes: tuple[str, ...] = ("admin",), **fields: Any) -> Api:
    user = person(*codenames, name=f"caller-{next(_numbers)}", **fields)
    return Api(keys.make_key(user, "build-bot", scopes)[1], user=user)


def is_problem(answer: Any, status: int, code: str) -> dict[str, Any]:
    """The answer is a problem document of this status and code; returns it."""
    assert (answer.status_code, answer["content-type"]) == (status, "application/problem+json"), answer.content
    body: dict[str, Any] = answer.json()
    assert body["code"] == code, body
    assert body["status"] == status
    assert all(isinstance(body[member], str) and body[member] for member in ("type", "title", "detail", "request_id"))
    assert body["request_id"] == answer["x-request-id"]
    for error in body.get("errors", ()):
        assert set(error) == {"pointer", "code", "detail"}
    return body

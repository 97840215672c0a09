"""Errors as the LangGraph SDK and the Agent Protocol both read them: a string `detail`, a `code`, a `message`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from runs.agent_protocol.shapes import json_response
from runs.errors import (
    BadInput,
    CheckpointNotFound,
    RunNotFound,
    RunsError,
    ThreadBusy,
    ThreadExists,
    ThreadNotFound,
    TooManyPending,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.responses import Response

_STATUS: dict[type[RunsError], tuple[int, str]] = {
    BadInput: (422, "invalid"),
    ThreadNotFound: (404, "not_found"),
    RunNotFound: (404, "not_found"),
    CheckpointNotFound: (404, "not_found"),
    ThreadBusy: (409, "thread_busy"),
    ThreadExists: (409, "exists"),
    TooManyPending: (429, "too_many_pending"),
}


class Refused(Exception):
    """A request that is answered with an error."""

    def __init__(self, status: int, code: str, detail: str, **metadata: Any) -> None:
        super().__init__(detail)
        self.status, self.code, self.detail, self.metadata = status, code, detail, metadata

    def response(self, headers: Mapping[str, str] | None = None) -> Response:
        if "retry_after" in self.metadata:
            headers = {**(headers or {}), "Retry-After": str(self.metadata["retry_after"])}
        body = {"detail": self.detail, "code": self.code, "message": self.detail, "metadata": self.metadata}
        return json_response(body, status=self.status, headers=headers)


def refusal_of(fault: RunsError) -> Refused | None:
    """The answer to an error of this app; None when it is one that no caller caused."""
    known = _STATUS.get(type(fault))
    if known is None:
        return None
    status, code = known
    if isinstance(fault, BadInput):
        return Refused(status, code, str(fault), field=fault.field)
    if isinstance(fault, TooManyPending):
        return Refused(
            status, code, str(fault), field=fault.field, limit=fault.limit, retry_after=fault.retry_after_seconds
        )
    return Refused(status, code, str(fault))

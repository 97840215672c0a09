from __future__ import annotations

import json

import httpx
import pytest

from engine.errors import (
    ModelResting,
    ModelSilent,
    ModelUnavailable,
    NoModel,
    StreamCut,
    UnknownModel,
    asked_wait_seconds,
    explain_model_error,
)


class ProviderError(Exception):
    """As the SDKs raise them: a status and the decoded body."""

    def __init__(self, status_code=None, message=""):
        super().__init__(f"Error code: {status_code} - {message}")
        self.status_code = status_code
        self.body = {"error": {"message": message}}


class APIError(Exception):
    body = {"message": "overloaded"}


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (UnknownModel("x", ("a",)), "model_unknown"),
        (ModelUnavailable("x", "no key"), "model_unavailable"),
        (NoModel("no model is configured"), "model_unavailable"),
        (StreamCut("cut"), "model_stream_cut"),
        (ModelSilent(9, begun=True), "model_stalled"),
        (ModelSilent(9, begun=False), "model_unreachable"),
        (ModelResting("gpt", 5, 30), "model_resting"),
        (ProviderError(402), "model_quota_used_up"),
        (ProviderError(429, "You exceeded your current quota"), "model_quota_used_up"),
        (ProviderError(400, "Your credit balance is too low"), "model_quota_used_up"),
        (ProviderError(413), "model_context_overflow"),
        (ProviderError(400, "prompt is too long: 9 > 8"), "model_context_overflow"),
        (ProviderError(408), "model_server_error"),
        (ProviderError(401), "model_refused_key"),
        (ProviderError(403), "model_refused_key"),
        (ProviderError(404), "model_unknown"),
        (ProviderError(429), "model_rate_limited"),
        (ProviderError(529), "model_server_error"),
        (ProviderError(422), "model_bad_request"),
        (APIError("x"), "model_server_error"),
        (httpx.ConnectError("refused"), "model_unreachable"),
        (httpx.ReadTimeout("slow"), "model_unreachable"),
        (httpx.RemoteProtocolError("closed"), "model_stream_cut"),
        (httpx.UnsupportedProtocol("no scheme"), "model_unreachable"),
        (TimeoutError(), "model_unreachable"),
        (ConnectionResetError(), "model_unreachable"),
        (json.JSONDecodeError("x", "y", 0), "model_unreadable"),
        (RuntimeError("whatever"), "model_failed"),
    ],
)
def test_every_fault_has_the_code_of_what_it_is(error, code):
    assert explain_model_error(error).code == code


def test_the_cause_is_found_behind_a_wrapper():
    try:
        try:
            raise httpx.ConnectError("refused")
        except httpx.ConnectError as error:
            raise RuntimeError("wrapped") from error
    except RuntimeError as wrapped:
        assert explain_model_error(wrapped).code == "model_unreachable"


def test_a_chain_of_causes_without_end_is_left():
    first, second = RuntimeError("a"), RuntimeError("b")
    first.__cause__, second.__cause__ = second, first
    assert explain_model_error(first).code == "model_failed"


def test_the_providers_own_words_are_shown_when_it_refuses_a_request():
    fault = explain_model_error(ProviderError(400, "the valid range of max_tokens is [1, 8192]"))
    assert fault.sentence.endswith("(400): the valid range of max_tokens is [1, 8192]")


def test_a_context_that_is_too_long_is_called_that():
    fault = explain_model_error(ProviderError(400, "This model's maximum context length is 8192 tokens."))
    assert fault.sentence.startswith("The conversation is longer than the model's context allows (400)")


@pytest.mark.parametrize(
    "secret",
    [
        "sk-proj-abc123DEF456ghi789",
        "Bearer eyJhbGciOiJIUzI1NiJ9.e30.x",
        "api_key=hunter2hunter2",
        "0123456789abcdef0123456789abcdef",
        "https://user:hunter2@host/v1",
    ],
)
def test_what_looks_like_a_secret_is_never_shown(secret):
    sentence = explain_model_error(ProviderError(400, f"bad value: {secret} given")).sentence
    assert not any(part in sentence for part in ("abc123", "eyJh", "hunter2", "0123456789abcdef"))


def test_a_whole_request_body_is_never_shown():
    assert len(explain_model_error(ProviderError(400, "x " * 100_000)).sentence) < 300


@pytest.mark.parametrize(
    "body", [None, "text", ["list"], {"error": "text"}, {"message": 5}, {"error": {"message": None}}]
)
def test_a_body_of_any_shape_is_survived(body):
    error = ProviderError(400)
    error.body = body
    assert explain_model_error(error).sentence == "The model server refused the request (400)."


@pytest.mark.parametrize("status", [408, 409, 425, 429, 500, 502, 503, 504, 529])
def test_what_may_pass_is_worth_another_attempt(status):
    assert explain_model_error(ProviderError(status)).passes


@pytest.mark.parametrize("status", [400, 401, 402, 403, 404, 413, 422])
def test_what_the_server_refuses_is_not(status):
    assert not explain_model_error(ProviderError(status)).passes


@pytest.mark.parametrize(
    ("error", "server"),
    [
        (ProviderError(500), True),
        (httpx.ConnectError("refused"), True),
        (ModelSilent(9, begun=True), True),
        (ProviderError(429), False),
        (ProviderError(401), False),
        (StreamCut("cut"), False),
    ],
)
def test_only_a_server_that_is_ill_itself_is_called_so(error, server):
    assert explain_model_error(error).server is server


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [({"retry-after": "2"}, 2.0), ({"retry-after-ms": "250"}, 0.25), ({"retry-after": "0"}, None), ({}, None)],
)
def test_how_long_a_server_asks_to_wait_is_found_behind_wrappers(headers, seconds):
    error = ProviderError(429)
    error.response = httpx.Response(429, headers=headers)
    wrapped = RuntimeError("wrapped")
    wrapped.__cause__ = error
    assert asked_wait_seconds(wrapped) == seconds

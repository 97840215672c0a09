"""What goes wrong between us and a model, as a stable code and one sentence for the operator.

No provider's SDK is imported: its exceptions are known by their status code and by the names of their
classes.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any, Final

from engine.reasons import Reason, reason_of
from engine.reasons import gettext_noop as _
from engine.text import clean, shorten

MAX_QUOTE_CHARACTERS: Final = 200
MAX_CAUSES: Final = 8


class EngineError(Exception):
    """Base of everything the engine raises on purpose."""


class UnknownModel(EngineError):
    """No model of this name is configured."""

    def __init__(self, name: str, known: tuple[str, ...]) -> None:
        sentence = _('There is no model "%(name)s"; configured models: %(names)s.')
        names = ", ".join(known) or Reason(_("none"))
        super().__init__(Reason(sentence, name=shorten(clean(name), 80), names=names))
        self.name = name


class ModelUnavailable(EngineError):
    """The model is configured but cannot be used."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(Reason(_('The model "%(name)s" is not available: %(reason)s.'), name=name, reason=reason))
        self.name = name
        self.reason = reason


class NoModel(EngineError):
    """No model is configured, or none of them is available."""


class StreamCut(EngineError):
    """The model's answer ended before the model had said that it was finished."""


class ModelSilent(EngineError):
    """Nothing came from the model server for too long; `begun`: in the middle of its answer."""

    def __init__(self, seconds: float, *, begun: bool) -> None:
        super().__init__(Reason(_("Nothing came from the model server for %(seconds)s s."), seconds=f"{seconds:g}"))
        self.seconds = seconds
        self.begun = begun


class ModelResting(EngineError):
    """The model server failed so often in a row that it is not asked for a while."""

    def __init__(self, name: str, failures: int, seconds: float) -> None:
        sentence = _(
            "The server of the model %(name)s failed %(failures)s times in a row, so it is not asked again for"
            " %(seconds)s s."
        )
        super().__init__(Reason(sentence, name=name, failures=failures, seconds=max(1, round(seconds))))


@dataclass(frozen=True, slots=True)
class ModelFault:
    """`code` is one of the platform's error codes; `sentence` is safe to show: no key, no request body."""

    code: str
    sentence: Reason
    passes: bool = False  # asking again may help
    server: bool = False  # the server itself is ill, whoever asks it for whatever


CONTEXT_OVERFLOW: Final = "model_context_overflow"
_UNREACHABLE = ModelFault(
    "model_unreachable", Reason(_("The model server cannot be reached.")), passes=True, server=True
)
_SILENT = ModelFault(
    "model_unreachable", Reason(_("The model server did not answer in time.")), passes=True, server=True
)
_CUT = ModelFault("model_stream_cut", Reason(_("The model's answer was cut off before it was finished.")), passes=True)
_NO_ADDRESS = ModelFault("model_unreachable", Reason(_("The model server's base_url is not a usable address.")))
_GARBAGE = ModelFault(
    "model_unreadable",
    Reason(_("The model server's answer could not be read: it is not what its API promises.")),
    passes=True,
)

# Most specific first within a class's own bases: the first name found in the bases' order wins.
_BY_CLASS_NAME: Final[Mapping[str, ModelFault]] = {
    "StreamCut": _CUT,
    "APITimeoutError": _SILENT,
    "TimeoutException": _SILENT,
    "StreamChunkTimeoutError": _SILENT,
    "TimeoutError": _SILENT,
    "RemoteProtocolError": _CUT,
    "ReadError": _CUT,
    "StreamError": _CUT,
    "IncompleteRead": _CUT,
    "ClientPayloadError": _CUT,
    "UnreadableAnswer": _GARBAGE,
    "ServerTimeoutError": _SILENT,
    "ClientConnectionError": _UNREACHABLE,
    "APIConnectionError": _UNREACHABLE,
    "ConnectError": _UNREACHABLE,
    "NetworkError": _UNREACHABLE,
    "ConnectionError": _UNREACHABLE,
    "UnsupportedProtocol": _NO_ADDRESS,
    "InvalidURL": _NO_ADDRESS,
    "APIResponseValidationError": _GARBAGE,
    "JSONDecodeError": _GARBAGE,
    "UnicodeDecodeError": _GARBAGE,
    "ContextOverflowError": ModelFault(
        CONTEXT_OVERFLOW, Reason(_("The conversation is longer than the model's context allows."))
    ),
    "OutputParserException": _GARBAGE,
}
_TOO_LONG = re.compile(
    r"context.?(length|window|size)|maximum context|prompt is too long|too many (input )?tokens|input is too long",
    re.I,
)
_QUOTA = re.compile(r"insufficient.?(quota|balance|credit)|exceeded your current quota|credit balance|billing", re.I)
_SECRET = re.compile(
    r"(?:bearer|basic)\s+\S+"
    r"|\b(?:sk|pk|rk|key|api|xai|gsk|ghp|hf)[-_][\w*.-]{6,}"
    r"|(?:api[-_ ]?key|authorization|token|secret|password)\W{1,4}(?!limit|count)\S{8,}"
    r"|\b(?=\w*\d)(?=\w*[a-z])[\w-]{28,}"
    r"|://[^\s/@]+@",
    re.I,
)


def explain_model_error(exception: BaseException) -> ModelFault:
    """Say what a failed model call means. Never raises; what is not known is `model_failed`.

    Looks along the chain of causes, outermost first, since SDKs wrap what really happened.
    """
    for error in _causes(exception):
        fault = _own_fault(error) or _by_status(error) or _by_class(error)
        if fault:
            return fault
    return ModelFault("model_failed", Reason(_("The model call failed (%(error)s)."), error=type(exception).__name__))


def within_answer(exception: Exception, silence_seconds: float) -> Exception:
    """What a failure means once an answer had begun: a lost connection cut it, silence stalled it."""
    fault = explain_model_error(exception)
    if fault is _UNREACHABLE:
        return StreamCut("the connection to the model was lost within its answer")
    if fault is _SILENT:
        return ModelSilent(silence_seconds, begun=True)
    return exception


def asked_wait_seconds(exception: BaseException) -> float | None:
    """How long the server asks to wait before the next attempt, by its `retry-after` headers; None: it does not say."""
    for error in _causes(exception):
        for holder in (error, getattr(error, "response", None)):
            headers = getattr(holder, "headers", None)
            if headers is not None and (seconds := wait_of(headers)) is not None:
                return seconds
    return None


def wait_of(headers: Mapping[str, str]) -> float | None:
    """What `retry-after-ms` or `retry-after` (seconds or a date) asks for; None for nothing, nonsense and the past."""
    asked = _number(headers.get("retry-after-ms", ""))
    asked = asked / 1000 if asked is not None else _after(headers.get("retry-after", ""))
    return asked if asked and asked > 0 else None


def _after(text: str) -> float | None:
    seconds = _number(text)
    if seconds is not None or not text:
        return seconds
    try:
        return parsedate_to_datetime(text).timestamp() - time.time()
    except ValueError:
        return None


def _number(text: str) -> float | None:
    return float(text) if text.strip().replace(".", "", 1).isdecimal() else None


def _causes(exception: BaseException) -> Iterator[BaseException]:
    error: BaseException | None = exception
    for _number_of_cause in range(MAX_CAUSES):
        if error is None:
            return
        yield error
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)


def _own_fault(error: BaseException) -> ModelFault | None:
    if isinstance(error, UnknownModel):
        return ModelFault("model_unknown", _said(error))
    if isinstance(error, ModelUnavailable | NoModel):
        return ModelFault("model_unavailable", _said(error))
    if isinstance(error, ModelResting):
        return ModelFault("model_resting", _said(error))
    if isinstance(error, ModelSilent):
        if not error.begun:
            return _SILENT
        sentence = _("The model server stopped in the middle of its answer: nothing came for %(seconds)s s.")
        reason = Reason(sentence, seconds=f"{error.seconds:g}")
        return ModelFault("model_stalled", reason, passes=True, server=True)
    return None


def _said(error: BaseException) -> Reason:
    said = reason_of(error)
    return said if isinstance(said, Reason) else Reason(_("The model cannot be used: %(error)s"), error=said)


def _by_status(error: BaseException) -> ModelFault | None:
    status = _status_of(error)
    if status is None:
        return None
    if status in (401, 403):
        return ModelFault(
            "model_refused_key", Reason(_("The model server refused the API key (%(status)s)."), status=status)
        )
    quote = _quoted(error)
    if status == 402 or (status in (400, 429) and (_QUOTA.search(quote) or _QUOTA.search(_provider_code(error)))):
        return ModelFault("model_quota_used_up", _with_quote(_NO_QUOTA, status, quote))
    if status == 429:
        sentence = _("The model server answers that there are too many requests (429).")
        return ModelFault("model_rate_limited", Reason(sentence), passes=True)
    if status >= 500 or status in _PASSING:
        reason = Reason(_("The model server failed (%(status)s)."), status=status)
        return ModelFault("model_server_error", reason, passes=True, server=status >= 500)
    return _by_refusal(status, quote)


_PASSING: Final = (408, 409, 425)


def _by_refusal(status: int, quote: str) -> ModelFault | None:
    if status == 404:
        return ModelFault("model_unknown", _with_quote(_NOT_KNOWN, status, quote))
    if status == 413 or _TOO_LONG.search(quote):
        return ModelFault(CONTEXT_OVERFLOW, _with_quote(_TOO_MUCH, status, quote))
    if status >= 400:
        return ModelFault("model_bad_request", _with_quote(_NOT_TAKEN, status, quote))
    return None


def _status_of(error: BaseException) -> int | None:
    for holder in (error, getattr(error, "response", None)):
        for name in ("status_code", "status", "code"):
            status = getattr(holder, name, None)
            if isinstance(status, int) and not isinstance(status, bool) and 300 <= status < 600:
                return status
    return None


def _by_class(error: BaseException) -> ModelFault | None:
    for base in type(error).__mro__:
        fault = _BY_CLASS_NAME.get(base.__name__)
        if fault:
            return fault
    if any(base.__name__ in ("APIError", "ServerRefusal") for base in type(error).__mro__):
        # An error the server reported inside a stream that had begun well: it carries no status.
        reason = _with_quote(_BROKEN_OFF, 0, _quoted(error))
        return ModelFault("model_server_error", reason, passes=True, server=True)
    return None


_NO_QUOTA: Final = _("The account at the model server has no quota left (%(status)s)")
_NOT_KNOWN: Final = _("The model server does not know this model or address (%(status)s)")
_TOO_MUCH: Final = _("The conversation is longer than the model's context allows (%(status)s)")
_NOT_TAKEN: Final = _("The model server refused the request (%(status)s)")
_BROKEN_OFF: Final = _("The model server broke off with an error")


def _with_quote(template: str, status: int, quote: str) -> Reason:
    """A sentence, and behind it the provider's own words where it said any."""
    sentence = Reason(template, status=status) if "%(status)s" in template else Reason(template)
    return Reason("%(sentence)s: %(quote)s", sentence=sentence, quote=quote) if quote else _ended(sentence)


def _ended(sentence: Reason) -> Reason:
    return Reason(_("%(sentence)s."), sentence=sentence)


def _quoted(error: BaseException) -> str:
    """The provider's own words, bounded, without what looks like a secret; empty when it said nothing."""
    message = _provider_message(error)
    if not message:
        return ""
    words = _SECRET.sub("[hidden]", " ".join(clean(message).split()))
    return shorten(words, MAX_QUOTE_CHARACTERS)


def _provider_message(error: BaseException) -> str:
    for holder in _answered(error):
        if isinstance(holder.get("message"), str):
            return str(holder["message"])
    said = getattr(error, "error", None)  # ollama's
    return said if isinstance(said, str) else ""


def _answered(error: BaseException) -> list[Mapping[str, Any]]:
    """What the server answered, as the SDKs of OpenAI and Anthropic (`body`) and of Google (`details`) keep it, and
    the `error` within."""
    body = getattr(error, "body", None) or getattr(error, "details", None)
    inner = body.get("error") if isinstance(body, Mapping) else None
    return [holder for holder in (body, inner) if isinstance(holder, Mapping)]


def _provider_code(error: BaseException) -> str:
    """The provider's own word for the error, such as insufficient_quota."""
    words = [holder.get(name) for holder in _answered(error) for name in ("code", "type")]
    return " ".join(word for word in words if isinstance(word, str))

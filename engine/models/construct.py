"""One entry of `models:` becomes a LangChain chat model."""

from __future__ import annotations

import importlib
import inspect
import os
from typing import TYPE_CHECKING, Any, Final

from langchain_core.language_models.chat_models import BaseChatModel
from pydantic import ValidationError

from engine.errors import ModelUnavailable
from engine.reasons import Reason
from engine.reasons import gettext_noop as _

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.config.schema import ModelConfig

CONNECT_TIMEOUT_SECONDS: Final = 10.0
READ_TIMEOUT_SECONDS: Final = 600.0  # of silence; a run's own deadline ends it earlier

# Our key → what provider classes call it, in order of preference.
_SPELLINGS: Final[Mapping[str, tuple[str, ...]]] = {
    "model": ("model", "model_name", "model_id"),
    "api_key": ("api_key", "api_token"),
    "base_url": ("base_url", "api_base", "endpoint_url"),
    "temperature": ("temperature",),
    "max_tokens": ("max_tokens", "max_output_tokens", "num_predict"),
    "timeout_seconds": ("timeout", "request_timeout", "timeout_seconds"),
}
# With one of these an entry says itself how it connects to OpenAI.
_OWN_CONNECTIONS: Final = frozenset({"http_client", "http_async_client", "http_socket_options", "openai_proxy"})
_OWN_CLIENTS: Final = frozenset({"async_client", "root_async_client"})
_DEFAULTS: Final[Mapping[str, object]] = {"streaming": True, "stream_usage": True}
# The model's gate asks again and watches for silence, the same way for every provider.
_LEFT_TO_THE_GATE: Final[Mapping[str, object]] = {"max_retries": 0, "stream_chunk_timeout": None}


def construct(model: ModelConfig) -> BaseChatModel:
    """Build the chat model of an entry whose variables are expanded.

    `use` may name a BaseChatModel class, an instance, or a function that returns one. Raises ModelUnavailable
    with a reason that holds no value of the configuration.
    """
    target: Any = _load(model)
    if isinstance(target, BaseChatModel):
        return target
    if not callable(target):
        raise ModelUnavailable(model.name, Reason(_("%(use)s is not a chat model"), use=model.use))
    if isinstance(target, type) and not issubclass(target, BaseChatModel):
        raise ModelUnavailable(model.name, Reason(_("%(use)s is not a LangChain chat model class"), use=model.use))
    arguments = _arguments(model, target)
    try:
        built = _with_reasoning(target)(**arguments)
    except ValidationError as error:
        problems = "; ".join(f"{'.'.join(map(str, one['loc'])) or 'options'}: {one['msg']}" for one in error.errors())
        raise ModelUnavailable(
            model.name, Reason(_("its options are refused: %(problems)s"), problems=problems[:400])
        ) from None
    except Exception as error:
        # A provider's class may raise anything, and its text may repeat the key.
        sentence = _("%(use)s raised %(error)s when it was built")
        reason = Reason(sentence, use=model.use, error=type(error).__name__)
        raise ModelUnavailable(model.name, reason) from error
    if not isinstance(built, BaseChatModel):
        raise ModelUnavailable(model.name, Reason(_("%(use)s did not give a LangChain chat model"), use=model.use))
    _tune(built, model, target)
    return built


def _tune(built: BaseChatModel, model: ModelConfig, target: Any) -> None:
    """What a provider's package leaves to be done after building."""
    if _is_openai(target) and target.__name__ == "ChatOpenAI" and not _OWN_CLIENTS & set(model.extra):
        from engine.models.openai_streams import send_and_read_as_is

        send_and_read_as_is(built)  # type: ignore[arg-type]
    if _comes_from(target, "langchain_anthropic"):
        _unshare_connections(built)


def _load(model: ModelConfig) -> object:
    module, _colon, attribute = model.use.partition(":")
    try:
        return getattr(importlib.import_module(module), attribute)
    except AttributeError:
        raise ModelUnavailable(
            model.name, Reason(_("the module %(name)s has no %(attribute)s"), name=module, attribute=attribute)
        ) from None
    except Exception as error:
        reason = Reason(_("importing %(name)s failed (%(error)s)"), name=module, error=type(error).__name__)
        raise ModelUnavailable(model.name, reason) from error


def _arguments(model: ModelConfig, target: Any) -> dict[str, object]:
    accepted = _accepted(target)
    arguments: dict[str, object] = {}
    for key, spellings in _SPELLINGS.items():
        value = getattr(model, key)
        if value is None:
            continue
        spelling = next((name for name in spellings if accepted is None or name in accepted), None)
        if spelling is None:
            raise ModelUnavailable(model.name, Reason(_("%(use)s takes no %(option)s"), use=model.use, option=key))
        arguments[spelling] = value
    defaults = {**_DEFAULTS, **_LEFT_TO_THE_GATE}
    arguments |= {name: default for name, default in defaults.items() if accepted and name in accepted}
    if _is_openai(target):
        arguments["timeout"] = _openai_timeout(model.timeout_seconds)
        if not _OWN_CONNECTIONS & set(model.extra) and not os.environ.get("OPENAI_PROXY"):
            arguments["http_async_client"] = _openai_connections(arguments["timeout"])
    return arguments | dict(model.extra)


def _accepted(target: Any) -> frozenset[str] | None:
    """The keyword arguments a class or function names; None when it takes any."""
    if isinstance(target, type):
        fields = target.model_fields  # type: ignore[attr-defined]
        return frozenset(fields) | frozenset(field.alias for field in fields.values() if field.alias)
    parameters = inspect.signature(target).parameters.values()
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        return None
    return frozenset(parameter.name for parameter in parameters)


def _is_openai(target: Any) -> bool:
    return _comes_from(target, "langchain_openai")


def _comes_from(target: Any, package: str) -> bool:
    return isinstance(target, type) and any(base.__module__.startswith(package) for base in target.__mro__)


def _unshare_connections(model: Any) -> None:
    """langchain-anthropic shares one HTTP client between all models at an address, also between event loops; and
    whoever closes it, closes it for all of them."""
    from anthropic import DefaultAsyncHttpxClient

    shared = model._async_client
    own = DefaultAsyncHttpxClient(base_url=shared.base_url, timeout=shared.timeout)
    vars(model)["_async_client"] = shared.copy(http_client=own)


def _with_reasoning(target: Any) -> Any:
    if not _is_openai(target):
        return target
    from engine.models.openai_reasoning import with_reasoning

    return with_reasoning(target)


def _openai_timeout(timeout_seconds: int | None) -> object:
    from openai import Timeout

    # langchain-openai shares one HTTP client between all models whose timeout is a plain number, also between
    # event loops, which must never happen; a Timeout object gives each model a client of its own.
    return Timeout(timeout_seconds or READ_TIMEOUT_SECONDS, connect=CONNECT_TIMEOUT_SECONDS)


def _openai_connections(timeout: Any) -> object:
    """OpenAI's own client over aiohttp: the default one looks at every open connection for each request."""
    from openai import DefaultAioHttpClient

    return DefaultAioHttpClient(timeout=timeout)

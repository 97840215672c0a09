"""The configured models by name: which can be used, which one a run gets, and the built chat models."""

from __future__ import annotations

import asyncio
import inspect
from typing import TYPE_CHECKING, Final
from weakref import WeakKeyDictionary

from engine.config.expand import expand_model
from engine.errors import ModelUnavailable, NoModel, UnknownModel
from engine.models.availability import Availability, availability_of
from engine.models.gate import ModelGate
from engine.reasons import Reason, joined, located, reason_of
from engine.reasons import gettext_noop as _

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from langchain_core.language_models.chat_models import BaseChatModel

    from engine.config.schema import ModelConfig

INHERIT = "inherit"


class ModelRegistry:
    """All models of one configuration. Make one per accepted configuration and keep it: it caches.

    Importing this module does not import LangChain; `chat_model` does.
    """

    def __init__(self, models: Iterable[ModelConfig], environ: Mapping[str, str]) -> None:
        self._models = {model.name: model for model in models}
        self._environ = dict(environ)
        self._checked: dict[str, Availability] = {}
        self._built: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[tuple[str, bool], BaseChatModel]] = (
            WeakKeyDictionary()
        )
        self._gates: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[str, ModelGate]] = WeakKeyDictionary()
        self._workers = 1

    def names(self) -> tuple[str, ...]:
        """All configured models, in the file's order."""
        return tuple(self._models)

    def availability(self, name: str) -> Availability:
        if name not in self._models:
            return Availability(False, reason_of(UnknownModel(name, self.names())))
        if name not in self._checked:
            self._checked[name] = availability_of(self._models[name], self._environ)
        return self._checked[name]

    def default_name(self) -> str:
        """The first available model. Raises NoModel with the reason of each when there is none."""
        for name in self._models:
            if self.availability(name).ok:
                return name
        if not self._models:
            raise NoModel(Reason(_("No model is configured.")))
        reasons = joined(tuple(located(name, self.availability(name).reason) for name in self._models))
        raise NoModel(Reason(_("None of the configured models is available: %(reasons)s."), reasons=reasons))

    def resolve(self, requested: str | None, lead_model: str | None = None) -> str:
        """The model of a run: the one asked for, else the lead's, else the first available one.

        A model that was named is never replaced by another: raises UnknownModel or ModelUnavailable instead.
        """
        for name in (requested, lead_model):
            if name and name != INHERIT:
                return self._usable(name)
        return self.default_name()

    def config(self, name: str) -> ModelConfig:
        """The entry as written. Raises UnknownModel."""
        if name not in self._models:
            raise UnknownModel(name, self.names())
        return self._models[name]

    def chat_model(self, name: str, *, thinking: bool = False) -> BaseChatModel:
        """The built model, one for each running event loop. Raises UnknownModel or ModelUnavailable.

        `thinking`: for runs that shall think at length; another object only where the entry says what that means.
        """
        loop = asyncio.get_running_loop()
        built = self._built.setdefault(loop, {})
        key = name, thinking and self.config(name).tells_thinking
        if key not in built:
            built[key] = self._build(self._usable(name), thinking=thinking)
        return built[key]

    def gate(self, name: str) -> ModelGate:
        """The way to a model on the running event loop: all its calls there go through it. Raises UnknownModel."""
        gates = self._gates.setdefault(asyncio.get_running_loop(), {})
        if name not in gates:
            entry = self.config(name)
            gates[name] = ModelGate(
                name,
                max_concurrency=entry.max_concurrency,
                max_retries=entry.max_retries,
                silence_seconds=entry.timeout_seconds,
            )
            gates[name].places.share_among(self._workers)
        return gates[name]

    def share_among(self, workers: int) -> None:
        """So many worker processes share what models allow; to be called on the loop that uses them."""
        if workers == self._workers:
            return
        self._workers = workers
        for gate in self._gates.get(asyncio.get_running_loop(), {}).values():
            gate.places.share_among(workers)

    async def aclose(self) -> None:
        """Close the HTTP connections of the models that were built on the running loop."""
        for model in self._built.pop(asyncio.get_running_loop(), {}).values():
            await _close_clients(model)

    def _usable(self, name: str) -> str:
        self.config(name)
        state = self.availability(name)
        if not state.ok:
            raise ModelUnavailable(name, state.reason)
        return name

    def _build(self, name: str, *, thinking: bool) -> BaseChatModel:
        from engine.models.construct import construct

        expanded, _missing = expand_model(self._models[name].thinking(thinking), self._environ)
        try:
            return construct(expanded)
        except ModelUnavailable as error:
            self._checked[name] = Availability(False, error.reason)
            raise


_HELD_CLIENTS: Final = ("root_async_client", "root_client", "_async_client", "_client", "client")


async def _close_clients(model: BaseChatModel) -> None:
    """Close what the model holds by now; asking it for a client it has not needed would make one."""
    held = {**vars(model), **(getattr(model, "__pydantic_private__", None) or {})}
    clients = [held[name] for name in _HELD_CLIENTS if held.get(name) is not None]
    for client in (model, *clients, *(getattr(client, "aio", None) for client in clients)):  # aio: Google's
        close = getattr(client, "aclose", None) or getattr(client, "close", None)
        if callable(close):
            closing = close()
            if inspect.isawaitable(closing):
                await closing

"""Streams of ChatOpenAI without what OpenAI's SDK does to every value of a request and of a piece of a reply.

The SDK walks through all messages and tool schemas looking for what its types want spelled differently, and makes an
object of each piece, which LangChain turns back into the dictionary it was. In chat completions neither changes
anything. Source: openai 3.57, `_utils/_transform.py` and `_streaming.py`;
langchain-openai 1.7 takes pieces that are dictionaries already.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from openai import AsyncStream

if TYPE_CHECKING:
    from langchain_openai import ChatOpenAI

_PATH: Final = "/chat/completions"
_SECURITY: Final = {"bearer_auth": True}


def send_and_read_as_is(model: ChatOpenAI) -> None:
    """Let the streams of this model's chat completions go past those walks. Everything else stays the SDK's."""
    model.async_client = _Completions(model.async_client, model.root_async_client)


class _Completions:
    """`client.chat.completions`, whose streams are asked for by the SDK's own way to any other address."""

    def __init__(self, completions: Any, client: Any) -> None:
        self._completions = completions
        self._client = client

    def __getattr__(self, name: str) -> Any:
        if name == "_completions":  # a copy that is being made has none yet
            raise AttributeError(name)
        return getattr(self._completions, name)

    async def create(self, **request: Any) -> Any:
        if not request.get("stream"):
            return await self._completions.create(**request)
        spelled = {
            "headers": "extra_headers",
            "params": "extra_query",
            "extra_json": "extra_body",
            "timeout": "timeout",
        }
        given = {name: request.pop(spelling) for name, spelling in spelled.items() if spelling in request}
        options = {name: value for name, value in given.items() if value is not None or name == "timeout"}
        return await self._client.post(
            _PATH,
            cast_to=object,
            body=request,
            options={**options, "security": _SECURITY},
            stream=True,
            stream_cls=AsyncStream[object],
        )

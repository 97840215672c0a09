"""The system message comes from the run, since one compiled agent serves runs with different prompts."""

from __future__ import annotations

from langchain_core.messages import SystemMessage

from engine.middleware.reply import Guard, Handler, Request, Response, context_of


class SystemPromptMiddleware(Guard):
    """Set the leading system message to `context.system_prompt`, byte for byte; none when it is empty."""

    async def awrap_model_call(self, request: Request, handler: Handler) -> Response:
        prompt = context_of(request).system_prompt
        message = SystemMessage(content=prompt) if prompt.strip() else None
        return await handler(request.override(system_message=message))

"""`llm.chat`: ask a language model, and stream its answer while it is made."""

from __future__ import annotations

import json
import os
from typing import Any

import httpx
from astraflow_sdk import ConfigurationError, Context, InfrastructureError, UserCodeError

from astraflow_llm.stream import Answer, read_events

__all__ = ["LlmAdapter"]

BASE_URL = "https://api.openai.com/v1"
SECRET = "LLM_API_KEY"  # noqa: S105 - the name of one
CONNECT_S = 10.0
CHANNEL = "llm"
AGAIN = (408, 409, 425, 429)
"""Refusals that may pass, beside everything from 500 on."""


class LlmAdapter:
    """The entry point of the manifest."""

    async def chat(
        self,
        ctx: Context,
        model: str,
        prompt: str | None = None,
        system: str | None = None,
        messages: list[dict[str, Any]] | None = None,
        baseUrl: str = BASE_URL,
        apiKey: str | None = None,
        temperature: float | None = None,
        maxTokens: int | None = None,
        stop: list[str] | None = None,
        timeoutSeconds: float = 120,
        extra: dict[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Ask, and hand on every token as it comes."""
        asked = {
            "model": model,
            "messages": _messages(prompt, system, messages),
            "stream": True,
            "stream_options": {"include_usage": True},
            **_given(temperature=temperature, max_tokens=maxTokens, stop=stop),
            **(extra or {}),
        }
        answer = Answer()
        timeout = httpx.Timeout(timeoutSeconds, connect=CONNECT_S)
        headers = _headers(ctx, apiKey)
        url = f"{baseUrl.rstrip('/')}/chat/completions"
        try:
            async with (
                httpx.AsyncClient(timeout=timeout) as client,
                client.stream("POST", url, json=asked, headers=headers) as response,
            ):
                if response.status_code != 200:
                    raise _refusal(response.status_code, await response.aread(), response.headers)
                async for event in read_events(response.aiter_lines()):
                    added = answer.take(event)
                    if added:
                        ctx.emit(added, channel=CHANNEL)
        except httpx.InvalidURL as problem:
            raise ConfigurationError(f"baseUrl is no address: {problem}") from problem
        except httpx.TimeoutException as problem:
            raise InfrastructureError(
                f"the server was silent for {timeoutSeconds:g} s"
            ) from problem
        except httpx.HTTPError as problem:
            raise InfrastructureError(f"the server cannot be reached: {problem}") from problem
        return {
            "text": answer.text,
            "message": {"role": answer.role, "content": answer.text},
            "model": answer.model or model,
            "finishReason": answer.finish_reason,
            "usage": answer.usage,
            "done": True,
        }


def _messages(
    prompt: str | None, system: str | None, messages: list[dict[str, Any]] | None
) -> list[dict[str, Any]]:
    told = list(messages or [])
    if system:
        told.insert(0, {"role": "system", "content": system})
    if prompt:
        told.append({"role": "user", "content": prompt})
    if not any(one.get("role") == "user" for one in told):
        raise ConfigurationError("there is nothing to ask: give a prompt, or messages of a user")
    return told


def _given(**options: Any) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}


def _headers(ctx: Context, key: str | None) -> dict[str, str]:
    """The key from the node's secret, its parameter, or the worker's environment; local servers want none."""
    found = ctx.secrets.get(SECRET) or key or os.environ.get(SECRET)
    headers = {"Accept": "text/event-stream"}
    return {**headers, "Authorization": f"Bearer {found}"} if found else headers


def _refusal(status: int, body: bytes, headers: httpx.Headers) -> Exception:
    said = _said(body)
    if status in (401, 403):
        return ConfigurationError(f"the server does not accept the key ({status}): {said}")
    if status in AGAIN or status >= 500:
        context = {"status": status, **_given(retryAfter=headers.get("retry-after"))}
        return InfrastructureError(f"not now ({status}): {said}", retryable=True, context=context)
    if status == 404:
        return ConfigurationError(f"there is no such model or address ({status}): {said}")
    return UserCodeError(f"the server refuses the request ({status}): {said}", retryable=False)


def _said(body: bytes) -> str:
    try:
        error = json.loads(body).get("error")
        return str(error.get("message") if isinstance(error, dict) else error or body[:500])[:1000]
    except (ValueError, AttributeError):
        return body[:500].decode("utf-8", "replace")

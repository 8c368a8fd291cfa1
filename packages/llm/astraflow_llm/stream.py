"""Reading the answer of a chat while it is made: server-sent events, one JSON object each, until `[DONE]`."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

from astraflow_sdk import InfrastructureError

__all__ = ["Answer", "read_events"]

DONE = "[DONE]"


@dataclass
class Answer:
    """What has been said so far."""

    text: str = ""
    role: str = "assistant"
    model: str = ""
    finish_reason: str | None = None
    usage: dict[str, Any] = field(default_factory=dict)

    def take(self, event: dict[str, Any]) -> str:
        """Take one event in; the text that it adds."""
        self.model = event.get("model") or self.model
        self.usage = event.get("usage") or self.usage
        added = ""
        for choice in event.get("choices") or ():
            delta = choice.get("delta") or {}
            self.role = delta.get("role") or self.role
            added += delta.get("content") or ""
            self.finish_reason = choice.get("finish_reason") or self.finish_reason
        self.text += added
        return added


async def read_events(lines: AsyncIterator[str]) -> AsyncIterator[dict[str, Any]]:
    """The events of a stream, to its proper end.

    Raises:
        InfrastructureError: it was cut, or it holds what is no event.
    """
    async for line in lines:
        if not line.startswith("data:"):
            continue  # comments that keep the connection open, names of events
        body = line.removeprefix("data:").strip()
        if body == DONE:
            return
        try:
            event = json.loads(body)
        except ValueError as problem:
            raise InfrastructureError(f"the server sent no event: {body[:200]!r}") from problem
        if not isinstance(event, dict):
            raise InfrastructureError(f"the server sent no event: {body[:200]!r}")
        if event.get("error"):
            raise InfrastructureError(f"the server broke off: {json.dumps(event['error'])[:1000]}")
        yield event
    raise InfrastructureError("the stream was cut before its end")

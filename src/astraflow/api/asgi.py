"""The types of ASGI, as far as this application uses it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Protocol

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


class AsgiApp(Protocol):
    """What a server calls for each request. An endpoint returns one: its response."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None: ...

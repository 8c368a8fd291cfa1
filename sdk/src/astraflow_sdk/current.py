"""The current attempt, for functions that handlers call without a context."""

from __future__ import annotations

import contextvars
from typing import TYPE_CHECKING

from astraflow_sdk.errors import ConfigurationError

if TYPE_CHECKING:
    from astraflow_sdk.context import Context

CURRENT: contextvars.ContextVar[Context | None] = contextvars.ContextVar("attempt", default=None)
"""Tasks that a handler starts and `asyncio.to_thread` inherit it, bare threads do not."""


def current() -> Context:
    """Raises ConfigurationError when no handler is running here."""
    ctx = CURRENT.get()
    if ctx is None:
        raise ConfigurationError(
            "there is no attempt here: call this from a handler, a task of it or asyncio.to_thread; "
            "in a thread of your own use ctx.resource_registry"
        )
    return ctx

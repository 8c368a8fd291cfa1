"""`core.python`: a piece of Python in a workflow."""

from __future__ import annotations

import asyncio
import functools
import inspect
from collections.abc import Mapping
from types import CodeType
from typing import Any

from astraflow_sdk import ConfigurationError, Context, UserCodeError, node

__all__ = ["python"]

CACHED_SCRIPTS = 256
"""Compiled texts that are kept: a fan-out runs the same one thousands of times."""


@node("core.python")
def python(ctx: Context, code: str = "", inputs: Mapping[str, Any] | None = None) -> Any:
    """Run `main(**inputs)` of a text, which may be `async`. Each attempt gets fresh globals."""
    if not isinstance(code, str):
        raise ConfigurationError(f"code must be a string, not {type(code).__name__}")
    if inputs is not None and not isinstance(inputs, Mapping):
        raise ConfigurationError(f"inputs must be an object, not {type(inputs).__name__}")
    names: dict[str, Any] = {"__name__": "astraflow_script", "ctx": ctx}
    exec(_compiled(code), names)  # noqa: S102  (running the author's code is what this node is for)
    main = names.get("main")
    if not callable(main):
        raise ConfigurationError("the code defines no function main(...)")
    value = main(**(inputs or {}))
    return asyncio.run(_awaited(ctx, value)) if inspect.isawaitable(value) else value


async def _awaited(ctx: Context, value: Any) -> Any:
    """Wait for an `async` main; a cancel reaches it as `CancelledError`, as it does in other async handlers."""
    waiting = asyncio.ensure_future(value)
    while not waiting.done():
        await asyncio.wait([waiting], timeout=CANCEL_POLL_S)
        if ctx.cancelled and not waiting.done():
            waiting.cancel()
            await asyncio.wait([waiting])
    return waiting.result()


CANCEL_POLL_S = 0.2
"""How soon an `async` main in its own thread notices a cancel."""


@functools.lru_cache(maxsize=CACHED_SCRIPTS)
def _compiled(code: str) -> CodeType:
    try:
        return compile(code, "<core.python>", "exec")
    except (SyntaxError, ValueError) as problem:
        raise UserCodeError(f"the code cannot be compiled: {problem}", retryable=False) from problem

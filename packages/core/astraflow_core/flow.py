"""Nodes that do little or nothing: what flows are tested and measured with."""

from __future__ import annotations

import asyncio
from typing import Any

from astraflow_sdk import (
    ConfigurationError,
    Context,
    DataQualityError,
    InfrastructureError,
    NodeError,
    UserCodeError,
    node,
)

__all__ = ["echo", "fail", "log", "noop", "sleep"]


class _TimedOut(NodeError):
    category = "TIMEOUT"
    default_code = "E.TIMEOUT"


_ERRORS: dict[str, type[NodeError]] = {
    error.category: error
    for error in (
        UserCodeError,
        DataQualityError,
        InfrastructureError,
        ConfigurationError,
        _TimedOut,
    )
}
_LEVELS = frozenset({"debug", "info", "warning", "error"})


@node("core.noop", inline=True)
def noop(ctx: Context) -> dict[str, Any]:
    """Return the parameters as they are."""
    return ctx.parameters


@node("core.echo", inline=True)
def echo(value: Any = None) -> dict[str, Any]:
    """Return a value."""
    return {"value": value}


@node("core.sleep")
async def sleep(seconds: float = 0) -> dict[str, Any]:
    """Wait."""
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not seconds >= 0:
        raise ConfigurationError(f"seconds must be a number from 0: {seconds!r}")
    await asyncio.sleep(seconds)
    return {"seconds": seconds}


@node("core.fail", inline=True)
def fail(
    ctx: Context,
    message: str = "failed as asked",
    category: str = "USER_CODE",
    retryable: bool | None = None,
    times: int | None = None,
) -> dict[str, Any]:
    """Fail: always, or as long as it has failed fewer than `times` times."""
    if times is not None and ctx.failures >= times:
        return {}
    error = _ERRORS.get(category)
    if error is None:
        raise ConfigurationError(f"category must be one of {', '.join(_ERRORS)}: {category!r}")
    raise error(str(message), retryable=retryable)


@node("core.log", inline=True)
def log(ctx: Context, message: Any = "", level: str = "info") -> dict[str, Any]:
    """Write a line into the log of the run."""
    if level not in _LEVELS:
        raise ConfigurationError(f"level must be debug, info, warning or error: {level!r}")
    ctx.log(level, message if isinstance(message, str) else repr(message))
    return {}

"""Middlewares: nodes that wrap another one and decide whether, when and how often it runs.

What `core.cache` and `core.rate_limit` remember is in the memory of this process: it is shared by the runs that its
worker executes, not by other workers, and is gone when the process ends.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Mapping
from typing import Any

from astraflow_sdk import (
    CallFailed,
    ConfigurationError,
    Context,
    InfrastructureError,
    WrappedNode,
    node,
)

from astraflow_core.memory import CachedResults, CallWindows

__all__ = ["cache", "log_calls", "rate_limit", "retry", "timeout"]

_RETRIED = ("USER_CODE", "INFRASTRUCTURE", "TIMEOUT")
_SHOWN_CHARS = 2000
_RESULTS = CachedResults()
_WINDOWS = CallWindows()


def host_of(ctx: Context) -> WrappedNode:
    """The node that the chain is around. Raises: ConfigurationError."""
    if ctx.host is None:
        raise ConfigurationError(
            f"{ctx.node_type} wraps another node: name it in the middlewares of that node",
            code="E.NEXT.INVALID",
        )
    return ctx.host


@node("core.retry")
async def retry(
    ctx: Context,
    attempts: int = 3,
    backoffSeconds: float = 1.0,
    factor: float = 2.0,
    maxBackoffSeconds: float = 60.0,
    categories: list[str] | None = None,
) -> Any:
    """Call the rest of the chain again when it fails."""
    wanted = _RETRIED if categories is None else categories
    delay = backoffSeconds
    for attempt in range(1, attempts + 1):
        try:
            return await ctx.next()
        except CallFailed as error:
            again = error.category in wanted if error.retryable is None else error.retryable
            if attempt == attempts or not again:
                raise
            wait_s = min(delay, maxBackoffSeconds)
            ctx.log("warning", f"call {attempt} of {attempts} failed with {error.code}; "
                    f"next call in {wait_s:g} s: {error.message}")  # fmt: skip
            await asyncio.sleep(wait_s)
            delay = min(delay * factor, maxBackoffSeconds)
    raise ConfigurationError(f"attempts must be from 1 on: {attempts}")


@node("core.timeout")
async def timeout(ctx: Context, seconds: float) -> Any:
    """End the rest of the chain when it takes too long."""
    return await ctx.next(timeout_s=seconds)


@node("core.cache")
async def cache(
    ctx: Context, ttlSeconds: float = 300.0, key: Any = None, maxBytes: int = 1_048_576
) -> Any:
    """Return an earlier result of the same input, if this worker has one."""
    place = _cache_key(ctx, host_of(ctx), key)
    if place is None:
        return await ctx.next()
    found = _RESULTS.find(place, time.monotonic())
    ctx.metrics(cacheHits=0 if found is None else 1)
    if found is not None:
        ctx.log("info", "the result is from the cache: the node was not called")
        return json.loads(found)
    result = await ctx.next()
    text = json.dumps(result)
    if '"resourceRef"' in text:
        ctx.log("info", "the result refers to a resource, which may go: it is not kept")
    elif len(text) > maxBytes:
        ctx.log("info", f"the result has {len(text)} bytes, more than maxBytes: it is not kept")
    else:
        _RESULTS.keep(place, text, time.monotonic() + ttlSeconds)
    return result


def _cache_key(ctx: Context, host: WrappedNode, key: Any) -> str | None:
    identity = [ctx.tenant, host.type, host.package, host.version]
    if key is not None:
        return json.dumps([*identity, "key", key], sort_keys=True)
    if host.input_sha256 is None:
        return None  # a parameter of the host has no value: the call says which
    return json.dumps([*identity, "input", host.input_sha256])


@node("core.rate_limit")
async def rate_limit(
    ctx: Context,
    count: int = 10,
    perSeconds: float = 1.0,
    key: str | None = None,
    maxWaitSeconds: float | None = None,
) -> Any:
    """Let at most `count` calls begin within `perSeconds`, on this worker; others wait."""
    place = (ctx.tenant, key if key is not None else f"node {ctx.host_node_id}")
    wait_s = _WINDOWS.reserve(place, count, perSeconds, time.monotonic(), maxWaitSeconds)
    if wait_s is None:
        raise InfrastructureError(
            f"{count} calls per {perSeconds:g} s are taken for longer than {maxWaitSeconds:g} s",
            retryable=True,
        )
    if wait_s > 0:
        ctx.log("info", f"waits {wait_s:.3f} s: {count} calls per {perSeconds:g} s are taken")
        await asyncio.sleep(wait_s)
    return await ctx.next()


@node("core.log_calls")
async def log_calls(
    ctx: Context, level: str = "info", input: bool = False, result: bool = False
) -> Any:
    """Write a line before and after each call of the rest of the chain."""
    host = host_of(ctx)
    shown = f" with {_text(host.parameters)}" if input else ""
    ctx.log(level, f"calls {host.type}{shown}")
    began = time.monotonic()
    try:
        returned = await ctx.next()
    except CallFailed as error:
        took = time.monotonic() - began
        ctx.log(
            "error", f"{host.type} failed after {took:.3f} s with {error.code}: {error.message}"
        )
        raise
    shown = f": {_text(returned)}" if result else ""
    ctx.log(level, f"{host.type} succeeded after {time.monotonic() - began:.3f} s{shown}")
    return returned


def _text(value: Mapping[str, Any] | None) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _SHOWN_CHARS else f"{text[:_SHOWN_CHARS]}…"

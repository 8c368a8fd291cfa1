"""`core.loop`: the rest of the chain, several times."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from astraflow_sdk import ConfigurationError, Context, DataQualityError, node

from astraflow_core.middleware import host_of

__all__ = ["loop"]

_MISSING = object()


@node("core.loop")
async def loop(
    ctx: Context,
    times: int | None = None,
    over: list[Any] | None = None,
    item: str = "value",
    until: Mapping[str, Any] | None = None,
    feed: Mapping[str, str] | None = None,
    collect: bool = False,
    maxRounds: int = 100,
) -> dict[str, Any]:
    """Call the rest of the chain a number of times, for each item of a list, or until its result fits."""
    if times is not None and over is not None:
        raise ConfigurationError("times and over exclude each other")
    if times is None and over is None and until is None:
        raise ConfigurationError("one of times, over and until is needed")
    rounds = _rounds(times, over, item, maxRounds)
    base = _base(ctx) if over is not None or feed else None
    last: dict[str, Any] = {}
    results: list[dict[str, Any]] = []
    fed: dict[str, Any] = {}
    is_met = until is None
    for number, given in enumerate(rounds, 1):
        payload = None if base is None else {**base, **fed, **given}
        last = await ctx.next(payload)
        if collect:
            results.append(last)
        ctx.progress(number / len(rounds), f"round {number}")
        if until is not None and _fits(last, until):
            is_met = True
            break
        if number < len(rounds):
            fed = {name: _fed(last, path) for name, path in (feed or {}).items()}
    if not is_met:
        raise DataQualityError(f"the condition did not hold within {len(rounds)} rounds: {until}")
    return {**last, "rounds": results} if collect else last


def _rounds(
    times: int | None, over: list[Any] | None, item: str, max_rounds: int
) -> list[dict[str, Any]]:
    """What each round adds to the input of the host."""
    wanted = max_rounds if times is None and over is None else times if over is None else len(over)
    if wanted is not None and wanted > max_rounds:
        raise ConfigurationError(f"{wanted} rounds are more than maxRounds allows: {max_rounds}")
    if over is not None:
        return [{item: one} for one in over]
    return [{}] * (wanted or 0)


def _base(ctx: Context) -> dict[str, Any]:
    parameters = host_of(ctx).parameters
    if parameters is None:
        raise ConfigurationError("the input of the host is not known here: it is too large")
    return parameters


def _fed(result: dict[str, Any], path: str) -> Any:
    value = _read(result, path)
    if value is _MISSING:
        raise DataQualityError(f"the result has nothing at {path} to feed into the next round")
    return value


def _fits(result: dict[str, Any], until: Mapping[str, Any]) -> bool:
    """Whether the value at `path` is what `until` says; without a comparison, whether it is true."""
    value = _read(result, str(until["path"]))
    if value is _MISSING:
        return False
    if "equals" in until:
        return bool(value == until["equals"])
    try:
        if "atLeast" in until:
            return bool(value >= until["atLeast"])
        if "atMost" in until:
            return bool(value <= until["atMost"])
    except TypeError:
        raise DataQualityError(f"{until['path']} cannot be compared: {value!r}") from None
    return bool(value)


def _read(result: Any, path: str) -> Any:
    value = result
    for part in path.split("."):
        if isinstance(value, Mapping) and part in value:
            value = value[part]
        elif isinstance(value, list) and part.isdecimal() and int(part) < len(value):
            value = value[int(part)]
        else:
            return _MISSING
    return value

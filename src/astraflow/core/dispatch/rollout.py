"""Bringing a version of a package to all workers, in waves.

Rule 1: a wave is a share of the workers that could take the version, the same ones in the same order each time it is
        looked at, so that a wave that was done stays done when others come and go.
Rule 2: the next wave begins when all of this one have the version, and it has been good for its time: no worker failed
        to install it, and of the attempts that ran it no more failed than is allowed.
Rule 3: nothing changes for anybody before the last wave is good: then the version becomes the active one. Versions
        live side by side, so going back is one step, and needs no worker's help.
"""

from __future__ import annotations

from math import ceil
from typing import Literal

import msgspec

__all__ = ["Health", "Rollout", "RolloutState", "Standing", "Step", "advance"]

RolloutState = Literal["running", "succeeded", "failed", "rolled_back"]


class Rollout(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A version on its way. Times are wall-clock milliseconds."""

    rollout_id: str
    tenant: str
    name: str
    version: str
    previous: str | None = None
    """The active version when it began: where a rollback goes."""
    waves: tuple[int, ...] = (10, 50, 100)
    """Shares of the workers in percent, each with those before it."""
    soak_seconds: float = 30.0
    """How long a wave must have been good before the next begins."""
    max_failed_percent: float = 10.0
    state: RolloutState = "running"
    wave: int = 0
    good_since: int | None = None
    started_at: int = 0
    updated_at: int = 0
    started_by: str = ""
    error: str = ""


class Standing(msgspec.Struct, frozen=True):
    """How a worker that could take the version stands."""

    worker_id: str
    has_version: bool
    is_wished: bool = False
    failure: str | None = None


class Health(msgspec.Struct, frozen=True):
    """Attempts of the version since the rollout began."""

    ended: int = 0
    failed: int = 0


class Step(msgspec.Struct, frozen=True):
    """What is to be done now."""

    rollout: Rollout
    install_on: tuple[str, ...] = ()
    activate: bool = False


def advance(rollout: Rollout, now_ms: int, workers: list[Standing], health: Health) -> Step:
    """Look at a rollout that is running."""
    assert rollout.state == "running"
    share = rollout.waves[rollout.wave]
    ordered = sorted(workers, key=lambda one: one.worker_id)
    chosen = ordered[: ceil(len(ordered) * share / 100)]
    problem = _problem(rollout, chosen, health)
    if problem is not None:
        return Step(_changed(rollout, now_ms, state="failed", error=problem))
    missing = [one for one in chosen if not one.has_version]
    if missing or not chosen:
        install_on = tuple(one.worker_id for one in missing if not one.is_wished)
        was_good = rollout.good_since is not None
        waiting = _changed(rollout, now_ms, good_since=None) if was_good else rollout
        return Step(waiting, install_on)
    if rollout.good_since is None:
        return Step(_changed(rollout, now_ms, good_since=now_ms))
    if now_ms < rollout.good_since + rollout.soak_seconds * 1000:
        return Step(rollout)
    if rollout.wave + 1 < len(rollout.waves):
        return Step(_changed(rollout, now_ms, wave=rollout.wave + 1, good_since=None))
    return Step(_changed(rollout, now_ms, state="succeeded"), activate=True)


def _problem(rollout: Rollout, chosen: list[Standing], health: Health) -> str | None:
    for one in chosen:
        if one.failure is not None and not one.has_version:
            return f"worker {one.worker_id} could not install it: {one.failure}"
    if health.failed and health.failed * 100 > health.ended * rollout.max_failed_percent:
        return f"{health.failed} of {health.ended} attempts of the version failed"
    return None


def _changed(rollout: Rollout, now_ms: int, **fields: object) -> Rollout:
    return msgspec.structs.replace(rollout, updated_at=now_ms, **fields)

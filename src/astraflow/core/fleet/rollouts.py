"""Rollouts: a version of a package on its way to all workers, in waves.

Rule 1: a wave is a share of the workers that could take the version, the same ones in the same order each time it is
        looked at, so that a wave that was done stays done when others come and go.
Rule 2: the next wave begins when all of this one have the version, and it has been good for its time: no worker failed
        to install it, and of the attempts that ran it no more failed than is allowed.
Rule 3: nothing changes for anybody before the last wave is good: then the version becomes the active one. Versions
        live side by side, so going back is one step, and needs no worker's help.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil
from typing import Final, Literal

import msgspec

from astraflow.core.fleet.facts import ABSENT, FleetFact, Table, find_move, rows

RolloutState = Literal["running", "succeeded", "failed", "rolled_back"]


class RolloutRecord(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
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


# -- facts ---------------------------------------------------------------------------------------


class RolloutFact(FleetFact, frozen=True):
    """The base of all facts about the rollout that runs for a package."""

    name: str


class RolloutStarted(RolloutFact, frozen=True):
    """Somebody wants a version on all workers."""

    rollout: RolloutRecord


class RolloutWaveGood(RolloutFact, frozen=True):
    """All workers of the wave have the version: its time begins."""


class RolloutWaveInterrupted(RolloutFact, frozen=True):
    """A worker of the wave lacks the version again, or there is another one."""


class RolloutWaveStarted(RolloutFact, frozen=True):
    """The wave before was good for its time."""

    wave: int


class RolloutSucceeded(RolloutFact, frozen=True):
    """The last wave was good: the version becomes the active one, in the same transaction."""


class RolloutFailed(RolloutFact, frozen=True):
    """It goes no further; what is active stays so."""

    error: str


class RolloutRolledBack(RolloutFact, frozen=True):
    """Somebody ended it."""

    by: str


# -- transitions -----------------------------------------------------------------------------------


def _started(_: RolloutRecord | None, fact: RolloutStarted) -> RolloutRecord:
    return fact.rollout


def _wave_good(rollout: RolloutRecord, fact: RolloutWaveGood) -> RolloutRecord:
    return msgspec.structs.replace(rollout, good_since=fact.at, updated_at=fact.at)


def _wave_interrupted(rollout: RolloutRecord, fact: RolloutWaveInterrupted) -> RolloutRecord:
    return msgspec.structs.replace(rollout, good_since=None, updated_at=fact.at)


def _wave_started(rollout: RolloutRecord, fact: RolloutWaveStarted) -> RolloutRecord:
    return msgspec.structs.replace(rollout, wave=fact.wave, good_since=None, updated_at=fact.at)


def _succeeded(rollout: RolloutRecord, fact: RolloutSucceeded) -> RolloutRecord:
    return msgspec.structs.replace(rollout, state="succeeded", updated_at=fact.at)


def _failed(rollout: RolloutRecord, fact: RolloutFailed) -> RolloutRecord:
    return msgspec.structs.replace(rollout, state="failed", error=fact.error, updated_at=fact.at)


def _rolled_back(rollout: RolloutRecord, fact: RolloutRolledBack) -> RolloutRecord:
    error = f"rolled back by {fact.by}"
    return msgspec.structs.replace(rollout, state="rolled_back", error=error, updated_at=fact.at)


TRANSITIONS: Final[Table] = {
    **rows((ABSENT,), RolloutStarted, _started, "running"),
    **rows(("running",), RolloutWaveGood, _wave_good),
    **rows(("running",), RolloutWaveInterrupted, _wave_interrupted),
    **rows(("running",), RolloutWaveStarted, _wave_started),
    **rows(("running",), RolloutSucceeded, _succeeded, "succeeded"),
    **rows(("running",), RolloutFailed, _failed, "failed"),
    **rows(("running",), RolloutRolledBack, _rolled_back, "rolled_back"),
}


def fold(rollout: RolloutRecord | None, fact: RolloutFact) -> RolloutRecord:
    """The rollout after a fact. Raises: NoTransition."""
    state = ABSENT if rollout is None else rollout.state
    move = find_move(TRANSITIONS, state, fact)
    after: RolloutRecord = move.apply(rollout, fact)
    assert after.state in move.to
    return after


# -- deciding ----------------------------------------------------------------------------------------


class WorkerStanding(msgspec.Struct, frozen=True):
    """How a worker that could take the version stands."""

    worker_id: str
    has_version: bool
    is_installing: bool = False
    failure: str | None = None


class RolloutHealth(msgspec.Struct):
    """Attempts of the version since the rollout began, or since this scheduler started."""

    ended: int = 0
    failed: int = 0


class RolloutStep(msgspec.Struct, frozen=True):
    """What has become true, and on which workers the version is to be installed."""

    fact: RolloutFact | None = None
    install_on: tuple[str, ...] = ()


def advance(
    rollout: RolloutRecord,
    at: int,
    workers: list[WorkerStanding],
    health: RolloutHealth,
    good_for_s: float = 0.0,
) -> RolloutStep:
    """Look at a rollout that is running. `good_for_s`: for how long its wave has been good (monotonic)."""
    assert rollout.state == "running"
    who = (rollout.tenant, at, rollout.name)
    share = rollout.waves[rollout.wave]
    ordered = sorted(workers, key=lambda one: one.worker_id)
    chosen = ordered[: ceil(len(ordered) * share / 100)]
    problem = _problem(rollout, chosen, health)
    if problem is not None:
        return RolloutStep(RolloutFailed(*who, problem))
    missing = [one for one in chosen if not one.has_version]
    if missing or not chosen:
        was_good = rollout.good_since is not None
        install_on = tuple(one.worker_id for one in missing if not one.is_installing)
        return RolloutStep(RolloutWaveInterrupted(*who) if was_good else None, install_on)
    if rollout.good_since is None:
        return RolloutStep(RolloutWaveGood(*who))
    if good_for_s < rollout.soak_seconds:
        return RolloutStep()
    if rollout.wave + 1 < len(rollout.waves):
        return RolloutStep(RolloutWaveStarted(*who, rollout.wave + 1))
    return RolloutStep(RolloutSucceeded(*who))


def _problem(
    rollout: RolloutRecord, chosen: list[WorkerStanding], health: RolloutHealth
) -> str | None:
    for one in chosen:
        if one.failure is not None and not one.has_version:
            return f"worker {one.worker_id} could not install it: {one.failure}"
    if health.failed and health.failed * 100 > health.ended * rollout.max_failed_percent:
        return f"{health.failed} of {health.ended} attempts of the version failed"
    return None


# -- the index -------------------------------------------------------------------------------------


class RolloutTable:
    """The rollouts that run, at most one for a package, and how the attempts of their versions end."""

    def __init__(self) -> None:
        self._running: dict[tuple[str, str], RolloutRecord] = {}
        self._health: dict[tuple[str, str, str], RolloutHealth] = {}
        self._good_from: dict[tuple[str, str], float] = {}  # monotonic
        self.is_watched = False  # whether a timer is set for them

    def __len__(self) -> int:
        return len(self._running)

    def __iter__(self) -> Iterator[RolloutRecord]:
        return iter(list(self._running.values()))

    def apply(self, fact: RolloutFact) -> RolloutRecord:
        """Fold a fact; returns the rollout after it, running or not."""
        after = fold(self._running.get((fact.tenant, fact.name)), fact)
        if after.state == "running":
            self.put(after)
        else:
            del self._running[fact.tenant, fact.name]
            del self._health[fact.tenant, fact.name, after.version]
            self._good_from.pop((fact.tenant, fact.name), None)
        return after

    def put(self, rollout: RolloutRecord) -> None:
        """List a rollout that runs."""
        self._running[rollout.tenant, rollout.name] = rollout
        self._health.setdefault((rollout.tenant, rollout.name, rollout.version), RolloutHealth())

    def find(self, tenant: str, name: str) -> RolloutRecord | None:
        return self._running.get((tenant, name))

    def good_for_s(self, rollout: RolloutRecord, now: float) -> float:
        """How long its wave has been good, as far as this scheduler has seen."""
        key = (rollout.tenant, rollout.name)
        if rollout.good_since is None:
            self._good_from.pop(key, None)
            return 0.0
        return now - self._good_from.setdefault(key, now)

    def health_of(self, rollout: RolloutRecord) -> RolloutHealth:
        return self._health[rollout.tenant, rollout.name, rollout.version]

    def count_end(self, tenant: str, name: str, version: str, *, is_failed: bool) -> None:
        """An attempt of a version has ended; counted if the version is on its way."""
        health = self._health.get((tenant, name, version))
        if health is not None:
            health.ended += 1
            health.failed += is_failed

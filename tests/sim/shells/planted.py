"""Bugs planted in the shells: each takes one promise away from the object under test, in a simulated world only."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch

from astraflow.core.ids import RunId
from astraflow.core.runs.facts import AttemptStarted
from astraflow.scheduler import feed as feeds
from astraflow.scheduler.feed import Feed
from astraflow.scheduler.row_writer import RowWriter
from astraflow.scheduler.tapes import Tapes
from astraflow.scheduler.writer import Writer
from astraflow.store.rows import Changes
from astraflow.worker.agent_runner import AgentRunner
from tests.sim.shells import planted_firing as firing
from tests.sim.shells import planted_keeping as keeping
from tests.sim.shells.config import Config, draw_plain

__all__ = ["PLANTED", "Planted"]


@dataclass(frozen=True)
class Planted:
    """A bug, what its world needs to show it, and what may notice it."""

    plant: Callable[[], AbstractContextManager[Any]]
    caught_by: tuple[str, ...]
    faults: tuple[str, ...] = ()
    overrides: dict[str, Any] = field(default_factory=dict)

    def config(self, seed: int) -> Config:
        drawn = draw_plain(seed)
        return drawn.with_(faults=(*drawn.faults, *self.faults), **self.overrides)


def speakfirst() -> AbstractContextManager[Any]:
    """What follows from a batch is said before the batch is committed."""
    commit = Writer._commit

    async def broken(self: Writer, changes: Changes) -> None:
        self.engine.committed(self._planted, self._clock.now(), self._clock.wall_ms())  # type: ignore[attr-defined]
        self._planted.effects.clear()  # type: ignore[attr-defined]
        self._planted.delivered.clear()  # type: ignore[attr-defined]
        self._speak()
        await commit(self, changes)

    changes_of = RowWriter.changes_of

    def remember(self: RowWriter, batch: Any) -> Changes:
        # The batch is handed on by way of the row writer: the writer keeps it to itself.
        self._batch = batch  # type: ignore[attr-defined]
        return changes_of(self, batch)

    planted = property(lambda self: self.rows._batch)
    return _All(
        patch.object(Writer, "_commit", broken),
        patch.object(RowWriter, "changes_of", remember),
        patch.object(Writer, "_planted", planted, create=True),
    )


def publishfirst() -> AbstractContextManager[Any]:
    """Followers are told of what is only about to be committed."""
    commit = Writer._commit

    async def broken(self: Writer, changes: Changes) -> None:
        self.feed.publish(changes.segments, changes.events)
        await commit(self, changes)

    return patch.object(Writer, "_commit", broken)


def tapefirst() -> AbstractContextManager[Any]:
    """A run in memory has what is only about to be committed, and whoever opens its events then is told it."""
    commit, add = Writer._commit, Tapes.add

    async def broken(self: Writer, changes: Changes) -> None:
        for segment in changes.segments:
            add(self.feed.tapes, segment)
        await commit(self, changes)

    def once(self: Tapes, segment: Any) -> None:
        tape = self._tapes.get(segment.run_id)
        if tape is None or segment not in tape.segments:
            add(self, segment)

    return _All(patch.object(Writer, "_commit", broken), patch.object(Tapes, "add", once))


def waitsforever() -> AbstractContextManager[Any]:
    """What waits for company is not looked at again unless something comes."""

    def broken(self: Writer) -> None:
        self._due = self.engine.deadline()
        self._timer.set(self._due)

    return patch.object(Writer, "_set_timer", broken)


def dropswaiting() -> AbstractContextManager[Any]:
    """What waited for company is left out of the batch that it goes with."""
    lets_wait = Writer._lets_wait

    def broken(self: Writer) -> bool:
        was_waiting = self._wait_until is not None
        is_waiting = lets_wait(self)
        if was_waiting and not is_waiting:
            facts = self.engine.view.batch.facts
            facts[:] = [one for one in facts if type(one.fact) is not AttemptStarted]
        return is_waiting

    return patch.object(Writer, "_lets_wait", broken)


def lostwakeup() -> AbstractContextManager[Any]:
    """What arrives while the writer commits does not count as a reason to go on."""
    turn = Writer._turn

    async def broken(self: Writer) -> None:
        await turn(self)
        self._has_work = False

    return patch.object(Writer, "_turn", broken)


def subscribelate() -> AbstractContextManager[Any]:
    """A follower reads the store first and subscribes afterwards."""

    async def broken(self: Feed, run_id: str, after: int) -> AsyncGenerator[Any, None]:
        while stored := await self._store.read_segments(RunId(run_id), after, feeds.READ_BYTES):
            after = stored[-1].last
            yield stored
        with self.subscribed(feeds.Subscription(), (RunId(run_id),)) as subscription:
            while not subscription.is_over:
                fresh = [page for page in await subscription.take() if page.last > after]
                if fresh:
                    after = fresh[-1].last
                    yield fresh

    return patch.object(Feed, "segments", broken)


def nobarrier() -> AbstractContextManager[Any]:
    """A view is given out before what it shows is durable."""

    async def broken(self: Writer) -> None:
        await asyncio.sleep(0)

    return patch.object(Writer, "barrier", broken)


def unknownisdone() -> AbstractContextManager[Any]:
    """A commit whose outcome is unknown is taken for done (against R16)."""

    async def broken(self: Writer) -> bool:
        return True

    return patch.object(Writer, "_read_back", broken)


def keepsfollowers() -> AbstractContextManager[Any]:
    """Followers are not let go when serving ends, and wait for what nobody will tell."""

    def broken(self: Feed) -> None:
        """Forgets to end them."""

    return patch.object(Feed, "end", broken)


def deaflink() -> AbstractContextManager[Any]:
    """A link that is told of the end of an attempt does not act on it."""

    def broken(self: AgentRunner, result: Any) -> None:
        self.agent.finished(result, self._clock.now())

    return patch.object(AgentRunner, "finished", broken)


class _All:
    """Several patches as one."""

    def __init__(self, *patches: AbstractContextManager[Any]) -> None:
        self._patches = patches

    def __enter__(self) -> None:
        for one in self._patches:
            one.__enter__()

    def __exit__(self, *error: Any) -> None:
        for one in reversed(self._patches):
            one.__exit__(*error)


_SLOW = {"commit_delay_s": 0.2}
_RESOURCES = {"resources": True, "runs": 4, "tasks": 6, "handlers": ("ok", "slow", "flaky")}
_COPIES = {**_RESOURCES, "copies": True, "workers": 2, "tenants": 1}
_PACKAGES = {"packages": True, "handlers": ("ok", "slow")}
_ROLLOUTS = {"rollouts": True, "workers": 2, "tenants": 1}
_REMOVALS = {**_ROLLOUTS, **_PACKAGES, "removals": True, "runs": 3, "tasks": 5}
_TRIGGERS = {"triggers": True, "commit_fault": 0.05}
_CRASHES = ("scheduler_crash", "commit", "clock")

PLANTED: dict[str, Planted] = {
    "speakfirst": Planted(speakfirst, ("I7", "I10", "I12", "I14", "crash"), (), _SLOW),
    "publishfirst": Planted(publishfirst, ("I20",), (), _SLOW),
    "tapefirst": Planted(tapefirst, ("I20",), (), _SLOW),
    "waitsforever": Planted(waitsforever, ("wake-up",)),
    "dropswaiting": Planted(dropswaiting, ("I7", "I10", "I12", "I20", "I24", "crash")),
    "lostwakeup": Planted(lostwakeup, ("wake-up",), (), _SLOW),
    "subscribelate": Planted(subscribelate, ("I20", "I24"), ("slow_read",), {"read_delay_s": 0.5}),
    "nobarrier": Planted(nobarrier, ("I20",), (), _SLOW),
    "unknownisdone": Planted(
        unknownisdone, ("I7", "I10", "I12", "I20", "I24", "crash"), ("commit",),
        {"commit_fault": 0.05},
    ),
    "keepsfollowers": Planted(keepsfollowers, ("I20", "I24", "left"), ("commit",), {"commit_fault": 0.05}),
    "deaflink": Planted(deaflink, ("wake-up",)),
    "copyearly": Planted(keeping.copyearly, ("I12",), (), {**_COPIES, **_SLOW}),
    "rowbeforeblob": Planted(keeping.rowbeforeblob, ("I20",), (), _COPIES),
    "releaseuntold": Planted(keeping.releaseuntold, ("I18", "I20"), (), _RESOURCES),
    "exporthides": Planted(keeping.exporthides, ("I18",), ("evict",), _COPIES),
    "installearly": Planted(keeping.installearly, ("I19",), (), _PACKAGES),
    "resourcesunread": Planted(
        keeping.resourcesunread, ("I16", "I18", "I20"), ("scheduler_crash",), _RESOURCES
    ),
    "activeearly": Planted(keeping.activeearly, ("I28",), (), {**_ROLLOUTS, **_SLOW}),
    "deafinstaller": Planted(keeping.deafinstaller, ("wake-up",), (), _REMOVALS),
    "deafpool": Planted(keeping.deafpool, ("wake-up",), (), {**_REMOVALS, "handlers": ("slow", "slow")}),
    "leasekept": Planted(keeping.leasekept, ("I18", "I20", "I24"), (), _RESOURCES),
    "fireunstored": Planted(firing.fireunstored, ("I42",), _CRASHES, _TRIGGERS),
    "slotlesskey": Planted(firing.slotlesskey, ("I43",), _CRASHES, _TRIGGERS),
    "keyperattempt": Planted(firing.keyperattempt, ("I42",), _CRASHES, _TRIGGERS),
    "nextfromnow": Planted(firing.nextfromnow, ("I43",), _CRASHES, _TRIGGERS),
    "owedforgotten": Planted(firing.owedforgotten, ("I20", "I43"), _CRASHES, _TRIGGERS),
    "overlapblind": Planted(firing.overlapblind, ("I42",), _CRASHES, _TRIGGERS),
    "endsunread": Planted(firing.endsunread, ("I24", "I43"), _CRASHES, _TRIGGERS),
    "tablestale": Planted(firing.tablestale, ("I20", "I42"), _CRASHES, _TRIGGERS),
    "hostforgotten": Planted(keeping.hostforgotten, ("I18",), ("host_crash",), _RESOURCES),
}  # fmt: skip

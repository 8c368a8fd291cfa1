"""One seed of the core world on SQLite: tier A's phases, with followers of the feed and rows that are read back."""

from __future__ import annotations

import asyncio
from contextlib import aclosing

from astraflow.core.ids import RunId
from astraflow.scheduler.ended_runs import facts_of
from astraflow.scheduler.feed import Feed
from tests.sim.config import Config, draw
from tests.sim.simulation import Outcome, Simulation, outcome_of
from tests.sim.sqlite.scheduler import SqliteSchedulerProcess
from tests.sim.sqlite.store import SqliteBackedStore, drive
from tests.sim.world import Violation

__all__ = ["SqliteSimulation", "simulate_sqlite"]

FOLLOW_EVERY_S = 4.0
TURNS = 6


class Followers:
    """One follower of each run, on whichever scheduler serves; they are let go with it and resume."""

    def __init__(self, simulation: SqliteSimulation) -> None:
        self.simulation = simulation
        self.last: dict[str, int] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def poll(self) -> None:
        self.turn()
        self.simulation.world.after(FOLLOW_EVERY_S, self.poll)

    def resume(self) -> None:
        """Break every stream once more, and let it be resumed on a scheduler that knows nothing but the store."""
        self.end()
        self.turn(Feed(self.simulation.store.sqlite))

    def turn(self, feed: Feed | None = None) -> None:
        """Let every follower take what there is."""
        store = self.simulation.store
        feed = feed or self._feed()
        if feed is not None:
            for run_id in store.runs:
                task = self._tasks.get(run_id)
                if task is None or task.done():
                    self._tasks[run_id] = store.loop.create_task(self._follow(feed, run_id))
        for _ in range(TURNS):
            store.loop.run_until_complete(asyncio.sleep(0))
        for task in self._tasks.values():
            if task.done() and not task.cancelled() and task.exception() is not None:
                raise task.exception()  # type: ignore[misc]

    def _feed(self) -> Feed | None:
        for one in self.simulation.schedulers:
            assert isinstance(one, SqliteSchedulerProcess)
            if one.engine is not None and one.engine.ownership.epoch == one.store.epoch:
                return one.feed
        return None

    async def _follow(self, feed: Feed, run_id: str) -> None:
        async with aclosing(feed.segments(RunId(run_id), self.last.get(run_id, 0))) as batches:
            async for pages in batches:
                for page in pages:
                    last = self.last.get(run_id, 0)
                    if page.first != last + 1:
                        raise Violation("I20", f"{run_id}: a page from {page.first} on {last}")
                    if page.last > self.simulation.store.mirror.runs[run_id].last_event:
                        raise Violation("I20", f"{run_id}: {page.last} was told before its commit")
                    self.last[run_id] = page.last
        self.simulation.world.sometimes("follower let go")

    def end(self) -> None:
        loop = self.simulation.store.loop
        left = [task for task in self._tasks.values() if not task.done()]
        for task in left:
            task.cancel()
        if left:
            loop.run_until_complete(asyncio.wait(left))


class SqliteSimulation(Simulation):
    """The world of one configuration, on SQLite."""

    store_class = SqliteBackedStore
    scheduler_class = SqliteSchedulerProcess
    store: SqliteBackedStore

    def __init__(self, config: Config, *, keep_transcript: bool = False) -> None:
        super().__init__(config, keep_transcript=keep_transcript)
        self.followers = Followers(self)

    def run(self) -> None:
        self.world.after(FOLLOW_EVERY_S, self.followers.poll)
        try:
            super().run()
            self._check_rows()
        finally:
            self.followers.end()
            self.store.shut()

    def _check_rows(self) -> None:
        """What SQLite holds now, read back with its own queries, is what was committed."""
        store, sqlite = self.store, self.store.sqlite
        self.followers.resume()
        if drive(sqlite.active_runs()):
            raise Violation("I20", "rows of ended runs say that they are active")
        if drive(sqlite.event_heads()) != store.mirror.heads:
            raise Violation("I20", "the streams of tenants do not end where they should")
        for run_id, stored in store.runs.items():
            tenant = self.checkers.state.tenant_of(run_id)
            row = drive(sqlite.find_run(tenant, RunId(run_id)))
            if row is None:
                raise Violation("I7", f"{run_id} has no row")
            difference = store.mirror.rows[run_id].differs(row)
            if difference is not None:
                raise Violation("I20", f"the row of {run_id}: {difference}")
            pages = drive(sqlite.read_segments(RunId(run_id), 0, 1 << 40))
            read = [(one.first, one.fact) for page in pages for one in facts_of(page)]
            if read != [(one.first, one.fact) for one in stored.facts]:
                raise Violation("I20", f"the segments of {run_id} are not its facts")
            if self.followers.last.get(run_id) != pages[-1].last:
                raise Violation("I20", f"the follower of {run_id} has not seen its end")


def simulate_sqlite(
    seed: int, config: Config | None = None, *, keep_transcript: bool = False
) -> Outcome:
    """Run one seed to its end."""
    return outcome_of(SqliteSimulation(config or draw(seed), keep_transcript=keep_transcript))

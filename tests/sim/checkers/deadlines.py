"""Deadlines of runs: I31."""

from __future__ import annotations

from typing import TYPE_CHECKING

from astraflow.core.runs.facts import CancelRequested, CompensationBegan, RunAccepted, TaskLeased
from tests.sim.world import Violation

if TYPE_CHECKING:
    from astraflow.core.engine.batch import Batch
    from tests.sim.config import Config
    from tests.sim.store import Store
    from tests.sim.world import World

__all__ = ["DeadlineChecker"]

SLACK_S = 1.0
"""A scheduler that was held up looks at its timers when it goes on."""


class DeadlineChecker:
    """No attempt is issued after the deadline of its run, by the clock of who issues it. A scheduler counts the time
    by its own clock, which may run slow; while none is there, by the wall clock, which must not jump in between.
    """

    def __init__(self, world: World, config: Config, store: Store) -> None:
        self._world = world
        self._config = config
        self._store = store
        store.on_commit.append(self.on_commit)

    def on_commit(self, batch: Batch) -> None:
        for one in batch.facts:
            fact = one.fact
            if isinstance(fact, CancelRequested) and fact.reason == "deadline":
                self._world.sometimes("run met its deadline")
            elif isinstance(fact, TaskLeased) and not self._config.has("wall_jump"):
                self._check(one.run_id, fact)

    def _check(self, run_id: str, fact: TaskLeased) -> None:
        run = self._store.runs[run_id]
        accepted = run.facts[0].fact
        assert isinstance(accepted, RunAccepted)
        if accepted.deadline_s is None or any(
            isinstance(one.fact, CompensationBegan) for one in run.facts
        ):
            return  # what undoes is not bound by the time of its run
        allowed_s = accepted.deadline_s * (1 + 2 * self._config.drift) + SLACK_S
        if fact.at - accepted.at > allowed_s * 1000:
            late_s = (fact.at - accepted.at) / 1000 - accepted.deadline_s
            raise Violation("I31", f"an attempt of {run_id} {late_s:.1f} s after its deadline")

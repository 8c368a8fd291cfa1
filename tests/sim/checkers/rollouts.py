"""Rollouts: I27 (each ends, one of a package at a time) and I28 (when a version becomes active).

What workers really have installed is known to the world alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from astraflow.core.fleet.rollouts import RolloutRecord
from tests.sim.world import Violation

if TYPE_CHECKING:
    from collections.abc import Callable

    from astraflow.core.engine.view import View
    from astraflow.store.rows import Changes, RolloutRow
    from tests.sim.config import Config
    from tests.sim.scheduler import SchedulerProcess
    from tests.sim.store import Store
    from tests.sim.worker import WorkerProcess
    from tests.sim.world import World

__all__ = ["RolloutChecker"]


class RolloutChecker:
    """Watches the rows of rollouts and of active versions."""

    def __init__(self, world: World, config: Config, store: Store) -> None:
        self.world = world
        self.config = config
        self.store = store
        self.workers: list[WorkerProcess] = []
        self.serving: Callable[[], SchedulerProcess | None] = lambda: None
        self._running: dict[tuple[str, str], str] = {}
        self._epochs: dict[str, int] = {}
        store.on_rows.append(self.on_rows)

    def on_rows(self, changes: Changes) -> None:
        active = {(row.tenant, row.name): row.version for row in changes.active_versions}
        for row in changes.rollouts:
            rollout = msgspec.json.decode(row.body, type=RolloutRecord)
            place = (row.tenant, row.name)
            if self._running.setdefault(place, row.rollout_id) != row.rollout_id:
                raise Violation("I27", f"two rollouts of {row.name} run at once")
            if self._epochs.setdefault(row.rollout_id, self.store.epoch) != self.store.epoch:
                self.world.sometimes("rollout went on after a restart")
            if row.state == "running":
                continue
            del self._running[place]
            self.world.sometimes(f"rollout {row.state}")
            if row.state == "succeeded" and active.get(place) != rollout.version:
                raise Violation(
                    "I28",
                    f"a rollout of {rollout.version} ended well, active is {active.get(place)}",
                )
            if not self.config.commit_delay_s:
                self._check_success(row, rollout)

    def on_decided(self, changes: Changes) -> None:
        """Where a commit takes time: what is so when it is decided may be otherwise when it is stored."""
        for row in changes.rollouts:
            self._check_success(row, msgspec.json.decode(row.body, type=RolloutRecord))

    def _check_success(self, row: RolloutRow, rollout: RolloutRecord) -> None:
        if row.state != "succeeded" or self.config.removals:
            return
        for process in self.workers:
            lacks_it = (rollout.name, rollout.version) not in process.keeping.installed
            if lacks_it and process.tenant == rollout.tenant and self._is_served(process):
                raise Violation(
                    "I28", f"{rollout.version} became active, and {process.worker_id} lacks it"
                )

    def _is_served(self, process: WorkerProcess) -> bool:
        scheduler = self.serving()
        if scheduler is None or scheduler.engine is None:
            return False
        worker = scheduler.engine.view.workers.find(process.tenant, process.worker_id)
        return worker is not None and worker.is_reachable

    def trouble(self, view: View | None) -> tuple[str, str] | None:
        """What is not as it must be once the world is healed and quiet."""
        for row in self.store.rollouts.values():
            if row.state == "running":
                return "I27", f"the rollout of {row.name} {row.rollout_id} has not ended"
        if view is None:
            return "I20", "nobody serves"
        known = {(one.tenant, one.name): one.version for one in view.versions}
        stored = {key: row.version for key, row in self.store.active_versions.items()}
        if known != stored:
            return "I20", f"the rows of active versions are not the view's: {stored} {known}"
        return None

"""An operator of a simulated site: brings versions to all workers, goes back, installs and removes by hand.

A command that meets no scheduler, or one that dies before its commit, is lost: the operator was never told that it was
done.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from astraflow.core import errors
from astraflow.core.engine.commands import (
    OperatorCommand,
    RequestInstall,
    RequestRemoval,
    RollBack,
    StartRollout,
)
from astraflow.core.fleet.rollouts import RolloutRecord
from tests.sim.config import TENANTS
from tests.sim.keeping import EXTRA, NEXT

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.sim.config import Config
    from tests.sim.scheduler import SchedulerProcess
    from tests.sim.world import World

__all__ = ["Operator"]

COMMANDS = 8


class Operator:
    """Sends commands while the world is breaking."""

    def __init__(
        self, world: World, config: Config, schedulers: Callable[[], SchedulerProcess | None]
    ) -> None:
        self.world = world
        self.config = config
        self.schedulers = schedulers

    def start(self) -> None:
        if not self.config.rollouts:
            return
        for _ in range(COMMANDS):
            when = self.world.rng.random() * self.config.fault_phase_s * 0.9
            self.world.after(when, self._send)

    def _send(self) -> None:
        scheduler = self.schedulers()
        if scheduler is None:
            return
        command = self._draw()
        try:
            scheduler.execute(command)
        except errors.AstraflowError as refused:
            self.world.log(f"{type(command).__name__} is refused: {refused.message}")

    def _draw(self) -> OperatorCommand:
        rng = self.world.rng
        tenant = TENANTS[rng.randrange(self.config.tenants)]
        name, version = rng.choice((EXTRA, NEXT))
        chance = rng.random()
        if chance < 0.6:
            rollout = RolloutRecord(
                rollout_id=self.world.new_id(),
                tenant=tenant,
                name=name,
                version=version,
                waves=rng.choice(((100,), (50, 100))),
                soak_seconds=rng.choice((0.0, 2.0)),
                max_failed_percent=rng.choice((10.0, 100.0)),
            )
            return StartRollout(tenant=tenant, rollout=rollout)
        if chance < 0.7 or not self.config.removals:
            return RollBack(tenant=tenant, name=name)
        worker_id = self.config.worker_id(rng.randrange(self.config.workers))
        kind = RequestRemoval if chance < 0.9 else RequestInstall
        return kind(tenant=tenant, worker_id=worker_id, name=name, version=version)

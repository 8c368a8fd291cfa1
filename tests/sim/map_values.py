"""The blob store of a simulated scheduler, as maps use it: slow, and now and then without what was stored."""

from __future__ import annotations

from typing import TYPE_CHECKING

from astraflow.core import errors
from astraflow.core.engine.commands import NoteList, NoteValue, OperatorCommand
from astraflow.core.engine.effects import ReadList, StoreValue
from astraflow.core.runs.facts import TaskFailure

if TYPE_CHECKING:
    from tests.sim.scheduler import SchedulerProcess
    from tests.sim.store import Store
    from tests.sim.world import World

__all__ = ["MapValues"]

SECONDS = 0.5
LOST = TaskFailure(errors.RESOURCE_LOST.code, "INFRASTRUCTURE", "the blob is gone")


class MapValues:
    """What the shell does for maps. A scheduler that dies on the way has told the engine nothing."""

    def __init__(self, world: World, store: Store) -> None:
        self._world = world
        self._store = store

    def perform(self, scheduler: SchedulerProcess, effect: StoreValue | ReadList) -> None:
        act = self._store_value if isinstance(effect, StoreValue) else self._read_list
        delay = self._world.delay(SECONDS)
        self._world.after(delay, act, scheduler, scheduler.life, effect)

    def _store_value(self, scheduler: SchedulerProcess, life: int, effect: StoreValue) -> None:
        copy = self._world.new_id()
        self._store.copies[copy] = effect.value
        self._store.blobs[effect.run_id, effect.task] = effect.value
        command = NoteValue(
            tenant=effect.tenant,
            run_id=effect.run_id,
            task=effect.task,
            size_bytes=len(effect.value),
            blob=copy,
        )
        self._world.after(self._world.delay(SECONDS), self._tell, scheduler, life, command)

    def _read_list(self, scheduler: SchedulerProcess, life: int, effect: ReadList) -> None:
        is_lost = effect.copy is None or (not self._store.is_healed and self._world.chance(0.15))
        if is_lost:
            self._world.sometimes("stored list lost")
        command = NoteList(
            tenant=effect.tenant,
            run_id=effect.run_id,
            task=effect.task,
            resource_id=effect.resource_id,
            items=b"" if effect.copy is None or is_lost else self._store.copies[effect.copy],
            failure=LOST if is_lost else None,
        )
        self._tell(scheduler, life, command)

    def _tell(self, scheduler: SchedulerProcess, life: int, command: OperatorCommand) -> None:
        if scheduler.life != life:
            return
        if scheduler.is_paused:
            self._world.after(0.2, self._tell, scheduler, life, command)
            return
        try:
            scheduler.execute(command)
        except errors.NotFound:
            self._world.sometimes("value of a run that has ended")

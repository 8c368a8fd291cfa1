"""The store of a world of shells: one memory that survives, seen by each scheduler through a handle of its own.

A handle dies with its process: what it still tries then has no effect, as nothing a dead process tries has.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeVar

from astraflow.core import errors
from astraflow.core.errors import OutcomeUnknown, StoreError
from astraflow.store.memory import MemoryStore
from tests.sim.world import Violation

if TYPE_CHECKING:
    from astraflow.store.rows import Changes, WorkflowRow
    from astraflow.store.store import Claim
    from astraflow.store.trigger_changes import TriggerChanges
    from tests.sim.loop import LoopClock
    from tests.sim.mirror import Mirror
    from tests.sim.shells.config import Config
    from tests.sim.shells.world import LoopWorld

__all__ = ["Disk", "Handle"]

Answer = TypeVar("Answer")

CLAIM_TTL_S = 6.0
GONE_S = 2.0
"""As on PostgreSQL: a claim whose owner cannot be reached is free so long after its last renewal."""
_FAULTS = ("unavailable", "full", "unknown, written", "unknown, lost")


class Disk:
    """What survives, and how it fails."""

    def __init__(self, world: LoopWorld, config: Config, clock: LoopClock, mirror: Mirror) -> None:
        ttl = {"clock": clock, "ttl_s": CLAIM_TTL_S} if config.has("standby") else {}
        self.store = MemoryStore(**ttl)  # type: ignore[arg-type]
        self.world = world
        self.config = config
        self.mirror = mirror
        self.is_healed = False
        self.violation: Violation | None = None
        self.out_until = 0.0
        self.on_triggers: list[Callable[[int, TriggerChanges], None]] = []
        """Told of what was written of triggers, with the epoch of who wrote it."""
        self._holder: tuple[Handle, Claim] | None = None
        self._renewed_at = 0.0

    async def claim(self, handle: Handle, owner: str) -> Claim | None:
        """A claim, early when the connection of its owner is gone, though the owner may believe in it."""
        if self._holder is not None and self.store.database.ttl_s is not None:
            holder, claim = self._holder
            if holder.is_gone() and self.world.now - self._renewed_at >= GONE_S:
                if self.store.database.until > self.world.now:
                    self.world.sometimes("claimed early")
                await self.store.release(claim)
        claimed = await self.store.claim(owner)
        if claimed is not None:
            self._holder, self._renewed_at = (handle, claimed), self.world.now
        return claimed

    async def renew(self, claim: Claim) -> bool:
        is_ours = await self.store.renew(claim)
        if is_ours:
            self._renewed_at = self.world.now
        return is_ours

    @property
    def epoch(self) -> int:
        """Of whoever holds the claim, as the store has it."""
        return 0 if self._holder is None else self._holder[1].epoch

    @property
    def is_out(self) -> bool:
        return self.world.now < self.out_until

    def draw_fault(self) -> str | None:
        if self.is_healed or not self.world.chance(self.config.commit_fault):
            return None
        return self.world.rng.choice(_FAULTS)

    async def wait(self, mean_s: float) -> None:
        seconds = 0.0005 if self.is_healed else self.world.delay(mean_s)
        await asyncio.sleep(seconds)

    def heal(self) -> None:
        self.is_healed = True
        self.out_until = 0.0


class Handle:
    """The store as one process of a scheduler sees it. Everything that is not here goes to the memory, late."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self.is_dead = False
        self.is_committing = False
        self.cut_off_until = 0.0

    def kill(self) -> None:
        self.is_dead = True

    def is_gone(self) -> bool:
        """Whether its connection is, as the server sees it."""
        return self.is_dead or self._disk.world.now < self.cut_off_until

    async def open(self) -> None:
        pass

    async def close(self) -> None:
        pass

    async def release(self, claim: Claim) -> None:
        if not self.is_dead:
            self._reach()
            await self._disk.store.release(claim)

    async def commit(self, claim: Claim, number: int, changes: Changes) -> None:
        disk = self._disk
        await self._write(
            lambda: disk.store.commit(claim, number, changes),
            lambda: disk.mirror.written(claim.epoch, number, changes),
        )

    async def change_triggers(self, claim: Claim, changes: TriggerChanges) -> None:
        await self._write(
            lambda: self._disk.store.change_triggers(claim, changes),
            lambda: self._triggers_written(claim, changes),
        )

    async def put_workflow(
        self, claim: Claim, row: WorkflowRow, *, triggers: TriggerChanges, **how: Any
    ) -> None:
        await self._write(
            lambda: self._disk.store.put_workflow(claim, row, triggers=triggers, **how),
            lambda: self._triggers_written(claim, triggers),
        )

    def _triggers_written(self, claim: Claim, changes: TriggerChanges) -> None:
        for listener in self._disk.on_triggers:
            listener(claim.epoch, changes)

    async def _write(self, write: Callable[[], Awaitable[None]], tell: Callable[[], None]) -> None:
        """A transaction, with what may happen to one; `tell`: what was really written is told to the checkers."""
        disk = self._disk
        self.is_committing = True
        try:
            await disk.wait(disk.config.commit_delay_s)
            self._reach()
            fault = disk.draw_fault()
            if fault == "unavailable":
                raise StoreError(errors.STORE_UNAVAILABLE, "planted: the store does not answer")
            if fault == "full":
                raise StoreError(errors.STORE_FULL, "planted: the disk is full")
            if fault == "unknown, lost":
                disk.world.sometimes("commit unknown")
                raise OutcomeUnknown(errors.STORE_UNAVAILABLE, "planted: no answer")
            await write()
            try:
                tell()
            except Violation as broken:
                # A scheduler takes it for a failure of its own.
                disk.violation = disk.violation or broken
                raise
            await disk.wait(disk.config.commit_delay_s)
            if fault is not None:
                disk.world.sometimes("commit unknown")
                raise OutcomeUnknown(errors.STORE_UNAVAILABLE, "planted: no answer")
        finally:
            self.is_committing = False

    async def claim(self, owner: str) -> Claim | None:
        return await self._call(lambda: self._disk.claim(self, owner))

    async def renew(self, claim: Claim) -> bool:
        return await self._call(lambda: self._disk.renew(claim))

    def __getattr__(self, name: str) -> Callable[..., Awaitable[Any]]:
        method = getattr(self._disk.store, name)

        async def call(*args: Any, **named: Any) -> Any:
            return await self._call(lambda: method(*args, **named))

        return call

    async def _call(self, ask: Callable[[], Awaitable[Answer]]) -> Answer:
        disk = self._disk
        await disk.wait(disk.config.read_delay_s)
        self._reach()
        answer = await ask()
        await disk.wait(disk.config.read_delay_s)
        self._reach()
        return answer

    def _reach(self) -> None:
        disk = self._disk
        if self.is_dead or disk.is_out or disk.world.now < self.cut_off_until:
            raise StoreError(errors.STORE_UNAVAILABLE, "planted: the store cannot be reached")

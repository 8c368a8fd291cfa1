"""What a scheduler does with its claim."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from astraflow.clock import SystemClock
from astraflow.config import SchedulerSettings, Secret
from astraflow.core import errors
from astraflow.core.errors import StoreError
from astraflow.core.security.bearer import ApiTokens
from astraflow.observe.metrics import Metrics
from astraflow.scheduler import lifecycle
from astraflow.scheduler.assembly import assemble
from astraflow.store.memory import MemoryStore
from astraflow.store.store import Claim, Store
from tests.faulty_store import FaultyStore


class OnceAway(FaultyStore):
    """A store of which one kind of rows cannot be read once."""

    def __init__(self, store: Store, read: str) -> None:
        super().__init__(store)
        self.read = read
        self.claimed: list[int] = []
        self.released: list[int] = []

    def __getattr__(self, name: str) -> Any:
        if name == self.read:
            self.read = ""
            return self._fail
        return super().__getattr__(name)

    async def _fail(self, *_: object) -> None:
        raise StoreError(errors.STORE_UNAVAILABLE, "away")

    async def claim(self, owner: str) -> Claim | None:
        claim = await self._store.claim(owner)
        assert claim is not None
        self.claimed.append(claim.epoch)
        return claim

    async def release(self, claim: Claim) -> None:
        self.released.append(claim.epoch)
        await self._store.release(claim)


@pytest.mark.parametrize("read", ["packages", "good_tokens", "active_runs", "audit_heads"])
async def test_a_claim_under_which_nothing_could_be_restored_is_given_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, read: str
) -> None:
    """Or nobody could have the shard until the claim has run out: its owner waits for its turn again."""
    monkeypatch.setattr(lifecycle, "START_OVER_S", 0.0)
    store: Any = OnceAway(MemoryStore(), read)
    scheduler = assemble(
        SchedulerSettings(data_dir=tmp_path, shipped_packages=False),
        store=store,
        clock=SystemClock(),
        secret=Secret("a secret for tests only"),
        tokens=ApiTokens(),
        metrics=Metrics(),
    )
    running = asyncio.create_task(scheduler.run())
    await scheduler.ready.wait()
    assert store.released == store.claimed[:1]
    assert len(store.claimed) == 2
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert store.released == store.claimed

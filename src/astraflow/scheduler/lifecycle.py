"""The life cycle of a scheduler, from start to stop.

Rule 1: it serves under one claim at a time. When the store fails it discards everything and restarts from what is
        stored; meanwhile it says that it is not ready, and why.
Rule 2: a failure that an operator must look at ends it: a disk that cannot flush is not tried again.
Rule 3: where several nodes share a store, it claims its shard only in its turn, and gives it back when it is told to
        (`shard_turns.py`).
Rule 4: an engine that failed is restored from the store. If it is known at what it failed, that is kept out
        (`frame_quarantine.py`); if not, and it happens again and again, the scheduler ends.
Rule 5: a scheduler that ends because of what its shard has stored notes it in the store first, while the claim is its
        own: whoever claims the shard next must know (`core.cluster.parking`).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from astraflow.core import errors
from astraflow.scheduler.blob_services import BlobServices
from astraflow.scheduler.credentials import Credentials
from astraflow.scheduler.current import Current
from astraflow.scheduler.feed import Feed
from astraflow.scheduler.frame_quarantine import FrameQuarantine
from astraflow.scheduler.lane_tending import LaneTending
from astraflow.scheduler.plans import Plans
from astraflow.scheduler.restored_store import wait_after_restore
from astraflow.scheduler.secret_vault import SecretVault
from astraflow.scheduler.serving import Parts, Serving, open_serving
from astraflow.scheduler.shard_turns import GivenBack, ShardTurns
from astraflow.scheduler.shell_effects import ShellEffects
from astraflow.scheduler.trigger_services import TriggerServices
from astraflow.scheduler.writer import EngineFailed

if TYPE_CHECKING:
    from astraflow.store.store import Claim

_log: Final = logging.getLogger(__name__)

CLAIM_RETRY_S: Final = 0.25
"""How often a scheduler without the claim asks for it: the least that a take-over takes, and a statement that changes
nothing."""
START_OVER_S: Final = 1.0
"""Before a scheduler whose store failed tries again."""

MAX_FAILURES: Final = 5
"""Engines that may fail in a row for no known reason before the scheduler ends."""
FAILURES_APART_S: Final = 60.0
"""An engine that has served for so long begins a new row."""

PASSING: Final = frozenset(
    {errors.STORE_UNAVAILABLE.code, errors.STORE_FENCED.code, errors.STORE_FULL.code}
)
"""Failures of a store that may be over when it is asked again. A disk that fails to flush is not among them: what it
holds is unknown, and only an operator can say."""


class Lifecycle:
    """Start it with `run`."""

    def __init__(
        self,
        parts: Parts,
        current: Current,
        plans: Plans,
        feed: Feed,
        effects: ShellEffects,
        credentials: Credentials,
        blobs: BlobServices | None = None,
        vault: SecretVault | None = None,
        triggers: TriggerServices | None = None,
        turns: ShardTurns | None = None,
    ) -> None:
        self._parts = parts
        self._current = current
        self._plans = plans
        self._feed = feed
        self._effects = effects
        self._credentials = credentials
        self._blobs = blobs
        self._vault = vault
        self._triggers = triggers
        self._turns = turns
        self._quarantine = FrameQuarantine()
        self._failures = 0
        self.ready = asyncio.Event()

    async def run(self) -> None:
        """Open the store and serve until cancelled.

        Raises:
            StoreError: the store cannot be used, and waiting will not help.
        """
        store = self._parts.store
        await store.open()
        try:
            if self._blobs is not None:
                await self._blobs.check_location()  # one that could not take over says so now
            while True:
                await self._serve()
        finally:
            await store.close()

    async def _serve(self) -> None:
        parts = self._parts
        began = parts.clock.now()
        try:
            if self._turns is not None:
                await self._turns.wait()
            claim = await parts.store.claim(parts.scheduler_id)
            if claim is None:
                await self._stand_by()
                return
            try:
                await self._serve_under(claim, began)
            finally:
                # Also if it never served: others must not wait until the claim has run out. One that cannot be given
                # back does; the failure, or the cancel, is what counts here.
                with suppress(errors.StoreError):
                    await parts.store.release(claim)
        except GivenBack as gave:
            self._current.explain(str(gave))
        except EngineFailed as failure:
            await self._after_failure(failure)
        except errors.StoreError as error:
            if error.code.code not in PASSING:
                raise
            self._current.explain(f"the store failed: {error.message}")
            _log.warning(
                "restarting from the store: %s", error.message, extra={"code": error.code.code}
            )
            await asyncio.sleep(START_OVER_S)
        except errors.Unavailable as error:  # what is needed before it serves: the master key
            self._current.explain(error.message)
            _log.warning("cannot serve yet: %s", error.message, extra={"code": error.code.code})
            await asyncio.sleep(START_OVER_S)

    async def _serve_under(self, claim: Claim, began: float) -> None:
        """Serve until the store fails, or the shard is given back. Raises: StoreError, EngineFailed, GivenBack."""
        parts = self._parts
        await wait_after_restore(parts, claim, self._current)
        if self._blobs is not None:
            await self._blobs.begin(claim)
        await self._credentials.load()
        if self._vault is not None:
            await self._vault.load(claim)
        if self._triggers is not None:
            await self._triggers.table.load()
        serving = await self._restore(claim)
        _log.info("serving shard %d with epoch %d", claim.shard, claim.epoch)
        self._current.begin(serving)
        self._feed.begin()
        self.ready.set()
        try:
            blobs = [] if self._blobs is None else [self._blobs.tend(claim)]
            triggers = [] if self._triggers is None else self._triggers.tend()
            turns = [] if self._turns is None else [self._turns.until_given()]
            lanes = self._lanes_of(serving)
            await serving.run(self._credentials.tend(), *blobs, *triggers, *turns, *lanes)
        except EngineFailed as failure:
            await self._count_failure(failure, claim, parts.clock.now() - began)
            raise
        finally:
            self._current.end()
            if self._blobs is not None:
                self._blobs.end()
            self.ready.clear()
            parts.gauge.forget()
            parts.traces.forget()

    async def _restore(self, claim: Claim) -> Serving:
        try:
            return await open_serving(
                self._parts, claim, self._plans, self._feed, self._effects, self._quarantine
            )
        except errors.StoreError:
            raise
        except Exception:
            await self._note_loss(claim)  # what is stored cannot be restored: this ends the process
            raise

    async def _note_loss(self, claim: Claim) -> None:
        cluster = self._parts.cluster
        if cluster is None:
            return
        _log.error("shard %d ends this scheduler: it is noted against the shard", claim.shard)
        with suppress(errors.StoreError):
            await cluster.note_loss(claim)

    def _lanes_of(self, serving: Serving) -> list[Coroutine[None, None, None]]:
        cluster = self._parts.cluster
        if cluster is None:
            return []
        return [LaneTending(self._parts, cluster, serving.writer, self._credentials).run()]

    async def _stand_by(self) -> None:
        problem = f"waiting for the claim held by {await self._parts.store.owner()}"
        if self._current.explain(problem):
            _log.info("%s", problem)
        await asyncio.sleep(CLAIM_RETRY_S)

    async def _count_failure(self, failure: EngineFailed, claim: Claim, served_s: float) -> None:
        if failure.is_known:
            return
        self._failures = 1 if served_s >= FAILURES_APART_S else self._failures + 1
        if self._failures >= MAX_FAILURES:
            await self._note_loss(claim)

    async def _after_failure(self, failure: EngineFailed) -> None:
        """Go on with another engine, unless that leads nowhere."""
        self._current.explain("an engine failed: restarting from the store")
        if failure.is_known:
            return
        if self._failures >= MAX_FAILURES:
            raise failure
        await asyncio.sleep(START_OVER_S)

"""The life of a scheduler, from start to stop.

Rule 1: it serves under one claim at a time. When the store fails it lets everything go and starts over from what is
        stored; meanwhile it says that it is not ready, and why.
Rule 2: a failure that an operator must look at ends it: a disk that cannot flush is not tried again.
Rule 3: an engine that failed is made anew from what is stored. If it is known at what it failed, that is kept out
        (`suspects.py`); if not, and it happens again and again, the scheduler ends.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Coroutine
from contextlib import suppress
from typing import Final

from astraflow.core import errors
from astraflow.core.engine.view import View
from astraflow.core.workflow import decode_manifest, validate_manifest
from astraflow.scheduler.archive import Archive
from astraflow.scheduler.catalogs import Catalogs
from astraflow.scheduler.connections import Connection
from astraflow.scheduler.depot import Depot
from astraflow.scheduler.feed import Feed
from astraflow.scheduler.holdings import CopiesForEngine
from astraflow.scheduler.plans import Plans
from astraflow.scheduler.rollouts import Rollouts
from astraflow.scheduler.serving import Parts, Serving, open_serving
from astraflow.scheduler.suspects import Suspects
from astraflow.scheduler.writer import EngineFailed
from astraflow.store.store import Claim

__all__ = ["Life"]

_log: Final = logging.getLogger(__name__)

CLAIM_RETRY_S: Final = 0.25
"""How often a standby asks: the least that a take-over takes, and one statement that changes nothing."""
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


class Life:
    """Start it with `run`; what needs the engine raises `Unavailable` while nothing serves."""

    def __init__(self, parts: Parts, catalogs: Catalogs, depot: Depot | None = None) -> None:
        self._parts = parts
        self.catalogs = catalogs
        self._depot = depot
        self._rollouts = (
            None
            if depot is None
            else Rollouts(parts.store, depot.repository, parts.clock, parts.ids)
        )
        self._store = parts.store
        self._plans = Plans(parts.store, catalogs)
        self._archive = Archive(parts.store, self._plans)
        self._feed = Feed(parts.store)
        self._serving: Serving | None = None
        self._suspects = Suspects()
        self._failures = 0
        self._problem: str | None = "starting"
        self.ready = asyncio.Event()

    async def run(self) -> None:
        """Open the store and serve until cancelled.

        Raises:
            StoreError: the store cannot be used, and waiting will not help.
        """
        await self._store.open()
        try:
            if self._depot is not None:
                await self._depot.check_place()  # a standby that could not serve says so now
            while True:
                await self._serve()
        finally:
            await self._store.close()

    async def _serve(self) -> None:
        parts = self._parts
        began = parts.clock.now()
        try:
            claim = await self._store.claim(parts.scheduler_id)
            if claim is None:
                await self._stand_by()
                return
            if self._depot is not None:
                await self._depot.begin(claim, self._audit)
            serving = await open_serving(parts, claim, self._plans, self._feed, self._suspects)
            await self._equip(claim, serving)
            self._serving, self._problem = serving, None
            self._feed.begin()
            self.ready.set()
            try:
                await serving.run(*self._beside())
            finally:
                self._serving = None
                if self._depot is not None:
                    self._depot.end()
                if self._rollouts is not None:
                    self._rollouts.end()
                self.ready.clear()
                parts.gauge.forget()
                # One that cannot be given back runs out by itself; the failure, or the cancel, is what counts here.
                with suppress(errors.StoreError):
                    await self._store.release(claim)
        except EngineFailed as failure:
            await self._after_failure(failure, parts.clock.now() - began)
        except errors.StoreError as error:
            if error.code.code not in PASSING:
                raise
            self._problem = f"the store failed: {error.message}"
            _log.warning("starting over: %s", error.message, extra={"code": error.code.code})
            await asyncio.sleep(START_OVER_S)

    async def _stand_by(self) -> None:
        problem = f"standby: waiting for the claim held by {await self._store.owner()}"
        if problem != self._problem:
            self._problem = problem
            _log.info("%s", problem)
        await asyncio.sleep(CLAIM_RETRY_S)

    async def _after_failure(self, failure: EngineFailed, served_s: float) -> None:
        """Go on with another engine, unless that leads nowhere."""
        self._problem = "an engine failed: starting over"
        if failure.is_known:
            return
        self._failures = 1 if served_s >= FAILURES_APART_S else self._failures + 1
        if self._failures >= MAX_FAILURES:
            raise failure
        await asyncio.sleep(START_OVER_S)

    def end_streams(self) -> None:
        """Let everybody go who follows something: the process is about to end, and they can resume."""
        self._feed.end()

    async def _equip(self, claim: Claim, serving: Serving) -> None:
        """Give the engine what it asks about packages, and tell it of copies."""
        view = serving.engine.view
        view.learn = self._learn
        if self._depot is None or self._rollouts is None:
            return
        view.sources = self._depot.repository.find_source
        view.copies = CopiesForEngine(self._depot.copies)
        await self._rollouts.begin(claim, serving.writer)

    def _learn(self, tenant: str, _told_digest: str, raw: bytes) -> None:
        """A worker tells of a package that it has. What cannot be taken is the worker's own business."""
        # Our own digest: a worker that lies about it would keep the true manifest of others out.
        digest = hashlib.sha256(raw).hexdigest()
        try:
            manifest = decode_manifest(raw)
            problems = validate_manifest(manifest)
            ignored = problems[0].message if problems else None
            name = manifest.name
        except errors.AstraflowError as error:
            ignored, name = error.message, "unreadable"
        else:
            ignored = ignored or self.catalogs.learn(tenant, digest, manifest)
        if ignored is not None:
            _log.info(
                "ignored a worker's manifest of %s: %s", name, ignored, extra={"tenant": tenant}
            )

    def _beside(self) -> list[Coroutine[None, None, None]]:
        if self._depot is None or self._rollouts is None:
            return []
        return [self._depot.tend(), self._rollouts.tend()]

    @property
    def rollouts(self) -> Rollouts:
        """Versions on their way to all workers.

        Raises:
            Unavailable: this scheduler was made without.
        """
        if self._rollouts is None:
            raise errors.Unavailable(errors.STORE_UNAVAILABLE, "there is no place for blobs")
        return self._rollouts

    @property
    def depot(self) -> Depot:
        """Packages and exported artifacts.

        Raises:
            Unavailable: this scheduler was made without.
        """
        if self._depot is None:
            raise errors.Unavailable(errors.STORE_UNAVAILABLE, "there is no place for blobs")
        return self._depot

    def _audit(self, tenant: str, by: str, action: str, subject: str) -> None:
        """Keep who changed something that is not the engine's."""
        writer = self.serving.writer
        writer.act(lambda now, at: writer.engine.audit(tenant, by, action, subject))

    @property
    def view(self) -> View | None:
        """What the engine that serves knows, for metrics."""
        return self._serving.engine.view if self._serving is not None else None

    def is_ready(self) -> bool:
        return self.problem() is None

    def problem(self) -> str | None:
        """Why it is not ready."""
        return self._problem if self._serving is None else self._serving.problem()

    @property
    def serving(self) -> Serving:
        """What serves now.

        Raises:
            Unavailable: nothing does.
        """
        if self._serving is None:
            raise errors.Unavailable(errors.SCHEDULER_NOT_READY, f"not ready: {self._problem}")
        return self._serving

    def connect(self, connection: Connection, certificate: object = None) -> tuple[Serving, str]:
        """A worker has opened a socket."""
        serving = self.serving
        return serving, serving.writer.opened(connection, certificate)

"""The life of a scheduler, from start to stop.

Rule 1: it serves under one claim at a time. When the store fails it lets everything go and starts over from what is
        stored; meanwhile it says that it is not ready, and why.
Rule 2: a failure that an operator must look at ends it: a disk that cannot flush is not tried again.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import Final

from astraflow import errors
from astraflow.engine.view import View
from astraflow.scheduler.archive import Archive
from astraflow.scheduler.feed import Feed
from astraflow.scheduler.plans import Plans
from astraflow.scheduler.serving import Parts, Serving, open_serving
from astraflow.scheduler.writer import Connection
from astraflow.workflow.catalog import Catalog

__all__ = ["Life"]

_log: Final = logging.getLogger(__name__)

CLAIM_RETRY_S: Final = 0.5
START_OVER_S: Final = 1.0
"""Before a scheduler whose store failed tries again."""

PASSING: Final = frozenset(
    {errors.STORE_UNAVAILABLE.code, errors.STORE_FENCED.code, errors.STORE_FULL.code}
)
"""Failures of a store that may be over when it is asked again. A disk that fails to flush is not among them: what it
holds is unknown, and only an operator can say."""


class Life:
    """Start it with `run`; what needs the store raises `Unavailable` while it is not ready."""

    def __init__(self, parts: Parts, catalog: Catalog) -> None:
        self._parts = parts
        self._catalog = catalog
        self._store = parts.store
        self._plans = Plans(parts.store, catalog)
        self._archive = Archive(parts.store, self._plans)
        self._feed = Feed(parts.store)
        self._serving: Serving | None = None
        self._problem: str | None = "starting"
        self.ready = asyncio.Event()

    async def run(self) -> None:
        """Open the store and serve until cancelled.

        Raises:
            StoreError: the store cannot be used, and waiting will not help.
        """
        await self._store.open()
        try:
            while True:
                await self._serve()
        finally:
            await self._store.close()

    async def _serve(self) -> None:
        parts = self._parts
        try:
            claim = await self._store.claim(parts.scheduler_id)
            if claim is None:
                self._problem = "another scheduler owns the store"
                await asyncio.sleep(CLAIM_RETRY_S)
                return
            serving = await open_serving(parts, claim, self._plans, self._feed)
            self._serving, self._problem = serving, None
            self._feed.begin()
            self.ready.set()
            try:
                await serving.run()
            finally:
                self._serving = None
                self.ready.clear()
                parts.gauge.forget()
                # One that cannot be given back runs out by itself; the failure, or the cancel, is what counts here.
                with suppress(errors.StoreError):
                    await self._store.release(claim)
        except errors.StoreError as error:
            if error.code.code not in PASSING:
                raise
            self._problem = f"the store failed: {error.message}"
            _log.warning("starting over: %s", error.message, extra={"code": error.code.code})
            await asyncio.sleep(START_OVER_S)

    def end_streams(self) -> None:
        """Let everybody go who follows something: the process is about to end, and they can resume."""
        self._feed.end()

    @property
    def view(self) -> View | None:
        """What the engine that serves knows, for metrics."""
        return self._serving.engine.view if self._serving is not None else None

    def is_ready(self) -> bool:
        return self._serving is not None

    def problem(self) -> str | None:
        """Why it is not ready."""
        return self._problem

    @property
    def serving(self) -> Serving:
        """What serves now.

        Raises:
            Unavailable: nothing does.
        """
        if self._serving is None:
            raise errors.Unavailable(errors.STORE_UNAVAILABLE, f"not ready: {self._problem}")
        return self._serving

    def connect(self, connection: Connection, certificate: object = None) -> tuple[Serving, str]:
        """A worker has opened a socket."""
        serving = self.serving
        return serving, serving.writer.opened(connection, certificate)

"""A scheduler and a worker in a thread of this process, for as long as a `with` block lasts.

Rule 1: nothing of it outlives the block: the store is in memory, files are in a temporary folder that goes with it.
Rule 2: settings of servers and workers in the environment do not count; neither does a configuration file.
Rule 3: nothing listens: the worker and the client reach the scheduler through memory. Package code runs in hosts of
        its own, as on any worker.
"""

from __future__ import annotations

import asyncio
import secrets
import tempfile
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Final

from astraflow.api.app import Application, make_app
from astraflow.client.blocking import Client
from astraflow.clock import SystemClock
from astraflow.config import SchedulerSettings, Secret, WorkerSettings
from astraflow.lean_httpx import httpx
from astraflow.local.link import connecting_to
from astraflow.local.transport import LocalTransport
from astraflow.observe.metrics import Metrics
from astraflow.scheduler.assembly import assemble, bootstrap_tokens
from astraflow.scheduler.service import Scheduler
from astraflow.store import open_store
from astraflow.worker.process import run_attached_worker

URL: Final = "http://localhost"
"""A name for the client. Nothing is there."""
NAME: Final = "local"


class LocalSite:
    """Use in a `with` block: it starts and ends everything."""

    def __init__(self) -> None:
        self._token = Secret(secrets.token_urlsafe(32))
        self._folder: Final = tempfile.TemporaryDirectory(prefix="astra-local-")
        self._is_ready = threading.Event()
        self._thread: Final = ThreadPoolExecutor(1, thread_name_prefix="local-site")
        self._running: Future[None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._app: Application | None = None

    def __enter__(self) -> LocalSite:
        self._running = self._thread.submit(lambda: asyncio.run(self._serve()))
        self._running.add_done_callback(lambda _: self._is_ready.set())
        self._is_ready.wait()
        if self._running.done():
            self.close()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """End everything and remove its files. Raises: what the scheduler or the worker failed with, if they did."""
        loop, stop = self._loop, self._stop
        if loop is not None and stop is not None:
            with suppress(RuntimeError):  # its loop has ended by itself
                loop.call_soon_threadsafe(stop.set)
        self._thread.shutdown()
        self._folder.cleanup()
        if self._running is not None:
            self._running.result()

    def client(self) -> Client:
        """A client of this site; it may do everything."""
        assert self._app is not None and self._loop is not None, "the site is not open"
        transport = LocalTransport(self._app, self._loop)
        return Client(URL, self._token.reveal(), transport=transport)

    async def _serve(self) -> None:
        """Wire a scheduler and a worker, and run both until the stop."""
        stop = asyncio.Event()
        folder, clock, metrics = Path(self._folder.name), SystemClock(), Metrics()
        key = Secret(secrets.token_urlsafe(32))
        settings = SchedulerSettings(data_dir=folder / "scheduler")
        scheduler = assemble(
            settings,
            store=open_store("memory://"),
            clock=clock,
            secret=key,
            tokens=bootstrap_tokens(self._token),
            metrics=metrics,
        )
        self._app = make_app(scheduler, settings, secret=key, metrics=metrics, clock=clock)
        self._loop, self._stop = asyncio.get_running_loop(), stop
        worker = WorkerSettings(
            data_dir=folder / "worker",
            auth_token=self._token,
            name=NAME,
        )
        await self._run(self._app, scheduler, worker, stop)

    async def _run(
        self, app: Application, scheduler: Scheduler, worker: WorkerSettings, stop: asyncio.Event
    ) -> None:
        serving = asyncio.create_task(scheduler.run())
        ready = asyncio.create_task(scheduler.ready.wait())
        try:
            await asyncio.wait((ready, serving), return_when=asyncio.FIRST_COMPLETED)
            if serving.done():
                await serving
            self._is_ready.set()
            transport = httpx.ASGITransport(app)
            await run_attached_worker(worker, connecting_to(scheduler), transport, stop)
        finally:
            ready.cancel()
            scheduler.end_streams()
            serving.cancel()
            with suppress(asyncio.CancelledError):
                await serving

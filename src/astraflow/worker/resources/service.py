"""The resource service of a worker: cleanup loop, commands of the scheduler, and reports to it."""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from astraflow.clock import Clock
from astraflow.config import WorkerSettings
from astraflow.core import errors
from astraflow.core.protocol import business, control
from astraflow.core.protocol.wire import Wire
from astraflow.core.timestamps import parse_iso
from astraflow.worker.addresses import Origin, absolute_url
from astraflow.worker.hosts import HostEvents
from astraflow.worker.hosts.scratch import DATA_FOLDER
from astraflow.worker.lane_hosts import PoolOfHosts
from astraflow.worker.resources.broker import RegistryBroker
from astraflow.worker.resources.copies import CopyFetcher
from astraflow.worker.resources.registry import LocalResourceRegistry
from astraflow.worker.resources.resource import refused
from astraflow.worker.resources.stored_results import UploadOutcomes
from astraflow.worker.resources.terms import ResourceLimits

if TYPE_CHECKING:
    import httpx

_log: Final = logging.getLogger(__name__)

EXPORTS_AT_ONCE: Final = 2
"""Uploads share a line; more of them at once only make each of them slower."""
MAX_EXPORTS: Final = 1_000
"""Uploads that wait. The scheduler asks again for what it misses."""

Tell = Callable[[str, str, Wire, str | None, int], None]
"""Key, frame type, payload, correlation, and the lane that is to hear it."""


class ResourceService:
    """Created before the hosts; `run` it beside the agent; `close` it after the hosts are closed.

    Reports made before it runs are sent when it runs: the newest of each resource.
    """

    def __init__(
        self,
        settings: WorkerSettings,
        folder: Path,
        worker_id: str,
        clock: Clock,
        origin: Origin,
        tls: ssl.SSLContext | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        """`transport`: what files are sent and fetched with in place of connections.

        Raises StoreError when the database cannot be opened.
        """
        self._interval_s = float(settings.resource_gc_interval_seconds)
        self._source = folder / DATA_FOLDER
        self._origin = origin
        self._tls = tls
        self._transport = transport
        self._tell_link: Tell | None = None
        self._untold: dict[tuple[str, int], business.ResourceEvent] = {}
        self._exports: asyncio.Queue[tuple[business.ResourceExport, int]] = asyncio.Queue(
            MAX_EXPORTS
        )
        self._is_due = asyncio.Event()
        self.registry = LocalResourceRegistry(
            folder,
            self._source,
            worker_id=worker_id,
            clock=clock,
            limits=ResourceLimits(
                max_disk_bytes=settings.resource_max_disk_bytes,
                max_mem_bytes=settings.resource_max_mem_bytes,
                max_sessions=settings.resource_max_sessions,
                default_ttl_s=settings.resource_default_ttl_seconds,
            ),
            tell=self._tell,
        )
        self.broker = RegistryBroker(self.registry, worker_id)
        self.uploads = UploadOutcomes()

    @property
    def folder(self) -> Path:
        """Where hosts put files to be registered."""
        return self.registry.files.root

    def close(self) -> None:
        self.registry.close()

    async def run(self, tell: Tell) -> None:
        """Clean up at intervals and upload what is asked for, until cancelled."""
        self._tell_link = tell
        untold, self._untold = self._untold, {}
        for (_, lane), event in untold.items():
            self._tell(event, lane)
        async with asyncio.TaskGroup() as group:
            group.create_task(self._clean_up())
            for _ in range(EXPORTS_AT_ONCE):
                group.create_task(self._export_all())

    def fetcher(self, hosts: PoolOfHosts, events: HostEvents) -> CopyFetcher:
        """The hosts, for attempts that may need files of workers that did not come back."""
        return CopyFetcher(
            self.registry, hosts, events, self._source, self._origin, self._tls, self._transport
        )

    def metrics(self) -> control.ResourceMetrics:
        return self.registry.metrics()

    # -- what the scheduler of a lane asks for ------------------------------------------------

    def on_cleanup(self, cleanup: business.ResourceCleanup, lane: int = 0) -> None:
        if cleanup.scope is not None:
            self.registry.release_scope(cleanup.scope, cleanup.reason)
        if cleanup.resource_id is not None:
            is_there = self.registry.evict(cleanup.resource_id, cleanup.reason)
            if not is_there:
                self._tell_gone(cleanup.resource_id, lane)
        self._is_due.set()

    def on_touch(self, touch: business.ResourceTouch, lane: int = 0) -> None:
        try:
            self.registry.touch(touch.resource_id, expires_at=parse_iso(touch.expires_at))
        except errors.AstraflowError as problem:
            _log.warning("touch of a resource failed: %s", problem.message)
            self._tell_state(touch.resource_id, lane)

    def on_export(self, export: business.ResourceExport, lane: int = 0) -> None:
        try:
            self._exports.put_nowait((export, lane))
        except asyncio.QueueFull:
            _log.warning("upload queue is full, dropped: %s", export.resource_id)

    # -- inside -----------------------------------------------------------------------------

    async def _clean_up(self) -> None:
        while True:
            try:
                async with asyncio.timeout(self._interval_s):
                    await self._is_due.wait()
            except TimeoutError:
                freed = self.registry.gc()
                if freed:
                    _log.info("reclaimed %d bytes of resources", freed)
            self._is_due.clear()
            try:
                await asyncio.to_thread(self.registry.sweeping())
            except OSError as problem:
                _log.warning("cannot delete discarded files: %s", problem)

    async def _export_all(self) -> None:
        while True:
            export, lane = await self._exports.get()
            try:
                await self._export(export, lane)
                self.uploads.ended(export.resource_id)
            except errors.AstraflowError as problem:
                self.uploads.ended(export.resource_id, problem.message)
                _log.warning("upload of %s failed: %s", export.resource_id, problem.message)
                self._tell_state(export.resource_id, lane, problem.message)

    async def _export(self, export: business.ResourceExport, lane: int) -> None:
        address = absolute_url(export.upload_url, self._origin, errors.RESOURCE_INVALID)
        resource = self.registry.lease(export.resource_id)
        try:
            if resource.kind != "file":
                message = "only files can be exported"
                raise refused(errors.RESOURCE_INVALID, message, export.resource_id)
            path = self.registry.files.path_of(resource.token, resource.name)
            mime = resource.metadata.get("mime")
            said = mime if isinstance(mime, str) and mime.isascii() else None
            # Imported when it is first needed: an HTTP client is a fifth of the memory of an idle worker.
            exports = await asyncio.to_thread(import_module, "astraflow.worker.resources.exports")
            await exports.put_file(
                path, resource.size_bytes, address, said, self._tls, self._transport
            )
        finally:
            self.registry.release(export.resource_id)
        # Not what it was before: it may have been asked to go meanwhile, and have gone with this lease.
        self._tell_state(export.resource_id, lane)

    def _tell_state(self, resource_id: str, lane: int, error: str | None = None) -> None:
        """Say how it is, so that a scheduler with another idea learns better."""
        found = self.registry.find(resource_id)
        if found is None:
            self._tell_gone(resource_id, lane)
            return
        event = found.event("touched" if found.state == "ready" else found.state)
        told = event if error is None else msgspec.structs.replace(event, error=error)
        self._tell(told, lane)

    def _tell_gone(self, resource_id: str, lane: int) -> None:
        self._tell(business.ResourceEvent(resource_id, "evicted"), lane)

    def _tell(self, event: business.ResourceEvent, lane: int) -> None:
        if event.state in ("evicted", "released"):
            self._is_due.set()  # its file is still to be deleted
        if self._tell_link is None:
            self._untold[event.resource_id, lane] = event
            return
        key = f"resource/{event.resource_id}"
        self._tell_link(key, business.RESOURCE_EVENT, event, None, lane)

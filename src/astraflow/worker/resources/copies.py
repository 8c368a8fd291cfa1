"""Copies of files whose worker did not reconnect: downloaded before the attempt that needs them starts.

`copyUrl` in the metadata of a reference is the URL of the copy. The file becomes a resource of this worker under the
same id; if the download fails, the attempt fails with `E.RESOURCE.LOST`, as if there were no copy.
"""

from __future__ import annotations

import asyncio
import logging
import shutil
import ssl
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from astraflow.core import errors
from astraflow.core.ids import TaskId
from astraflow.core.protocol import business
from astraflow.worker.addresses import Origin, absolute_url
from astraflow.worker.resources.resource import Lessee, Maker, invalid
from astraflow.worker.resources.terms import Terms

if TYPE_CHECKING:
    import httpx

    from astraflow.worker.hosts import HostEvents
    from astraflow.worker.lane_hosts import PoolOfHosts
    from astraflow.worker.resources.registry import LocalResourceRegistry

_log: Final = logging.getLogger(__name__)


class CopyReference(msgspec.Struct, frozen=True, rename="camel"):
    """The metadata of a reference to a copy."""

    copy_url: str
    metadata: dict[str, Any] = {}


class CopyFetcher:
    """Wraps the hosts: attempts that need no copy are started at once."""

    def __init__(
        self,
        registry: LocalResourceRegistry,
        hosts: PoolOfHosts,
        events: HostEvents,
        source: Path,
        origin: Origin,
        tls: ssl.SSLContext | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self._registry = registry
        self._hosts = hosts
        self._events = events
        self._source = source
        self._origin = origin
        self._tls = tls
        self._transport = transport
        self._group: asyncio.TaskGroup | None = None
        self._fetching: dict[tuple[str, int], tuple[business.Dispatch, asyncio.Task[None]]] = {}
        self._fences: dict[tuple[str, int], float] = {}

    async def run(self) -> None:
        """Fetch what is needed, until cancelled."""
        async with asyncio.TaskGroup() as group:
            self._group = group
            await asyncio.get_running_loop().create_future()

    # -- as the link uses hosts -------------------------------------------------------------

    def start(self, dispatch: business.Dispatch, fence_at: float, lane: int = 0) -> None:
        missing = [(ref, copy) for ref in dispatch.resource_refs if (copy := self._needed(ref))]
        if not missing:
            self._hosts.start(dispatch, fence_at, lane)
            return
        assert self._group is not None, "dispatches come while it runs"
        key = (dispatch.task_id, dispatch.attempt)
        self._fences[key] = fence_at
        task = self._group.create_task(self._fetch(dispatch, lane, missing))
        self._fetching[key] = (dispatch, task)

    def cancel(self, task_id: TaskId, attempt: int, grace_s: float, reason: str) -> None:
        if not self._stop(task_id, attempt, self._cancelled):
            self._hosts.cancel(task_id, attempt, grace_s, reason)

    def kill(self, task_id: TaskId, attempt: int) -> None:
        if not self._stop(task_id, attempt, self._gone):
            self._hosts.kill(task_id, attempt)

    def answer(self, response: business.NextResponse) -> None:
        self._hosts.answer(response)

    def refence(self, fences: Mapping[tuple[str, int], float]) -> None:
        for key in self._fences.keys() & fences.keys():
            self._fences[key] = fences[key]
        self._hosts.refence(fences)

    # -- inside -----------------------------------------------------------------------------

    def _needed(self, ref: business.RequiredResource) -> CopyReference | None:
        """The copy of what this worker does not have."""
        if b"copyUrl" not in bytes(ref.metadata):
            return None
        found = self._registry.find(ref.resource_id)
        if found is not None and not found.is_gone:
            return None
        try:
            return msgspec.json.decode(ref.metadata, type=CopyReference)
        except msgspec.DecodeError:
            return None  # the lease will say that it is not here

    async def _fetch(
        self,
        dispatch: business.Dispatch,
        lane: int,
        missing: list[tuple[business.RequiredResource, CopyReference]],
    ) -> None:
        key = (dispatch.task_id, dispatch.attempt)
        problem: str | None = None
        try:
            for ref, copy in missing:
                await self._fetch_one(dispatch, lane, ref, copy)
        except (errors.AstraflowError, OSError) as error:
            problem = str(error)
        if self._fetching.pop(key, None) is None:
            return  # it was stopped meanwhile
        if problem is not None:
            self._registry.release_attempt(Lessee.of(dispatch))
        fence_at = self._fences.pop(key)
        if problem is None:
            self._hosts.start(dispatch, fence_at, lane)
            return
        names = ", ".join(ref.resource_id for ref, _ in missing)
        _log.warning("download of the copy of %s failed: %s", names, problem)
        lost = business.AttemptError(
            errors.RESOURCE_LOST.code,
            "INFRASTRUCTURE",
            f"The worker is gone, and the download of the copy failed: {names}: {problem}",
            retryable=False,
        )
        self._events.finished(business.Result(dispatch.run_id, *key, "FAILED", error=lost))

    async def _fetch_one(
        self,
        dispatch: business.Dispatch,
        lane: int,
        ref: business.RequiredResource,
        copy: CopyReference,
    ) -> None:
        folder = self._source / "copies" / f"{dispatch.task_id}-{dispatch.attempt}"
        folder.mkdir(parents=True, exist_ok=True)
        name = str(copy.metadata.get("name") or "file").replace("/", "_")
        path = folder / name
        try:
            address = absolute_url(copy.copy_url, self._origin, errors.RESOURCE_INVALID)
            exports = await asyncio.to_thread(import_module, "astraflow.worker.resources.exports")
            await exports.get_file(address, path, self._tls, self._transport)
            filed = await asyncio.to_thread(self._registry.files.take, path)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        if copy.metadata.get("sha256", filed.sha256) != filed.sha256:
            self._registry.files.discard(filed.token)
            raise invalid("The copy has another sha256 than the file")
        told = {key: value for key, value in copy.metadata.items() if key not in ("path", "sha256")}
        self._registry.adopt(
            ref.resource_id,
            filed,
            ref.type,
            maker=Maker(Lessee.of(dispatch), dispatch.node_id, lane=lane),
            terms=Terms(scope=dispatch.run_id, metadata=told),
        )
        self._registry.mark_listed(ref.resource_id, dispatch.run_id)

    def _stop(
        self, task_id: TaskId, attempt: int, tell: Callable[[business.Dispatch], None]
    ) -> bool:
        """End the fetch of an attempt that is not wanted any more; False if there is none."""
        fetching = self._fetching.pop((task_id, attempt), None)
        if fetching is None:
            return False
        dispatch, task = fetching
        del self._fences[task_id, attempt]
        task.cancel()
        self._registry.release_attempt(Lessee.of(dispatch))
        # Whom the pool would tell is never told from inside a call.
        asyncio.get_running_loop().call_soon(tell, dispatch)
        return True

    def _cancelled(self, dispatch: business.Dispatch) -> None:
        self._events.finished(
            business.Result(dispatch.run_id, dispatch.task_id, dispatch.attempt, "CANCELLED")
        )

    def _gone(self, dispatch: business.Dispatch) -> None:
        self._events.gone(dispatch.task_id, dispatch.attempt)

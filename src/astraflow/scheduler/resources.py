"""Resources as the API asks for them: what workers hold, closing, prolonging, and copies for download."""

from __future__ import annotations

from typing import Final

from astraflow.clock import Clock
from astraflow.core import errors
from astraflow.core.engine.commands import CloseResource, ExportResource, ExtendResource
from astraflow.core.expressions.stored_value import VALUE_TYPE
from astraflow.core.fleet.resources import GONE
from astraflow.core.ids import RunId
from astraflow.scheduler.blob_services import BlobServices
from astraflow.scheduler.copies import with_current_copy
from astraflow.scheduler.current import Current
from astraflow.store.rows import ResourceRow
from astraflow.store.store import Store

EXPORT_TIMEOUT_S: Final = 3_600.0
"""A large file on a slow line. Who gives up the request before finds the copy there later."""


class Resources:
    """What workers keep. Use from the scheduler's loop."""

    def __init__(
        self, store: Store, current: Current, clock: Clock, blobs: BlobServices | None
    ) -> None:
        self._store = store
        self._current = current
        self._clock = clock
        self._blobs = blobs

    async def search(
        self,
        tenant: str,
        *,
        limit: int,
        before: tuple[int, str, str] | None = None,
        run_id: RunId | None = None,
        worker_id: str | None = None,
        type: str | None = None,
        state: str | None = None,
    ) -> list[ResourceRow]:
        """Newest first, by (created_at, worker_id, resource_id); those that are gone are listed for a day."""
        await self._current.writer.barrier()
        return await self._store.resources(
            tenant,
            limit=limit,
            before=before,
            run_id=run_id,
            worker_id=worker_id,
            type=type,
            state=state,
        )

    async def get(self, tenant: str, resource_id: str, worker_id: str | None = None) -> ResourceRow:
        """Raises: NotFound; Conflict if several workers have one of this id."""
        await self._current.writer.barrier()
        rows = await self._store.find_resource(tenant, resource_id, worker_id)
        if not rows:
            raise errors.NotFound(
                errors.RESOURCE_MISSING, f"there is no such resource: {resource_id[:80]}"
            )
        live = [row for row in rows if row.state in ("ready", "evicting")] or rows
        # Workers that have read a stored value keep it for a while: it is the one that has the copy.
        live = [row for row in live if row.type == VALUE_TYPE and row.blob is not None] or live
        if len(live) > 1:
            holders = ", ".join(sorted(row.worker_id for row in live))
            raise errors.Conflict(
                errors.RESOURCE_CONFLICT,
                f"several workers have a resource of this id; name one with workerId: {holders}",
            )
        return with_current_copy(live[0])

    async def close(
        self, tenant: str, resource_id: str, worker_id: str | None, by: str
    ) -> ResourceRow:
        """Have its worker let it go, when its last user has ended; at once, or when the worker is back.

        Raises: NotFound; Conflict.
        """
        row = await self._get_kept(tenant, resource_id, worker_id)
        self._current.execute(
            CloseResource(
                tenant=tenant,
                by=by,
                subject=resource_id,
                worker_id=row.worker_id,
                resource_id=resource_id,
            )
        )
        return await self.get(tenant, resource_id, row.worker_id)

    async def extend(
        self, tenant: str, resource_id: str, worker_id: str | None, ttl_s: float, by: str
    ) -> ResourceRow:
        """Set its time to live, from now on.

        Raises: NotFound; Conflict; Unavailable, if its worker is away.
        """
        row = await self._get_kept(tenant, resource_id, worker_id)
        self._current.execute(
            ExtendResource(
                tenant=tenant,
                by=by,
                subject=resource_id,
                worker_id=row.worker_id,
                resource_id=resource_id,
                expires_at=self._clock.wall_ms() + int(ttl_s * 1000),
            )
        )
        return await self.get(tenant, resource_id, row.worker_id)

    async def export(
        self, tenant: str, resource_id: str, worker_id: str | None, by: str
    ) -> ResourceRow:
        """Have a copy of it made where it can be read without its worker; returns when it is there.

        Raises: NotFound; Conflict; Unavailable, if its worker is away or does not deliver.
        """
        row = await self.get(tenant, resource_id, worker_id)
        if row.blob is not None:
            return row
        _check_kept(row)
        if self._blobs is None:
            raise errors.Unavailable(errors.STORE_UNAVAILABLE, "there is no blob store")
        self._current.execute(
            ExportResource(
                tenant=tenant,
                by=by,
                subject=resource_id,
                worker_id=row.worker_id,
                resource_id=resource_id,
            )
        )
        key = (tenant, row.worker_id, resource_id)
        if not await self._blobs.copies.wait_for(key, EXPORT_TIMEOUT_S):
            raise errors.Unavailable(
                errors.WORKER_UNAVAILABLE, f"its worker did not deliver it: {row.worker_id}"
            )
        return await self.get(tenant, resource_id, row.worker_id)

    async def _get_kept(self, tenant: str, resource_id: str, worker_id: str | None) -> ResourceRow:
        row = await self.get(tenant, resource_id, worker_id)
        _check_kept(row)
        return row


def _check_kept(row: ResourceRow) -> None:
    if row.state in GONE:
        raise errors.Conflict(
            errors.RESOURCE_LOST, f"the resource is gone ({row.state}): {row.resource_id[:80]}"
        )

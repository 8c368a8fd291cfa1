"""Resources as the API asks for them: what workers hold, closing, prolonging, and copies for download."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from astraflow.core import errors
from astraflow.core.dispatch.resources import Holding
from astraflow.core.engine.resources import (
    close_resource,
    extend_resource,
    note_export,
    request_export,
)
from astraflow.core.engine.view import View
from astraflow.core.timestamps import iso
from astraflow.scheduler.copies import with_current_copy
from astraflow.scheduler.holdings import resource_row
from astraflow.scheduler.life import Life
from astraflow.store.rows import ResourceRow

__all__ = ["Resources"]

EXPORT_TIMEOUT_S: Final = 3_600.0
"""A large file on a slow line. Who gives up the request before finds the copy there later."""


class Resources(Life):
    """What workers hold. Use from the scheduler's loop."""

    async def resources(
        self,
        tenant: str,
        *,
        limit: int,
        before: tuple[int, str, str] | None = None,
        run_id: str | None = None,
        worker_id: str | None = None,
        type: str | None = None,
        state: str | None = None,
    ) -> list[ResourceRow]:
        """Newest first, by (created_at, worker_id, resource_id); those that are gone are listed for a day."""
        await self.serving.writer.barrier()
        return await self._store.resources(
            tenant,
            limit=limit,
            before=before,
            run_id=run_id,
            worker_id=worker_id,
            type=type,
            state=state,
        )

    async def resource(
        self, tenant: str, resource_id: str, worker_id: str | None = None
    ) -> ResourceRow:
        """Raises: NotFound; Conflict if several workers have one of this id."""
        await self.serving.writer.barrier()
        rows = await self._store.find_resource(tenant, resource_id, worker_id)
        if not rows:
            raise errors.NotFound(
                errors.RESOURCE_MISSING, f"there is no such resource: {resource_id[:80]}"
            )
        live = [row for row in rows if row.state in ("ready", "evicting")] or rows
        if len(live) > 1:
            holders = ", ".join(sorted(row.worker_id for row in live))
            raise errors.Conflict(
                errors.RESOURCE_CONFLICT,
                f"several workers have a resource of this id; name one with workerId: {holders}",
            )
        return with_current_copy(live[0])

    async def close_resource(
        self, tenant: str, resource_id: str, worker_id: str | None, by: str
    ) -> ResourceRow:
        """Have its worker let it go, when its last user has ended; at once, or when the worker is back.

        Raises: NotFound; Conflict.
        """
        row = await self.resource(tenant, resource_id, worker_id)
        holding = self._live(row)
        self._operate(lambda view: close_resource(view, holding, by))
        return await self._noted(holding, by, "resource.close")

    async def extend_resource(
        self, tenant: str, resource_id: str, worker_id: str | None, ttl_s: float, by: str
    ) -> ResourceRow:
        """Let it live for `ttl_s` from now.

        Raises: NotFound; Conflict; Unavailable, if its worker is away.
        """
        row = await self.resource(tenant, resource_id, worker_id)
        holding = self._live(row)
        until = self._parts.clock.wall_ms() + int(ttl_s * 1000)
        self._operate(lambda view: extend_resource(view, holding, until, iso(until)))
        return await self._noted(holding, by, "resource.extend")

    async def export_artifact(
        self, tenant: str, resource_id: str, worker_id: str | None, by: str
    ) -> ResourceRow:
        """Have a copy of it made where it can be read without its worker; returns when it is there.

        Raises: NotFound; Conflict; Unavailable, if its worker is away or does not deliver.
        """
        row = await self.resource(tenant, resource_id, worker_id)
        if row.blob is not None:
            return row
        holding = self._live(row)
        copies = self.depot.copies
        upload_url = copies.upload_url(holding.key)
        self._operate(lambda view: request_export(view, holding, upload_url))
        if not await copies.wait_for(holding.key, EXPORT_TIMEOUT_S):
            raise errors.Unavailable(
                errors.WORKER_UNAVAILABLE, f"its worker did not deliver it: {holding.worker_id}"
            )
        return await self._noted(holding, by, "resource.export")

    def note_copy(self, key: tuple[str, str, str], blob: str) -> None:
        """A copy has arrived."""
        tenant, worker_id, resource_id = key

        def note(view: View) -> None:
            holding = view.resources.find(tenant, resource_id, worker_id)
            if holding is not None:
                note_export(view, holding, blob)

        self._operate(note)

    def _live(self, row: ResourceRow) -> Holding:
        view = self.serving.engine.view
        holding = view.resources.find(row.tenant, row.resource_id, row.worker_id)
        if holding is None:
            raise errors.Conflict(
                errors.RESOURCE_LOST, f"the resource is gone ({row.state}): {row.resource_id[:80]}"
            )
        return holding

    def _operate(self, change: Callable[[View], None]) -> None:
        writer = self.serving.writer
        writer.act(lambda now, at: writer.engine.operate(change, now, at))

    async def _noted(self, holding: Holding, by: str, action: str) -> ResourceRow:
        writer = self.serving.writer
        tenant, worker_id, resource_id = holding.key
        writer.act(lambda now, at: writer.engine.audit(tenant, by, action, resource_id, worker_id))
        await writer.barrier()
        return resource_row(holding)

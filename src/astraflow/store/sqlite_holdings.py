"""The half of the SQLite store that is not about runs: packages, wishes, resources, affinities."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from astraflow.store import retention
from astraflow.store.content import MAX_INTEGER, check_row, check_values, other_digest
from astraflow.store.reading import LAST_RESOURCE, package_row, resource_row, wish_row
from astraflow.store.rows import ActiveRow, AffinityRow, RolloutRow

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Collection, Mapping

    from astraflow.store.rows import Changes, PackageRow, ResourceRow, WishRow
    from astraflow.store.sqlite_reads import Reader
    from astraflow.store.sqlite_writer import SqliteWriter
    from astraflow.store.store import Claim
    from astraflow.store.threads import CallQueue

__all__ = ["SqliteHoldings", "remove_holdings", "write_holdings"]

_row = msgspec.structs.astuple
Answer = TypeVar("Answer")


def write_holdings(cursor: sqlite3.Cursor, queries: Mapping[str, str], changes: Changes) -> None:
    """These rows of a transaction. What is put stays, so what is gone goes first."""
    if changes.resources_gone:
        kept = {(one.tenant, one.worker_id, one.resource_id) for one in changes.resources}
        gone = (key for key in changes.resources_gone if key not in kept)
        cursor.executemany(queries["delete_resource"], gone)
    if changes.resources:
        cursor.executemany(queries["put_resource"], map(_row, changes.resources))
    if changes.affinities_gone:
        cursor.executemany(queries["delete_affinity"], changes.affinities_gone)
    if changes.affinities:
        cursor.executemany(queries["put_affinity"], map(_row, changes.affinities))
    if changes.wishes_gone:
        cursor.executemany(queries["delete_wish"], changes.wishes_gone)
    if changes.wishes:
        cursor.executemany(queries["put_wish"], map(_row, changes.wishes))


def remove_holdings(cursor: sqlite3.Cursor, queries: Mapping[str, str], now_ms: int) -> int:
    """Remove a piece of what has ended long ago; the rows of the kind that had most of them."""
    piece = retention.PIECE_ROWS
    most = 0
    for name, cutoffs in (
        ("delete_ended_resources", (now_ms - retention.RESOURCE_MS, now_ms - retention.COPY_MS)),
        ("delete_ended_wishes", (now_ms - retention.WISH_MS,)),
        ("delete_ended_rollouts", (now_ms - retention.ROLLOUT_MS,)),
    ):
        cursor.execute(queries[name], (*cutoffs, piece))
        most = max(most, cursor.rowcount)
    return most


class SqliteHoldings:
    """What `SqliteStore` answers about them."""

    _writes: CallQueue[SqliteWriter]

    async def _read(self, function: Callable[..., Answer], *arguments: object) -> Answer:
        raise NotImplementedError

    # -- writing ----------------------------------------------------------------------------

    async def put_package(self, claim: Claim, row: PackageRow) -> bool:
        check_row(row)

        def put(writer: SqliteWriter) -> bool:
            with writer.transaction(len(row.manifest)) as cursor:
                writer.fence(claim.epoch)
                cursor.execute(writer.queries["insert_package"], _row(row))
                if cursor.rowcount:
                    return True
                key = (row.tenant, row.name, row.version)
                found = cursor.execute(writer.queries["find_package"], key).fetchone()
                stored = package_row(found)
                if stored.sha256 != row.sha256:
                    raise other_digest(row, stored.sha256)
                return False

        return await self._writes.call(put)

    async def yank_package(
        self, claim: Claim, tenant: str, name: str, version: str, at: int | None, reason: str = ""
    ) -> bool:
        return await self._change(claim, "yank_package", tenant, name, version, at, reason)

    async def put_active(self, claim: Claim, row: ActiveRow) -> None:
        await self._change(claim, "put_active", *_row(row))

    async def put_rollout(self, claim: Claim, row: RolloutRow) -> None:
        await self._change(claim, "put_rollout", *_row(row))

    async def set_resource_blob(
        self, claim: Claim, key: tuple[str, str, str], blob: str | None
    ) -> bool:
        return await self._change(claim, "set_resource_blob", *key, blob)

    async def put_site(self, claim: Claim, name: str, value: str) -> None:
        await self._change(claim, "put_site", name, value)

    async def _change(self, claim: Claim, name: str, *arguments: Any) -> bool:
        """Whether there was a row to change."""
        check_values(*arguments)

        size = sum(len(one) for one in arguments if isinstance(one, bytes))

        def change(writer: SqliteWriter) -> bool:
            with writer.transaction(size) as cursor:
                writer.fence(claim.epoch)
                cursor.execute(writer.queries[name], arguments)
                return cursor.rowcount > 0

        return await self._writes.call(change)

    # -- reading ----------------------------------------------------------------------------

    async def packages(self, tenant: str | None = None) -> list[PackageRow]:
        if tenant is None:
            rows = await self._read(_all, "packages")
        else:
            rows = await self._read(_all, "packages_of_tenant", tenant)
        return [package_row(row) for row in rows]

    async def find_package(self, tenant: str, name: str, version: str) -> PackageRow | None:
        rows = await self._read(_all, "find_package", tenant, name, version)
        return package_row(rows[0]) if rows else None

    async def find_site(self, name: str) -> str | None:
        rows = await self._read(_all, "find_site", name)
        return str(rows[0][0]) if rows else None

    async def active_versions(self) -> list[ActiveRow]:
        return [ActiveRow(*row) for row in await self._read(_all, "active_versions")]

    async def rollouts(self, states: Collection[str] | None = None) -> list[RolloutRow]:
        found = [RolloutRow(*row) for row in await self._read(_all, "rollouts")]
        return [row for row in found if states is None or row.state in states]

    async def find_rollout(self, tenant: str, rollout_id: str) -> RolloutRow | None:
        rows = await self._read(_all, "find_rollout", tenant, rollout_id)
        return RolloutRow(*rows[0]) if rows else None

    async def wishes(self) -> list[WishRow]:
        return [wish_row(row) for row in await self._read(_all, "wishes")]

    async def resources(
        self,
        tenant: str | None = None,
        *,
        limit: int | None = None,
        before: tuple[int, str, str] | None = None,
        run_id: str | None = None,
        worker_id: str | None = None,
        type: str | None = None,
        state: str | None = None,
    ) -> list[ResourceRow]:
        most = MAX_INTEGER if limit is None else limit
        place = (tenant, *(before or LAST_RESOURCE), most, worker_id, type, state)
        if tenant is None:
            rows = await self._read(_all, "all_resources", most)
        elif run_id is None:
            rows = await self._read(_all, "list_resources", *place)
        else:
            rows = await self._read(_all, "list_resources_of_run", *place, run_id)
        return [resource_row(row) for row in rows]

    async def find_resource(
        self, tenant: str, resource_id: str, worker_id: str | None = None
    ) -> list[ResourceRow]:
        if worker_id is None:
            rows = await self._read(_all, "find_resources", tenant, resource_id)
        else:
            rows = await self._read(_all, "find_resource", tenant, worker_id, resource_id)
        return [resource_row(row) for row in rows]

    async def blobs_of_resources(self) -> set[str]:
        return {blob for (blob,) in await self._read(_all, "blobs_of_resources")}

    async def affinities(self) -> list[AffinityRow]:
        return [AffinityRow(*row) for row in await self._read(_all, "affinities")]


def _all(reader: Reader, name: str, *arguments: object) -> list[Any]:
    return reader.all(name, *arguments)

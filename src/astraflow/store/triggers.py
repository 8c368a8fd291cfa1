"""Triggers of saved workflows, and what they fired."""

from __future__ import annotations

from typing import TYPE_CHECKING

from astraflow.store.content import MAX_INTEGER, check_row, check_values
from astraflow.store.database import all_rows, first_row
from astraflow.store.rows import TriggerFireRow, TriggerRow

if TYPE_CHECKING:
    from astraflow.store.database import Database, Transaction
    from astraflow.store.store import Claim
    from astraflow.store.trigger_changes import TriggerChanges


def check_triggers(changes: TriggerChanges) -> None:
    """Raises: StoreError: a row cannot be stored."""
    for row in (*changes.triggers, *changes.fires):
        check_row(row)
    check_values(*changes.gone)


async def write_triggers(transaction: Transaction, changes: TriggerChanges) -> None:
    """Write the changes as a part of a transaction."""
    for tenant, workflow_id, name in changes.gone:
        key = {"tenant": tenant, "workflow_id": workflow_id, "name": name}
        await transaction.change("delete_trigger", **key)
    for row in changes.triggers:
        await transaction.put(row)
    last: dict[tuple[str, str, str], int] = {}
    for fire in changes.fires:
        await transaction.put(fire)
        last[fire.tenant, fire.workflow_id, fire.name] = fire.number
    for (tenant, workflow_id, name), number in last.items():
        await transaction.change(
            "delete_trigger_fires",
            tenant=tenant,
            workflow_id=workflow_id,
            name=name,
            last=number - changes.keep,
        )


class StoredTriggers:
    """Triggers are read whole when a scheduler begins to serve; their history is read when somebody asks."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def change_triggers(self, claim: Claim, changes: TriggerChanges) -> None:
        """Write the changes in one transaction."""
        check_triggers(changes)

        async def change(transaction: Transaction) -> None:
            await write_triggers(transaction, changes)

        await self._database.write(claim, change)

    async def triggers(self) -> list[TriggerRow]:
        """Those of all tenants of the shard."""
        return await all_rows(self._database, TriggerRow, "triggers", shard=self._database.shard)

    async def trigger_fires(
        self, tenant: str, workflow_id: str, name: str, *, limit: int, before: int | None = None
    ) -> list[TriggerFireRow]:
        """The history of a trigger, newest first."""
        return await all_rows(
            self._database,
            TriggerFireRow,
            "trigger_fires",
            tenant=tenant,
            workflow_id=workflow_id,
            name=name,
            limit=limit,
            before=MAX_INTEGER if before is None else before,
        )

    async def find_trigger_fire(
        self, tenant: str, workflow_id: str, name: str, slot: str
    ) -> TriggerFireRow | None:
        """The newest entry about a slot."""
        return await first_row(
            self._database,
            TriggerFireRow,
            "find_trigger_fire",
            tenant=tenant,
            workflow_id=workflow_id,
            name=name,
            slot=slot,
        )

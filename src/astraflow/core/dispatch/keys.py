"""Concurrency keys: at most one attempt in flight for a key, across all workers of a tenant.

A task that waits for its calls lends its key to them: the newest holder works, those below it wait for it.
"""

from __future__ import annotations

from collections.abc import Collection

from astraflow.core.ids import TaskId


class KeyTable:
    """Who holds which key."""

    def __init__(self) -> None:
        self._holders: dict[tuple[str, str], list[TaskId]] = {}

    def __len__(self) -> int:
        return len(self._holders)

    def is_free(self, tenant: str, key: str, lenders: Collection[TaskId] = ()) -> bool:
        """Whether nobody works under the key; `lenders` are tasks that wait for the one that asks."""
        holders = self._holders.get((tenant, key))
        return holders is None or holders[-1] in lenders

    def holder(self, tenant: str, key: str) -> TaskId | None:
        """The task that works under the key."""
        holders = self._holders.get((tenant, key))
        return holders[-1] if holders is not None else None

    def take(
        self, tenant: str, key: str, task_id: TaskId, lenders: Collection[TaskId] = ()
    ) -> None:
        assert self.is_free(tenant, key, lenders), f"the key is held by another task: {key}"
        self._holders.setdefault((tenant, key), []).append(task_id)

    def give_back(self, tenant: str, key: str, task_id: TaskId) -> None:
        holders = self._holders.get((tenant, key), [])
        assert task_id in holders, f"the key is not held by it: {key}"
        holders.remove(task_id)
        if not holders:
            del self._holders[tenant, key]

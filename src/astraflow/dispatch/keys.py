"""Concurrency keys: at most one attempt in flight for a key, across all workers of a tenant."""

from __future__ import annotations

__all__ = ["KeyTable"]


class KeyTable:
    """Who holds which key."""

    def __init__(self) -> None:
        self._holders: dict[tuple[str, str], str] = {}

    def __len__(self) -> int:
        return len(self._holders)

    def is_free(self, tenant: str, key: str) -> bool:
        return (tenant, key) not in self._holders

    def take(self, tenant: str, key: str, task_id: str) -> None:
        assert self.is_free(tenant, key), f"the key is held by another task: {key}"
        self._holders[tenant, key] = task_id

    def give_back(self, tenant: str, key: str, task_id: str) -> None:
        assert self._holders.get((tenant, key)) == task_id, f"the key is not held by it: {key}"
        del self._holders[tenant, key]

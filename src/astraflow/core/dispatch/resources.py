"""The resources that workers hold, as far as the scheduler was told.

It is what pins, lists and cleanups go by. The worker is the one who knows: what it says replaces what is here. A
resource is found by its id within its tenant; two workers may use the same id, and then a reference must name one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

__all__ = ["GONE", "Holding", "HoldingState", "ResourceTable"]

HoldingState = Literal["ready", "evicting", "evicted", "released"]
GONE: frozenset[HoldingState] = frozenset({"evicted", "released"})


class Holding:
    """A resource on a worker. Times are wall-clock milliseconds, for people."""

    __slots__ = (
        "blob",
        "created_at",
        "expires_at",
        "is_adrift",
        "is_artifact",
        "metadata",
        "node_id",
        "package",
        "resource_id",
        "run_id",
        "scope",
        "size_bytes",
        "state",
        "tenant",
        "type",
        "worker_id",
    )

    def __init__(self, tenant: str, worker_id: str, resource_id: str, created_at: int) -> None:
        self.tenant = tenant
        self.worker_id = worker_id
        self.resource_id = resource_id
        self.created_at = created_at
        self.type = "resource"
        self.state: HoldingState = "ready"
        self.scope = ""
        self.run_id: str | None = None
        self.node_id: str | None = None
        self.package = ""  # set: it lives in the memory of this package's host
        self.size_bytes: int | None = None
        self.expires_at: int | None = None
        self.is_artifact = False
        self.is_adrift = False  # its worker did not come back, and it is to be had from its copy
        self.metadata = b"{}"
        self.blob: str | None = None

    @property
    def key(self) -> tuple[str, str, str]:
        return self.tenant, self.worker_id, self.resource_id


class ResourceTable:
    """All resources that are not gone, by id, by worker and by scope."""

    def __init__(self) -> None:
        self._by_id: dict[tuple[str, str], dict[str, Holding]] = {}
        self._by_worker: dict[tuple[str, str], dict[str, Holding]] = {}
        self._by_scope: dict[tuple[str, str], dict[tuple[str, str], Holding]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._by_id.values()))

    def __iter__(self) -> Iterator[Holding]:
        return (holding for by_worker in self._by_id.values() for holding in by_worker.values())

    def add(self, holding: Holding) -> None:
        """Its scope must be known by now: it is what the resource is listed under."""
        self._by_id.setdefault((holding.tenant, holding.resource_id), {})[holding.worker_id] = (
            holding
        )
        self._by_worker.setdefault((holding.tenant, holding.worker_id), {})[holding.resource_id] = (
            holding
        )
        scoped = self._by_scope.setdefault((holding.tenant, holding.scope), {})
        scoped[holding.worker_id, holding.resource_id] = holding

    def remove(self, holding: Holding) -> None:
        _drop(self._by_id, (holding.tenant, holding.resource_id), holding.worker_id)
        _drop(self._by_worker, (holding.tenant, holding.worker_id), holding.resource_id)
        _drop(
            self._by_scope,
            (holding.tenant, holding.scope),
            (holding.worker_id, holding.resource_id),
        )

    def find(self, tenant: str, resource_id: str, worker_id: str) -> Holding | None:
        return self._by_id.get((tenant, resource_id), {}).get(worker_id)

    def holders(self, tenant: str, resource_id: str) -> list[Holding]:
        """Every worker that has a resource of this id."""
        return list(self._by_id.get((tenant, resource_id), {}).values())

    def of_worker(self, tenant: str, worker_id: str) -> list[Holding]:
        return list(self._by_worker.get((tenant, worker_id), {}).values())

    def of_scope(self, tenant: str, scope: str) -> list[Holding]:
        return list(self._by_scope.get((tenant, scope), {}).values())

    def check(self) -> None:
        """Assert that all indexes name the same resources."""
        listed = {holding.key for holding in self}
        for index in (self._by_worker, self._by_scope):
            found = [holding.key for group in index.values() for holding in group.values()]
            assert len(found) == len(listed) and set(found) == listed
        for holding in self:
            assert holding.state not in GONE, "a resource that is gone is still listed"


def _drop(index: dict[tuple[str, str], dict], key: tuple[str, str], inner: object) -> None:  # type: ignore[type-arg]
    group = index[key]
    del group[inner]
    if not group:
        del index[key]

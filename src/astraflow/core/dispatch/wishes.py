"""What is wished of workers about packages: a version installed, or removed.

A wish stays until its worker says that it is fulfilled, over restarts of both (PROTOCOL §5.7). One that failed is tried
again a few times if the cause may pass; then it rests, until somebody wishes anew.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Literal

__all__ = ["INSTALL_TRIES", "Wish", "WishKey", "WishState", "WishTable"]

WishKey = tuple[str, str, str, str]
"""Tenant, worker, name, version."""
WishState = Literal["wanted", "downloading", "installing", "installed", "failed", "removed"]

INSTALL_TRIES: Final = 3
"""A cut network passes; an archive that three tries could not install will not be installed by the fourth."""


class Wish:
    """One version of a package on one worker."""

    __slots__ = (
        "error",
        "name",
        "progress",
        "state",
        "tenant",
        "tries",
        "updated_at",
        "version",
        "why",
        "wish",
        "worker_id",
    )

    def __init__(
        self, key: WishKey, wish: Literal["installed", "removed"], why: str, updated_at: int
    ) -> None:
        self.tenant, self.worker_id, self.name, self.version = key
        self.wish = wish
        self.why = why
        self.state: WishState = "wanted"
        self.tries = 0
        self.progress: float | None = None
        self.error: tuple[str, str] | None = None  # code, message
        self.updated_at = updated_at

    @property
    def key(self) -> WishKey:
        return self.tenant, self.worker_id, self.name, self.version

    @property
    def is_open(self) -> bool:
        """Whether something is still to come of it."""
        return self.state not in ("installed", "failed", "removed")


class WishTable:
    """All wishes, by worker."""

    def __init__(self) -> None:
        self._by_worker: dict[tuple[str, str], dict[tuple[str, str], Wish]] = {}

    def __iter__(self) -> Iterator[Wish]:
        return (wish for wishes in self._by_worker.values() for wish in wishes.values())

    def __len__(self) -> int:
        return sum(map(len, self._by_worker.values()))

    def put(self, wish: Wish) -> None:
        of_worker = self._by_worker.setdefault((wish.tenant, wish.worker_id), {})
        of_worker[wish.name, wish.version] = wish

    def forget_worker(self, tenant: str, worker_id: str) -> list[Wish]:
        """Drop what was wished of a worker; returns it."""
        return list(self._by_worker.pop((tenant, worker_id), {}).values())

    def find(self, key: WishKey) -> Wish | None:
        tenant, worker_id, name, version = key
        return self._by_worker.get((tenant, worker_id), {}).get((name, version))

    def of_worker(self, tenant: str, worker_id: str) -> list[Wish]:
        return list(self._by_worker.get((tenant, worker_id), {}).values())

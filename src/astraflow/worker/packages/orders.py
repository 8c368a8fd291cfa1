"""What the scheduler has asked for and is not yet done, on the disk before the frame is acknowledged.

PROTOCOL §4: an install "is queued and remembered". A worker that was killed in the middle of one begins it again at its
next boot, unless it was killed there several times: then the package itself may be the cause, and it is given up.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Final

import msgspec

from astraflow.protocol import business
from astraflow.worker.packages.shelf import write_durably

__all__ = ["MAX_ORDERS", "MAX_TRIES", "Order", "Orders"]

FILE: Final = ".orders.json"
MAX_ORDERS: Final = 1_000
"""As many packages as a worker may register; more are the mistake of whoever sends them."""
MAX_TRIES: Final = 3
"""Boots that may end in the middle of one install."""

_log: Final = logging.getLogger(__name__)


class Order(msgspec.Struct, frozen=True):
    """An install that waits for its turn, or is at it."""

    request: business.PkgInstall
    tries: int = 0

    @property
    def key(self) -> tuple[str, str]:
        return self.request.name, self.request.version


class _Kept(msgspec.Struct):
    orders: list[Order] = []
    removing: list[tuple[str, str]] = []
    let_go: list[tuple[str, str]] = []


class Orders:
    """Installs in their order, and the versions that are to go. Every change is durable when the call returns."""

    def __init__(self, root: Path) -> None:
        self._path = root / FILE
        self._kept = _Kept()
        try:
            self._kept = msgspec.json.decode(self._path.read_bytes(), type=_Kept)
        except FileNotFoundError:
            pass
        except msgspec.DecodeError as problem:
            # Another version of this program wrote it. The scheduler knows what it asked for and asks again.
            _log.warning("orders for packages cannot be read and are dropped: %s", problem)

    @property
    def removing(self) -> list[tuple[str, str]]:
        return list(self._kept.removing)

    def first(self) -> Order | None:
        return self._kept.orders[0] if self._kept.orders else None

    def has(self, name: str, version: str) -> bool:
        return any(order.key == (name, version) for order in self._kept.orders)

    def is_leaving(self, name: str, version: str) -> bool:
        return (name, version) in self._kept.removing

    def add(self, request: business.PkgInstall) -> bool:
        """Remember an install. The same bytes again are the same order, with the newer URL.

        Returns whether there was room for it.
        """
        key = (request.name, request.version)
        for place, order in enumerate(self._kept.orders):
            if order.key == key and order.request.sha256 == request.sha256:
                self._kept.orders[place] = msgspec.structs.replace(order, request=request)
                break
        else:
            if len(self._kept.orders) >= MAX_ORDERS:
                return False
            self._kept.orders.append(Order(request))
        self._write()
        return True

    def begin(self) -> Order:
        """Count a try of the first order."""
        first = self._kept.orders[0]
        self._kept.orders[0] = msgspec.structs.replace(first, tries=first.tries + 1)
        self._write()
        return self._kept.orders[0]

    def done(self) -> None:
        """The first order has ended, well or badly."""
        del self._kept.orders[0]
        self._write()

    def leave(self, name: str, version: str) -> None:
        """The version is to go."""
        if not self.is_leaving(name, version):
            self._kept.let_go = [key for key in self._kept.let_go if key != (name, version)]
            self._kept.removing.append((name, version))
            self._write()

    def let_go(self, name: str, version: str) -> None:
        """The version is to go because there are newer ones, not because anybody said so."""
        self.leave(name, version)
        self._kept.let_go = [*self._kept.let_go[-MAX_ORDERS:], (name, version)]
        self._write()

    def was_let_go(self, name: str, version: str) -> bool:
        return (name, version) in self._kept.let_go

    def left(self, name: str, version: str) -> None:
        """The version is gone, or is to stay after all."""
        if self.is_leaving(name, version):
            self._kept.removing.remove((name, version))
            self._write()

    def _write(self) -> None:
        write_durably(self._path, msgspec.json.encode(self._kept))

"""The install queue, written to disk before a frame is acknowledged.

PROTOCOL §4: an install "is queued and remembered". A worker that was killed during an installation restarts it at its
next boot. After several kills the package may be the cause, and the installation fails.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Final

import msgspec

from astraflow.core.protocol import business
from astraflow.worker.packages.index import write_durably

FILE: Final = ".orders.json"
MAX_ORDERS: Final = 1_000
"""As many packages as a worker may register; more are the mistake of whoever sends them."""
MAX_TRIES: Final = 3
"""Boots that may end in the middle of one install."""

_log: Final = logging.getLogger(__name__)


class Order(msgspec.Struct, frozen=True):
    """A queued or running installation."""

    request: business.PkgInstall
    tries: int = 0

    @property
    def key(self) -> tuple[str, str]:
        return self.request.name, self.request.version


class _Kept(msgspec.Struct):
    orders: list[Order] = []
    removing: list[tuple[str, str]] = []
    let_go: list[tuple[str, str]] = []


class InstallQueue:
    """Installs in their order, and the versions that are to go.

    What is new (`add`, `leave`) is durable when the call returns, or it raises OSError and is not taken. What is done
    is written down if the disk takes it: after a crash it would be done again, which changes nothing.
    """

    def __init__(self, root: Path) -> None:
        self._path = root / FILE
        self._kept = _Kept()
        try:
            self._kept = msgspec.json.decode(self._path.read_bytes(), type=_Kept)
        except FileNotFoundError:
            pass
        except msgspec.DecodeError as problem:
            # Another version of this program wrote it. The scheduler knows what it asked for and asks again.
            _log.warning("install queue is unreadable and was dropped: %s", problem)

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
        orders = list(self._kept.orders)
        for place, order in enumerate(orders):
            if order.key == key and order.request.sha256 == request.sha256:
                orders[place] = msgspec.structs.replace(order, request=request)
                break
        else:
            if len(orders) >= MAX_ORDERS:
                return False
            orders.append(Order(request))
        self._replace(msgspec.structs.replace(self._kept, orders=orders))
        return True

    def leave(self, name: str, version: str) -> None:
        """The version is to go."""
        key = (name, version)
        let_go = [one for one in self._kept.let_go if one != key]
        removing = [*self._kept.removing, key]
        if not self.is_leaving(name, version):
            self._replace(msgspec.structs.replace(self._kept, removing=removing, let_go=let_go))

    def let_go(self, name: str, version: str) -> None:
        """The version is to go because there are newer ones, not because anybody said so."""
        key = (name, version)
        self._kept.removing.append(key)
        self._kept.let_go = [*self._kept.let_go[-MAX_ORDERS:], key]
        self._note()

    def was_let_go(self, name: str, version: str) -> bool:
        return (name, version) in self._kept.let_go

    def begin(self) -> Order:
        """Count a try of the first order."""
        first = self._kept.orders[0]
        self._kept.orders[0] = msgspec.structs.replace(first, tries=first.tries + 1)
        self._note()
        return self._kept.orders[0]

    def done(self) -> None:
        """The first order has ended, well or badly."""
        del self._kept.orders[0]
        self._note()

    def left(self, name: str, version: str) -> None:
        """The version is gone, or is to stay after all."""
        if self.is_leaving(name, version):
            self._kept.removing.remove((name, version))
            self._note()

    def _replace(self, kept: _Kept) -> None:
        write_durably(self._path, msgspec.json.encode(kept))
        self._kept = kept

    def _note(self) -> None:
        try:
            write_durably(self._path, msgspec.json.encode(self._kept))
        except OSError as problem:
            _log.warning("cannot write the install queue: %s", problem)

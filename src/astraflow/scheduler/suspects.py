"""Frames at which an engine failed, remembered beyond that engine.

An engine that fails while it handles something is thrown away and made anew from the store, as when a commit fails:
what it holds may be half done. A worker sends again what was not acknowledged, as it must, so the frame comes back. It
must not do the same again:

Rule 1: a frame at which an engine failed is *refused* when it comes again, as a bad payload: consumed, acknowledged,
        and the attempt that it names fails (PROTOCOL §1).
Rule 2: when a whole batch failed, each frame of it is *accused*: it is committed alone when it comes again, so that the
        next failure shows which one it was, and the others are good.
Rule 3: a worker at whose other frames an engine failed, or at whose frames engines fail again and again, is *blocked*
        for a while, longer each time.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from astraflow.core.protocol.wire import Envelope

__all__ = ["Key", "Suspects", "key_of"]

Key = tuple[str, str, str]
"""Tenant, worker and id of a frame: it keeps its id when it is sent again."""

MAX_KEPT: Final = 10_000
STRIKES: Final = 3
"""Refused frames of one worker before it is blocked."""
BLOCK_S: Final = 30.0
MAX_BLOCK_S: Final = 600.0


def key_of(envelope: Envelope) -> Key:
    return envelope.tenant, envelope.sender.id, envelope.id


class Suspects:
    """Kept as long as the process lives."""

    def __init__(self) -> None:
        self._accused: dict[Key, None] = {}
        self._refused: dict[Key, None] = {}
        self._strikes: dict[tuple[str, str], int] = {}
        self._blocked: dict[tuple[str, str], float] = {}

    def __bool__(self) -> bool:
        return bool(self._accused or self._refused or self._blocked)

    def accuse(self, keys: Iterable[Key]) -> None:
        """A batch with these failed. One that was alone in it did it."""
        some = list(dict.fromkeys(keys))
        if len(some) == 1:
            self.convict(some[0], 0.0)
            return
        for key in some:
            _keep(self._accused, key)

    def clear(self, key: Key) -> None:
        """It was committed."""
        self._accused.pop(key, None)

    def convict(self, key: Key, now: float) -> None:
        """An engine failed at this one."""
        self._accused.pop(key, None)
        _keep(self._refused, key)
        worker = key[:2]
        strikes = self._strikes[worker] = self._strikes.pop(worker, 0) + 1
        _bound(self._strikes)
        if strikes >= STRIKES:
            self._block(worker, strikes - STRIKES, now)

    def block(self, tenant: str, worker: str, now: float) -> None:
        """An engine failed at something of this worker that has no number, and that it may say in other words."""
        key = (tenant, worker)
        strikes = self._strikes[key] = self._strikes.pop(key, 0) + 1
        _bound(self._strikes)
        self._block(key, strikes - 1, now)

    def is_accused(self, key: Key) -> bool:
        return key in self._accused

    def is_refused(self, key: Key) -> bool:
        return key in self._refused

    def is_blocked(self, tenant: str, worker: str, now: float) -> bool:
        key = (tenant, worker)
        until = self._blocked.get(key)
        if until is not None and until <= now:
            del self._blocked[key]
            return False
        return until is not None

    def _block(self, worker: tuple[str, str], times: int, now: float) -> None:
        self._blocked.pop(worker, None)
        self._blocked[worker] = now + min(BLOCK_S * 2 ** min(times, 10), MAX_BLOCK_S)
        _bound(self._blocked)


def _keep(keys: dict[Key, None], key: Key) -> None:
    keys.pop(key, None)
    keys[key] = None
    _bound(keys)


def _bound(
    kept: dict[Key, None] | dict[tuple[str, str], int] | dict[tuple[str, str], float],
) -> None:
    if len(kept) > MAX_KEPT:
        del kept[next(iter(kept))]  # type: ignore[arg-type]

"""Quarantine of poison frames: frames at which an engine failed, remembered when that engine is gone.

An engine that fails at an input is discarded and restored from the store, as after a failed commit, because its state
may be half changed. The worker resends every frame that was not acknowledged, so the poison frame comes back. It must
not make the next engine fail too:

Rule 1: a frame at which an engine failed is *refused* when it is resent, as a bad payload: it is consumed and
        acknowledged, and the attempt that it names fails (PROTOCOL §1).
Rule 2: when a whole batch failed, each frame of it is a *suspect*: it is committed alone when it is resent, so that the
        next failure shows which frame it was, and the others are cleared.
Rule 3: a worker is *blocked* when an engine failed at one of its frames without a number, or at several of its frames.
        Each block is longer than the one before.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from astraflow.core.protocol.wire import Envelope

Key = tuple[str, str, str]
"""Tenant, worker and id of a frame: it keeps its id when it is sent again."""

MAX_ENTRIES: Final = 10_000
STRIKES: Final = 3
"""Refused frames of one worker before it is blocked."""
BLOCK_S: Final = 30.0
MAX_BLOCK_S: Final = 600.0


def key_of(envelope: Envelope) -> Key:
    return envelope.tenant, envelope.sender.id, envelope.id


class FrameQuarantine:
    """Lives as long as the process. Each table is limited to `MAX_ENTRIES`; the oldest entry is dropped first."""

    def __init__(self) -> None:
        self._suspects: dict[Key, None] = {}
        self._refused: dict[Key, None] = {}
        self._strikes: dict[tuple[str, str], int] = {}
        self._blocked: dict[tuple[str, str], float] = {}

    def __bool__(self) -> bool:
        return bool(self._suspects or self._refused or self._blocked)

    def suspect(self, keys: Iterable[Key]) -> None:
        """A batch with these frames failed. A frame that was alone in its batch is refused at once."""
        some = list(dict.fromkeys(keys))
        if len(some) == 1:
            self.refuse(some[0], 0.0)
            return
        for key in some:
            _keep(self._suspects, key)

    def clear(self, key: Key) -> None:
        """The frame was committed."""
        self._suspects.pop(key, None)

    def refuse(self, key: Key, now: float) -> None:
        """An engine failed at this frame."""
        self._suspects.pop(key, None)
        _keep(self._refused, key)
        worker = key[:2]
        strikes = self._strikes[worker] = self._strikes.pop(worker, 0) + 1
        _bound(self._strikes)
        if strikes >= STRIKES:
            self._block(worker, strikes - STRIKES, now)

    def block(self, tenant: str, worker: str, now: float) -> None:
        """An engine failed at an input of this worker that has no number: it cannot be recognised when it is resent."""
        key = (tenant, worker)
        strikes = self._strikes[key] = self._strikes.pop(key, 0) + 1
        _bound(self._strikes)
        self._block(key, strikes - 1, now)

    def is_suspect(self, key: Key) -> bool:
        return key in self._suspects

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
    if len(kept) > MAX_ENTRIES:
        del kept[next(iter(kept))]  # type: ignore[arg-type]

"""Submissions by idempotency key: the same key and body give the same run, for a day (P3).

Kept in the order in which they were remembered, so that forgetting costs nothing per submission that stays. Of a day
with more keys than fit, the newest are here, and the others in the store: whoever submits asks there first for a key
that `may_be_missing`. More keys fit than one commit has, so that what is not here is committed.
"""

from __future__ import annotations

from typing import Final

from astraflow.core import errors
from astraflow.core.ids import RunId

MAX_BYTES: Final = 32 * 1024**2
KEY_BYTES: Final = 600
"""What a submission takes, beside its key."""

_Place = tuple[str, str]


class Submissions:
    """Which run a key made. Times are monotonic seconds."""

    def __init__(self, keep_s: float, max_bytes: int = MAX_BYTES) -> None:
        self._keep_s = keep_s
        self._max_bytes = max_bytes
        self._known: dict[_Place, tuple[str | None, RunId, float]] = {}
        self._missing_until = float("-inf")
        self.bytes = 0

    def __len__(self) -> int:
        return len(self._known)

    def remember(
        self,
        tenant: str,
        key: str,
        fingerprint: str | None,
        run_id: RunId,
        now: float,
        age_s: float = 0.0,
    ) -> None:
        """`age_s`: how long ago the key was used."""
        self._forget(now)
        place = (tenant, key)
        if place in self._known:
            self._drop(place)
        self._known[place] = (fingerprint, run_id, now + self._keep_s - age_s)
        self.bytes += _size(place)
        while self.bytes > self._max_bytes:
            oldest = next(iter(self._known))
            self._missing_until = max(self._missing_until, self._known[oldest][2])
            self._drop(oldest)

    def may_be_missing(self, tenant: str, key: str, now: float) -> bool:
        """Whether the key may have been used within its time although it is not here."""
        return now < self._missing_until and (tenant, key) not in self._known

    def knows(self, tenant: str, key: str, now: float) -> bool:
        earlier = self._known.get((tenant, key))
        return earlier is not None and earlier[2] > now

    def find(self, tenant: str, key: str, fingerprint: str | None, now: float) -> RunId | None:
        """The run that this submission has made already, if it has.

        Raises:
            Conflict: the key was used with another body.
        """
        self._forget(now)
        earlier = self._known.get((tenant, key))
        if earlier is None or earlier[2] <= now:
            return None
        if earlier[0] != fingerprint:
            raise errors.Conflict(
                errors.RUN_IDEMPOTENCY_CONFLICT, "the key was used with another body"
            )
        return earlier[1]

    def _forget(self, now: float) -> None:
        while self._known:
            oldest = next(iter(self._known))
            if self._known[oldest][2] > now:
                return
            self._drop(oldest)

    def _drop(self, place: _Place) -> None:
        del self._known[place]
        self.bytes -= _size(place)


def _size(place: _Place) -> int:
    return KEY_BYTES + len(place[1])

"""Submissions by idempotency key: the same key and body give the same run, for a day (P3).

Kept in the order in which they were remembered, so that forgetting costs nothing per submission that stays.
"""

from __future__ import annotations

from astraflow import errors

__all__ = ["Submissions"]


class Submissions:
    """Which run a key made. Times are monotonic seconds."""

    def __init__(self, keep_s: float) -> None:
        self._keep_s = keep_s
        self._known: dict[tuple[str, str], tuple[str | None, str, float]] = {}

    def __len__(self) -> int:
        return len(self._known)

    def remember(
        self, tenant: str, key: str, fingerprint: str | None, run_id: str, now: float
    ) -> None:
        self._forget(now)
        self._known[tenant, key] = (fingerprint, run_id, now + self._keep_s)

    def find(self, tenant: str, key: str, fingerprint: str | None, now: float) -> str | None:
        """The run that this submission has made already, if it has.

        Raises:
            Conflict: the key was used with another body.
        """
        self._forget(now)
        earlier = self._known.get((tenant, key))
        if earlier is None:
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
            del self._known[oldest]

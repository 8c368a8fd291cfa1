"""Which finished runs go next: the oldest first, in pieces small enough not to hold up the writer."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec

from astraflow.core.ids import RunId

if TYPE_CHECKING:
    from collections.abc import Sequence

    from astraflow.store.store import Retention

PIECE_RUNS = 200
"""Runs removed by one sweep: some ten milliseconds of the writer."""
PIECE_BYTES = 8 * 1024**2
"""Bytes of segments removed by one sweep; a larger run goes in several."""
PIECE_SEGMENTS = 20_000
"""Segments that one sweep looks at for that."""
PIECE_ROWS = 2_000
"""Events, audits and keys removed by one sweep, of each."""
KEY_MS = 24 * 3600 * 1000
"""An idempotency key answers for a day (P3), also when its run has been removed before."""
RESOURCE_MS = 24 * 3600 * 1000
"""A resource that is gone is told of for a day, so that who asks for it learns that it is gone."""
COPY_MS = 30 * 24 * 3600 * 1000
"""The exported copy of a resource that is gone stays as long as runs do by default."""
INTENT_MS = 7 * 24 * 3600 * 1000
"""An install intent that is settled, when its worker is no longer known."""
ROLLOUT_MS = 30 * 24 * 3600 * 1000
"""The history of a rollout that has ended."""
TOKEN_MS = 30 * 24 * 3600 * 1000
"""A token that has expired or was revoked is listed for so long."""


class Span(NamedTuple):
    """The stored events of one tenant, which have no gaps."""

    tenant: str
    first: int
    last: int

    @property
    def rows(self) -> int:
        return self.last - self.first + 1


class Finished(NamedTuple):
    """A run that may be removed."""

    run_id: RunId
    plan_id: str
    finished_at: int
    size: int


class Swept(msgspec.Struct, frozen=True):
    """What one sweep removed. `more`: there is more to remove, sweep again."""

    runs: int = 0
    events: int = 0
    audits: int = 0
    more: bool = False


class Usage(msgspec.Struct, frozen=True):
    """What the store holds."""

    bytes: int
    runs: int
    active_runs: int
    schema_version: int


def cutoff_ms(now_ms: int, keep_s: float | None) -> int | None:
    return None if keep_s is None else now_ms - int(keep_s * 1000)


def beyond(spans: Sequence[Span], keep: int | None) -> list[tuple[str, int]]:
    """The events that are too many: up to which number those of a tenant go, of the longest streams first.

    The last of each tenant stays. At most a piece of them at once.
    """
    if keep is None or sum(span.rows for span in spans) <= keep:
        return []
    low, high = 1, max(span.rows for span in spans)
    while low < high:  # the most that each may keep
        middle = (low + high + 1) // 2
        fits = sum(min(span.rows, middle) for span in spans) <= keep
        low, high = (middle, high) if fits else (low, middle - 1)
    picked: list[tuple[str, int]] = []
    left = PIECE_ROWS
    for span in spans:
        too_many = min(span.rows - low, left)
        if too_many > 0:
            picked.append((span.tenant, span.first + too_many - 1))
            left -= too_many
    return picked


def pick(
    oldest: Sequence[Finished], retention: Retention, now_ms: int, finished: int, held: int
) -> tuple[list[Finished], bool]:
    """Those of the oldest finished runs that are past a limit, and whether more may be.

    `oldest` are at most PIECE_RUNS + 1, `finished` is how many there are in all, `held` the bytes of the store.
    """
    cutoff = cutoff_ms(now_ms, retention.finished_runs_s)
    too_many = 0 if retention.finished_runs is None else finished - retention.finished_runs
    too_much = 0 if retention.max_bytes is None else held - retention.max_bytes
    picked: list[Finished] = []
    freed = 0
    for run in oldest:
        is_old = cutoff is not None and run.finished_at < cutoff
        if not is_old and len(picked) >= too_many and freed >= too_much:
            return picked, False
        if len(picked) >= PIECE_RUNS or freed >= PIECE_BYTES:
            return picked, True
        picked.append(run)
        freed += run.size
    return picked, False

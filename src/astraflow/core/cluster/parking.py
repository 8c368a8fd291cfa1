"""Parking: what becomes of a shard whose own work ends the nodes that serve it.

Rule 1: a loss counts against a shard only if its own work has ended the node: the node was blocked by it, or gave up
        after engines of the shard had failed again and again. A node that was killed, frozen, cut off or restarted
        counts against nobody.
Rule 2: after `PARKED_FROM` losses within `WITHIN_S` the shard is *parked*: its next owner answers requests and takes
        results, but places no task.
Rule 3: a shard that ends a node although it is parked is *withheld*: no node claims it. What ends the nodes then is
        not in what they place.
Rule 4: both are over `ENDS_S` after the last loss, or when somebody has cleared the losses.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Literal

PARKED_FROM: Final = 3
WITHIN_S: Final = 300.0
"""Losses that are further apart than this have reasons of their own, perhaps."""
ENDS_S: Final = 600.0
"""Enough for a person to look, and an end if nobody does."""
KEPT_LOSSES: Final = 10
"""At most so many are stored of a shard: the newest."""

Parking = Literal["open", "parked", "withheld"]
PARKING_REMEDIES: Final[Mapping[Parking, str]] = {
    "parked": "cancel the runs whose tasks are the reason",
    "withheld": "raise node_watchdog_seconds, or start a version that has the fix",
}
"""What to do before somebody clears the losses."""


def parking_of(losses: Iterable[float]) -> Parking:
    """What a shard is. `losses`: how many seconds ago each was, by the store's clock."""
    ages = sorted(losses)
    if not ages or ages[0] >= ENDS_S:
        return "open"
    if _is_parked(ages[1:], ages[0]):
        return "withheld"
    return "parked" if _is_parked(ages, 0.0) else "open"


def parking_ends_s(losses: Iterable[float]) -> float:
    """How long it stays so, if nothing else happens."""
    return max(0.0, ENDS_S - min(losses, default=ENDS_S))


def _is_parked(ages: Sequence[float], ago: float) -> bool:
    """Whether losses parked the shard so many seconds ago; the newest comes first."""
    if len(ages) < PARKED_FROM or ages[0] - ago >= ENDS_S:
        return False
    return ages[PARKED_FROM - 1] - ages[0] <= WITHIN_S

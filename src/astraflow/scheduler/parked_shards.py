"""Shards that are parked or withheld (`core.cluster.parking`), as a node sees them and says so."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from astraflow.core.cluster.parking import PARKING_REMEDIES, Parking, parking_ends_s

if TYPE_CHECKING:
    from astraflow.core.cluster.shards import ShardSeen
    from astraflow.scheduler.cluster_node import ClusterNode

_log: Final = logging.getLogger(__name__)

_SAYS: Final[Mapping[Parking, str]] = {
    "parked": "nothing of it is started, because its work has ended schedulers again and again",
    "withheld": "no scheduler serves it, because it has ended one although nothing of it was started",
}


class ParkedShards:
    """Tells the schedulers of a node which of its shards are parked, and the log. Use from its loop."""

    def __init__(self, node: ClusterNode) -> None:
        self._node = node
        self._said: dict[int, Parking] = {}

    def note(self, shards: list[ShardSeen]) -> None:
        """After a look at the store."""
        for seen in shards:
            scheduler = self._node.scheduler_of(seen.shard)
            if scheduler is not None:
                scheduler.set_parked(seen.parking != "open")
            # The owner speaks of a parked shard, everybody of one that has none.
            is_told = scheduler is not None or seen.parking == "withheld"
            self._say(seen, seen.parking if is_told else "open")

    def counts(self) -> Mapping[tuple[str, ...], float]:
        """How many shards of the site are parked and withheld, as this node sees them."""
        found = Counter(seen.parking for seen in self._node.seen.shards.values())
        return {(state,): float(found[state]) for state in _SAYS}

    def _say(self, seen: ShardSeen, parking: Parking) -> None:
        if self._said.get(seen.shard, "open") == parking:
            return
        self._said[seen.shard] = parking
        if parking == "open":
            _log.info("shard %d is not parked here any more", seen.shard)
            return
        _log.warning(
            "shard %d is %s: %s. Its tenants: %s. What to do: %s, then `astra db unpark %d`. "
            "It ends by itself in %.0f s",
            seen.shard,
            parking,
            _SAYS[parking],
            ", ".join(sorted(self._node.tenants_in(seen.shard))),
            PARKING_REMEDIES[parking],
            seen.shard,
            parking_ends_s(seen.losses),
        )

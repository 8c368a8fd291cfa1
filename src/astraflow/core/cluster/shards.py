"""Which node serves which shard.

Rule 1: the store decides who owns a shard. Only who tries is decided here, so that two nodes that see different things
        cost a try and nothing else.
Rule 2: a free shard is for the node with the fewest lanes of the same tenants, then for the one with the fewest shards;
        a hash decides between equals. All nodes that see the same decide the same: the lanes of a tenant are on as many
        nodes as there are.
Rule 3: its node claims a free shard at once, and any other after `ORPHAN_S`: a node that lives but cannot serve leaves
        no shard without an owner. Who owned it last does not count while others live: it has ended, or has given the
        shard back.
Rule 4: a shard is given back if the node that would take it has lived for `STEADY_S`, and then fewer lanes of one
        tenant are on one node; or as many are, and that node has fewer shards by `UNEVEN`. Each move makes it better,
        so moves come to an end. All nodes that see the same choose the same shard, the one that is worth most. Its
        owner gives one in `GIVE_EVERY_S`, and none that it has owned for less than `KEEP_S`: a node that comes and goes
        moves a shard once a minute.
Rule 5: a node that leaves claims nothing. It gives its shards back as it ends.
Rule 6: a shard that somebody has placed is for the node at that URL while it lives, whatever rules 2 and 4 say of it.
        It goes there at once; to a node that has not lived for `STAYED_S` only if its owner has had it for `KEEP_S`.
Rule 7: a withheld shard (`parking`) is nobody's: no node claims it.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Container, Iterable
from typing import Final

import msgspec

from astraflow.core.cluster.parking import Parking, parking_of

LIVE_S: Final = 5.0
"""A node that was not seen for so long has ended."""
LATE_S: Final = 1.6
"""A node says once a second that it lives. One that is late may have ended."""
ORPHAN_S: Final = 2.0
STEADY_S: Final = 5.0
STAYED_S: Final = 15.0
"""A node that has lived for so long does not come and go."""
KEEP_S: Final = 60.0
GIVE_EVERY_S: Final = 1.0
UNEVEN: Final = 2
"""With a smaller difference the two would change places."""
NOT_WORTH: Final = (0, 0)
PLACED_ELSEWHERE: Final = (1_000_000, 0)
"""What the move of a shard is worth that is not where somebody has placed it."""


class NodeSeen(msgspec.Struct, frozen=True):
    """A node as the store shows it. Its ages are of the store's clock."""

    node_id: str
    url: str
    """Where other nodes reach it."""
    seen_s: float
    """Since it was seen last."""
    up_s: float
    """Since it started."""
    is_leaving: bool = False
    loads: str = ""
    """How many tasks wait in each lane of tenants with several, by the names of lanes, as JSON; empty: none."""
    version: str = ""
    """The release that it runs."""
    facts_version: int = 0
    """Up to which version it reads facts; 0: its release does not say."""

    @property
    def is_live(self) -> bool:
        return self.seen_s <= LIVE_S

    @property
    def is_going(self) -> bool:
        """Whether its shards may be free in a moment."""
        return self.is_live and (self.is_leaving or self.seen_s > LATE_S)


class ShardSeen(msgspec.Struct, frozen=True):
    """A shard that some tenant lives in."""

    shard: int
    owner: str
    """The node that claimed it last; empty if none has."""
    is_free: bool
    """Whether the store would let another claim it."""
    tenants: frozenset[str] = frozenset()
    """Those with several lanes that have one in it."""
    losses: tuple[float, ...] = ()
    """How many seconds ago its own work has ended nodes."""
    place: str = ""
    """The URL of the node that somebody has placed it at; empty: any."""

    @property
    def parking(self) -> Parking:
        return parking_of(self.losses)


class Moves(msgspec.Struct, frozen=True):
    """What a node does now."""

    claim: frozenset[int] = frozenset()
    """Shards to try to claim."""
    give: int | None = None
    """A shard to give back."""


def staying(nodes: Iterable[NodeSeen]) -> list[NodeSeen]:
    """Those that can own a shard for a while."""
    return [node for node in nodes if node.is_live and not node.is_leaving]


class Shares:
    """How many shards each node has, those included that are free and for it."""

    def __init__(self, nodes: Iterable[NodeSeen], shards: Iterable[ShardSeen]) -> None:
        able = staying(nodes)
        self.counts = {node.node_id: 0 for node in able}
        self._at = {node.url: node.node_id for node in able}
        self.takers: dict[int, str] = {}
        """The nodes that free shards are for."""
        self._lanes: dict[str, Counter[str]] = {name: Counter() for name in self.counts}
        ordered = sorted(shards, key=lambda one: one.shard)
        for one in ordered:
            if not one.is_free and one.owner in self.counts:
                self._add(one, one.owner)
        for one in ordered:
            taker = self.taker_of(one) if one.is_free else None
            if taker is not None:
                self.takers[one.shard] = taker
                self._add(one, taker)

    def _add(self, seen: ShardSeen, node_id: str) -> None:
        self.counts[node_id] += 1
        self._lanes[node_id].update(seen.tenants)

    def taker_of(self, seen: ShardSeen) -> str | None:
        """The node that a shard is for, or would be for if it were free."""
        placed = self.placed_at(seen)
        if placed is not None:
            return placed
        able = [name for name in self.counts if name != seen.owner] or list(self.counts)
        return min(
            able,
            key=lambda name: (
                self._beside(seen, name), self.counts[name], _weight(seen.shard, name)
            ),
            default=None,
        )  # fmt: skip

    def placed_at(self, seen: ShardSeen) -> str | None:
        """The node that somebody has placed a shard at, if it can own it."""
        return self._at.get(seen.place) if seen.place else None

    def _beside(self, seen: ShardSeen, node_id: str) -> int:
        """How many lanes of the tenants of a shard a node has, without this shard."""
        lanes = self._lanes[node_id]
        own = len(seen.tenants) if node_id == seen.owner and not seen.is_free else 0
        return sum(lanes[tenant] for tenant in seen.tenants) - own

    def best_move(self, shards: Iterable[ShardSeen], steady: Container[str]) -> ShardSeen | None:
        """The shard that is worth most to be given back, if one is worth it (rule 4)."""
        owned = [seen for seen in shards if not seen.is_free]
        worth = [(self._worth(seen, steady), -at) for at, seen in enumerate(owned)]
        best, at = max(worth, default=(NOT_WORTH, 0))
        return owned[-at] if best > NOT_WORTH else None

    def _worth(self, seen: ShardSeen, steady: Container[str]) -> tuple[int, int]:
        """How many lanes are put apart if a shard moves, and the difference of shards of the two nodes."""
        taker = self.taker_of(seen) if seen.owner in self.counts else None
        if taker is None or taker not in steady or taker == seen.owner:
            return NOT_WORTH
        if self.placed_at(seen) is not None:
            return PLACED_ELSEWHERE
        apart = self._beside(seen, seen.owner) - self._beside(seen, taker)
        more = self.counts[seen.owner] - self.counts[taker]
        return (apart, more) if apart > 0 or (apart == 0 and more >= UNEVEN) else NOT_WORTH


def _weight(shard: int, node_id: str) -> bytes:
    return hashlib.blake2b(f"{shard}\n{node_id}".encode(), digest_size=8).digest()


class ShardMoves:
    """The moves of one node. Times are of its own steady clock."""

    def __init__(self, node_id: str) -> None:
        self._node_id = node_id
        self._free_since: dict[int, float] = {}
        self._owned_since: dict[int, float] = {}
        self._gave_at: float | None = None

    def decide(
        self,
        nodes: list[NodeSeen],
        shards: list[ShardSeen],
        now: float,
        *,
        is_leaving: bool = False,
    ) -> Moves:
        """What to do after a look at the store."""
        shards = [one for one in shards if one.parking != "withheld"]
        self._note(shards, now)
        if is_leaving:
            return Moves()
        shares = Shares(nodes, shards)
        claim = {
            shard
            for shard, since in self._free_since.items()
            if shares.takers.get(shard) == self._node_id or now - since >= ORPHAN_S
        }
        return Moves(frozenset(claim), self._to_give(nodes, shards, shares, now))

    def _note(self, shards: list[ShardSeen], now: float) -> None:
        free = {one.shard for one in shards if one.is_free}
        self._free_since = {shard: self._free_since.get(shard, now) for shard in free}
        owned = {one.shard for one in shards if one.owner == self._node_id} - free
        self._owned_since = {shard: self._owned_since.get(shard, now) for shard in owned}

    def _to_give(
        self, nodes: list[NodeSeen], shards: list[ShardSeen], shares: Shares, now: float
    ) -> int | None:
        if self._gave_at is not None and now - self._gave_at < GIVE_EVERY_S:
            return None
        ages = {node.node_id: node.up_s for node in staying(nodes) if node.up_s >= STEADY_S}
        best = shares.best_move(shards, ages)
        since = self._owned_since.get(best.shard) if best is not None else None
        if best is None or since is None:
            return None
        is_early = now - since < KEEP_S
        placed = shares.placed_at(best)
        if is_early and (placed is None or ages[placed] < STAYED_S):
            return None
        self._gave_at = now
        return best.shard

"""Which node serves which shard.

Rule 1: the store decides who owns a shard. Only who tries is decided here, so that two nodes that see different things
        cost a try and nothing else.
Rule 2: a free shard is for the node with the fewest shards; a hash decides between equals. All nodes that see the same
        decide the same, and nothing that is even moves: the lanes of a tenant are on as many nodes as there are.
Rule 3: its node claims a free shard at once, and any other after `ORPHAN_S`: a node that lives but cannot serve leaves
        no shard without an owner. Who owned it last does not count while others live: it has ended, or has given the
        shard back.
Rule 4: the node with the most shards gives one back while another that has lived for `STEADY_S` has fewer by `UNEVEN`:
        one in `GIVE_EVERY_S`, and none that it has owned for less than `KEEP_S`. A node that comes and goes moves a
        shard once a minute.
Rule 5: a node that leaves claims nothing. It gives its shards back as it ends.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

LIVE_S: Final = 5.0
"""A node that was not seen for so long has ended."""
LATE_S: Final = 1.6
"""A node says once a second that it lives. One that is late may have ended."""
ORPHAN_S: Final = 2.0
STEADY_S: Final = 5.0
KEEP_S: Final = 60.0
GIVE_EVERY_S: Final = 1.0
UNEVEN: Final = 2
"""With a smaller difference the two would change places."""


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
        self.counts = {node.node_id: 0 for node in staying(nodes)}
        self.takers: dict[int, str] = {}
        """The nodes that free shards are for."""
        ordered = sorted(shards, key=lambda one: one.shard)
        for one in ordered:
            if not one.is_free and one.owner in self.counts:
                self.counts[one.owner] += 1
        for one in ordered:
            taker = self._taker_of(one) if one.is_free else None
            if taker is not None:
                self.takers[one.shard] = taker
                self.counts[taker] += 1

    def _taker_of(self, seen: ShardSeen) -> str | None:
        able = [name for name in self.counts if name != seen.owner] or list(self.counts)
        return min(
            able, key=lambda name: (self.counts[name], _weight(seen.shard, name)), default=None
        )


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
        self._note(shards, now)
        if is_leaving:
            return Moves()
        shares = Shares(nodes, shards)
        claim = {
            shard
            for shard, since in self._free_since.items()
            if shares.takers.get(shard) == self._node_id or now - since >= ORPHAN_S
        }
        return Moves(frozenset(claim), self._to_give(nodes, shares.counts, now))

    def _note(self, shards: list[ShardSeen], now: float) -> None:
        free = {one.shard for one in shards if one.is_free}
        self._free_since = {shard: self._free_since.get(shard, now) for shard in free}
        owned = {one.shard for one in shards if one.owner == self._node_id} - free
        self._owned_since = {shard: self._owned_since.get(shard, now) for shard in owned}

    def _to_give(
        self, nodes: Iterable[NodeSeen], counts: Mapping[str, int], now: float
    ) -> int | None:
        if self._gave_at is not None and now - self._gave_at < GIVE_EVERY_S:
            return None
        steady = [node.node_id for node in staying(nodes) if node.up_s >= STEADY_S]
        fewest = min((counts[name] for name in steady), default=None)
        fullest = max(counts, key=lambda name: (counts[name], name), default=None)
        if fewest is None or fullest != self._node_id or counts[fullest] - fewest < UNEVEN:
            return None
        for shard, since in sorted(self._owned_since.items()):
            if now - since >= KEEP_S:
                self._gave_at = now
                return shard
        return None

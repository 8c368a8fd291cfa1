"""Which node serves which shard.

Rule 1: the store decides who owns a shard. Only who tries is decided here, so that two nodes that see different things
        cost a try and nothing else.
Rule 2: for each shard the live nodes have a rank (rendezvous hashing). A node that comes or goes moves its own shards
        and no others.
Rule 3: a free shard is claimed by its first node at once, and by any other after `ORPHAN_S`: a first node that lives
        but cannot serve leaves no shard without an owner. Who owned it last is not the first while others live: it
        has ended, or has given the shard back.
Rule 4: an owner gives a shard back when another node is the first and has lived for `STEADY_S`: one in `GIVE_EVERY_S`,
        and none that it has owned for less than `KEEP_S`. A node that comes and goes moves a shard once a minute.
Rule 5: a node that leaves claims nothing. It gives its shards back as it ends.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
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


def first_of(seen: ShardSeen, nodes: Iterable[NodeSeen]) -> NodeSeen | None:
    """The node that should serve a shard; None if no node stays."""
    staying = [node for node in nodes if node.is_live and not node.is_leaving]
    if seen.is_free:
        staying = [node for node in staying if node.node_id != seen.owner] or staying
    return max(staying, key=lambda node: _weight(seen.shard, node.node_id), default=None)


def _weight(shard: int, node_id: str) -> tuple[bytes, str]:
    text = f"{shard}\n{node_id}".encode()
    return hashlib.blake2b(text, digest_size=8).digest(), node_id


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
        first = {one.shard: first_of(one, nodes) for one in shards}
        claim = {
            shard
            for shard, since in self._free_since.items()
            if self._is_me(first[shard]) or now - since >= ORPHAN_S
        }
        return Moves(frozenset(claim), self._to_give(first, now))

    def _note(self, shards: list[ShardSeen], now: float) -> None:
        free = {one.shard for one in shards if one.is_free}
        self._free_since = {shard: self._free_since.get(shard, now) for shard in free}
        owned = {one.shard for one in shards if one.owner == self._node_id} - free
        self._owned_since = {shard: self._owned_since.get(shard, now) for shard in owned}

    def _to_give(self, first: dict[int, NodeSeen | None], now: float) -> int | None:
        if self._gave_at is not None and now - self._gave_at < GIVE_EVERY_S:
            return None
        for shard, since in sorted(self._owned_since.items()):
            wanted_by = first[shard]
            if wanted_by is None or self._is_me(wanted_by):
                continue
            if wanted_by.up_s >= STEADY_S and now - since >= KEEP_S:
                self._gave_at = now
                return shard
        return None

    def _is_me(self, node: NodeSeen | None) -> bool:
        return node is not None and node.node_id == self._node_id

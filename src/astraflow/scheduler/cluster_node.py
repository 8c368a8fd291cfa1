"""A node: one process of several that share a store. It serves its own shards, and knows whose the others are.

Rule 1: each shard that a tenant lives in has a scheduler here, which serves while this node owns the shard.
Rule 2: the node looks at the store `LOOK_EVERY_S`. From what it sees it decides which shards to claim and which one to
        give back (`core.cluster.shards`); the store decides who gets them.
Rule 3: what it has seen may be old. Who acts on it is told by the owner if it is wrong, and waits for the next look.
Rule 4: a node that is to end gives its shards back first, and passes on what still reaches it until others have
        them.
Rule 5: a node joins before it claims anything: while it lives, nobody writes facts that it cannot read. The owner of
        the home shard raises the version of what is written (`core.cluster.upgrades`). Each node tells its schedulers.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import msgspec

from astraflow.clock import Clock
from astraflow.core import errors
from astraflow.core.cluster.lanes import HOME_LANE, LaneSeen, lane_name
from astraflow.core.cluster.shards import NodeSeen, ShardMoves, ShardSeen
from astraflow.core.cluster.upgrades import FactsRaise
from astraflow.core.engine.lanes import TenantLanes
from astraflow.core.protocol.control import LanePlace
from astraflow.core.security.policy import SITE_TENANT
from astraflow.scheduler.parked_shards import ParkedShards
from astraflow.scheduler.shard_turns import ShardTurns
from astraflow.store.cluster import LANES_CHANGE
from astraflow.store.identity import TOKENS_CHANGE
from astraflow.store.store import HOME_SHARD
from astraflow.store.written_facts import written_facts

if TYPE_CHECKING:
    from astraflow.scheduler.service import Scheduler
    from astraflow.store.cluster import StoredCluster

_log: Final = logging.getLogger(__name__)

LOOK_EVERY_S: Final = 0.25
"""The least that a take-over takes; two small reads."""
LOOK_SOON_S: Final = 0.05
"""While a node leaves, or may have ended: its shards are about to be free, and requests wait for their next owner."""
RENEW_EVERY_S: Final = 1.0
READ_LANES_S: Final = 5.0
"""Lanes are read when they have changed, and from time to time: a change may be noted before it is complete."""
MAX_ASKED: Final = 10_000
STALE_S: Final = 5.0
"""What was seen longer ago says nothing any more."""
DURABLE_S: Final = 1.0
"""For what is decided to be committed and answered, before a shard is given back."""
HAND_OVER_S: Final = 3.0
"""For others to claim the shards of a node that leaves; longer only if none of them can."""


_ONLY_LANE: Final = (LaneSeen(HOME_LANE, HOME_SHARD),)


class ClusterSeen(msgspec.Struct, frozen=True):
    """What a look at the store showed."""

    nodes: dict[str, NodeSeen] = {}
    shards: dict[int, ShardSeen] = {}
    lanes: dict[str, tuple[LaneSeen, ...]] = {}
    """Of each tenant that has a row; another has its one lane in shard 0."""
    changes: dict[str, str] = {}
    """Values that differ after each change of tokens and of lanes."""
    at: float = float("-inf")


class SeenLanes:
    """The lanes in one shard, by the last look."""

    def __init__(self, node: ClusterNode, shard: int) -> None:
        self._node = node
        self._shard = shard

    def lane_of(self, tenant: str) -> int | None:
        for one in self._node.lanes_of(tenant):
            if one.shard == self._shard:
                return one.lane
        return None

    def several(self) -> Mapping[str, TenantLanes]:
        return self._node.several.get(self._shard, {})

    def opening(self) -> list[str]:
        return [
            tenant
            for tenant, lanes in self.several().items()
            if lanes.is_home and any(one.state == "opening" for one in self._node.lanes_of(tenant))
        ]

    async def refresh(self) -> None:
        await self._node.read_lanes()


class _Shard:
    """A shard with its scheduler here."""

    def __init__(self, scheduler: Scheduler, turns: ShardTurns) -> None:
        self.scheduler = scheduler
        self.turns = turns
        self.running = asyncio.create_task(scheduler.run())


class ClusterNode:
    """Start it with `run`. Use from one loop."""

    def __init__(
        self,
        node_id: str,
        url: str,
        cluster: StoredCluster,
        clock: Clock,
        make: Callable[[int, ShardTurns, SeenLanes], Scheduler],
        socket_url: Callable[[str], str | None] = str,
        shards: int = 0,
        upgrade_wait_s: float = 0.0,
    ) -> None:
        """`make`: a scheduler for a shard. `url`: where other nodes reach this one. `socket_url`: where workers connect
        to the node at a URL; None: at any other. `shards`: how many there must be at least. `upgrade_wait_s`:
        how long all nodes must read facts before they are written."""
        self.node_id = node_id
        self.url = url
        self.cluster = cluster
        self.seen = ClusterSeen()
        self.ready = asyncio.Event()
        self._clock = clock
        self._make = make
        self._socket_url = socket_url
        self._wanted_shards = shards  # until they are there
        self.several: dict[int, dict[str, TenantLanes]] = {}
        """By shard: the tenants with a lane in it that have several."""
        self._lanes_read_at = float("-inf")
        self._asked: dict[str, float] = {}  # when tenants were asked for that no look has shown
        self.parked = ParkedShards(self)
        self._moves = ShardMoves(node_id)
        self._facts_raise = FactsRaise(upgrade_wait_s)
        self._has_joined = False
        self._shards: dict[int, _Shard] = {}
        self._renewed_at = float("-inf")
        self._looking = asyncio.Lock()
        self._read_tokens: str | None = None  # the last change that all schedulers here know
        self._is_leaving = False
        self._has_left = False
        """Whether its shards are given back, or are about to be."""
        self.is_ending = False
        """Whether nobody waits here any more for the next owner of a shard."""
        self._looked = asyncio.Event()
        self._failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    # -- what requests ask ------------------------------------------------------------------

    def lanes_of(self, tenant: str) -> tuple[LaneSeen, ...]:
        return self.seen.lanes.get(tenant, _ONLY_LANE)

    def shard_of(self, tenant: str, lane: int = HOME_LANE) -> int | None:
        """Where a lane of a tenant is; None: there is no such lane, by the last look."""
        return next((one.shard for one in self.lanes_of(tenant) if one.lane == lane), None)

    def tenants_in(self, shard: int) -> list[str]:
        """Those with a lane in a shard, by the last look."""
        found = [
            tenant
            for tenant, lanes in self.seen.lanes.items()
            if any(one.shard == shard for one in lanes)
        ]
        has_site = shard == HOME_SHARD and SITE_TENANT not in self.seen.lanes
        return [*found, SITE_TENANT] if has_site else found

    async def locate(self, tenant: str) -> None:
        """Be sure of where a tenant is that no look has shown: it may be a moment old. Raises: StoreError."""
        now = self._clock.now()
        if tenant in self.seen.lanes or tenant == SITE_TENANT:
            return
        if now - self._asked.get(tenant, float("-inf")) < LOOK_EVERY_S:
            return
        if len(self._asked) >= MAX_ASKED:
            self._asked.clear()
        self._asked[tenant] = now
        found = await self.cluster.lanes_of(tenant)
        if found:
            lanes = {**self.seen.lanes, tenant: found}
            self.seen = msgspec.structs.replace(self.seen, lanes=lanes)

    def loads_of(self, tenant: str) -> dict[int, int]:
        """How many tasks wait in the lanes of a tenant, as their owners last said."""
        names = {lane_name(tenant, one.lane): one.lane for one in self.lanes_of(tenant)}
        found: dict[int, int] = {}
        for node in self.seen.nodes.values():
            if not (node.is_live and node.loads):
                continue
            for name, count in msgspec.json.decode(node.loads, type=dict[str, int]).items():
                if name in names:
                    found[names[name]] = count
        return found

    def scheduler_of(self, shard: int) -> Scheduler | None:
        """The scheduler of a shard, if this node owns it."""
        if self._has_left:
            return None
        found = self._shards.get(shard)
        return found.scheduler if found is not None and found.scheduler.is_serving else None

    def any_scheduler_of(self, shard: int) -> Scheduler | None:
        """The scheduler of a shard here, whether or not it serves."""
        found = self._shards.get(shard)
        return None if found is None else found.scheduler

    def all_schedulers(self) -> list[Scheduler]:
        """Those of all shards, whether or not they serve."""
        return [one.scheduler for one in self._shards.values()]

    @property
    def home(self) -> Scheduler:
        """The scheduler of the home shard here, whether or not it serves."""
        return self._shards[HOME_SHARD].scheduler

    def schedulers(self) -> list[Scheduler]:
        """Those of all shards that this node owns."""
        found = map(self.scheduler_of, tuple(self._shards))
        return [scheduler for scheduler in found if scheduler is not None]

    def url_of(self, shard: int) -> str | None:
        """Where the owner of a shard is reached, if another node owns it."""
        found = self.seen.shards.get(shard)
        if found is None or found.is_free or found.owner == self.node_id:
            return None
        owner = self.seen.nodes.get(found.owner)
        return None if owner is None else owner.url

    def is_withheld(self, shard: int) -> bool:
        """Whether a shard has no owner because its work ends its owners."""
        found = self.seen.shards.get(shard)
        return found is not None and found.parking == "withheld"

    @property
    def is_blind(self) -> bool:
        """Whether nothing is known of who owns what."""
        return self._clock.now() - self.seen.at > STALE_S

    def problem(self) -> str | None:
        """Why it is not ready."""
        if self._is_leaving:
            return "the scheduler is about to end"
        if self.is_blind:
            return "the store does not answer"
        if self.url_of(HOME_SHARD) is not None or self.is_withheld(HOME_SHARD):
            return None
        return self.home.problem()

    def status(self) -> str | None:
        """What it does, for people; None while it starts."""
        if not self.ready.is_set():
            return None
        shards = [str(shard) for shard in sorted(self._shards) if self.scheduler_of(shard)]
        return self.problem() or f"serving shards: {', '.join(shards) or 'none'}"

    async def assign(self, tenant: str) -> None:
        """Choose the shard of a new tenant. Raises: StoreError."""
        await self.cluster.assign_lane(tenant)
        await self._look()

    def now(self) -> float:
        """By its own steady clock."""
        return self._clock.now()

    async def next_look(self, within_s: float) -> None:
        """Wait until the node has looked at the store once more; no longer than so."""
        with suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                await self._looked.wait()

    # -- its life ---------------------------------------------------------------------------

    async def run(self, check: Callable[[], Awaitable[None]]) -> None:
        """Serve until cancelled. `check`: whether this node may join the others.

        Raises:
            StoreError: the store cannot be used, and waiting will not help.
            Refused: it may not.
        """
        self._add(HOME_SHARD)  # what is of the process is answered before the store is there
        await self.cluster.open()
        looking = asyncio.create_task(self._keep_looking(check))
        try:
            await asyncio.wait((looking, self._failed), return_when=asyncio.FIRST_COMPLETED)
            await (self._failed if self._failed.done() else looking)
        finally:
            looking.cancel()
            await asyncio.gather(looking, return_exceptions=True)
            await self._leave()
            await self.cluster.close()

    async def leave(self) -> None:
        """Give all shards back, and go on looking until others have them."""
        self._is_leaving = True
        with suppress(errors.StoreError):
            if not self.is_blind:
                await self._renew()
                await asyncio.sleep(LOOK_EVERY_S)  # from now on the others look often
        given = [shard for shard in self._shards if self.scheduler_of(shard) is not None]
        await self._give_all()
        has_others = any(
            node.is_live and not node.is_leaving
            for name, node in self.seen.nodes.items()
            if name != self.node_id
        )
        ends_at = self._clock.now() + (HAND_OVER_S if has_others else 0.0)
        while any(self.url_of(shard) is None for shard in given) and self._clock.now() < ends_at:
            await self.next_look(LOOK_EVERY_S)

    async def _give_all(self) -> None:
        """What is decided is answered, what comes now waits for the next owner."""
        served = self.schedulers()
        self._has_left = True
        with suppress(errors.Unavailable, TimeoutError):
            async with asyncio.timeout(DURABLE_S):
                await asyncio.gather(*(one.serving.writer.barrier() for one in served))
        tasks = [shard.running for shard in self._shards.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _leave(self) -> None:
        """Give all shards back, and say that this node is gone."""
        self._is_leaving = True
        if self._has_joined:
            with suppress(errors.StoreError):
                await self._renew()
        await self._give_all()
        with suppress(errors.StoreError):
            await self.cluster.remove_node(self.node_id)

    async def _renew(self) -> None:
        if not self._has_joined:
            await self.cluster.join_node(self.node_id, self.url)
            self._has_joined = True
        await self.cluster.renew_node(
            self.node_id, self.url, is_leaving=self._is_leaving, loads=self._loads()
        )

    async def _keep_looking(self, check: Callable[[], Awaitable[None]]) -> None:
        is_checked, was_there = False, True
        while True:
            try:
                if not is_checked:
                    await check()
                    is_checked = True
                await self._look()
                was_there = True
            except errors.StoreError as error:
                if error.code is not errors.STORE_UNAVAILABLE:
                    raise
                if was_there:
                    _log.warning("the store does not answer: %s", error.message)
                was_there = False
            looked, self._looked = self._looked, asyncio.Event()
            looked.set()
            await asyncio.sleep(self._look_every_s())

    def _look_every_s(self) -> float:
        is_going = any(node.is_going for node in self.seen.nodes.values())
        return LOOK_SOON_S if is_going else LOOK_EVERY_S

    async def _look(self) -> None:
        async with self._looking:
            now = self._clock.now()
            if self._wanted_shards:
                await self.cluster.add_shards(self._wanted_shards)
                self._wanted_shards = 0
            if now - self._renewed_at >= RENEW_EVERY_S:
                await self._renew()
                self._renewed_at = now
            nodes = await self.cluster.nodes()
            shards = await self.cluster.shards()
            changes = await self.cluster.changes()
            written = written_facts(changes)
            lanes = before = self.seen.lanes
            is_changed = changes.get(LANES_CHANGE) != self.seen.changes.get(LANES_CHANGE)
            if is_changed or now - self._lanes_read_at >= READ_LANES_S:
                lanes = await self.cluster.lanes()
                self._lanes_read_at = now
            self.seen = ClusterSeen(
                {node.node_id: node for node in nodes},
                {shard.shard: shard for shard in shards},
                lanes,
                changes,
                now,
            )
            self._note_several()
            self._let_write(written)
            self._end_outgrown(before)
            self.parked.note(shards)
            self._move(nodes, [self._with_tenants(one) for one in shards], now)
            await self._raise_facts(written, now)
        tokens = self.seen.changes.get(TOKENS_CHANGE)
        if tokens != self._read_tokens:
            for scheduler in {self.home, *self.schedulers()} if not self._has_left else ():
                await scheduler.credentials.refresh()
            self._read_tokens = tokens  # after the reads: one that failed is tried again

    def _let_write(self, facts_version: int) -> None:
        for scheduler in self.schedulers():
            scheduler.serving.writer.let_write(facts_version)

    async def _raise_facts(self, written: int, now: float) -> None:
        """Let newer facts be written when all nodes have read them for a while."""
        wanted = self._facts_raise.decide(self.seen.nodes.values(), written, now)
        if wanted is None or self.scheduler_of(HOME_SHARD) is None:
            return
        if not await self.cluster.raise_facts(wanted):
            _log.info("all schedulers read facts of version %d: they are written now", wanted)

    async def read_lanes(self) -> None:
        """Know the lanes as the store shows them now. Raises: StoreError."""
        async with self._looking:
            self.seen = msgspec.structs.replace(self.seen, lanes=await self.cluster.lanes())
            self._note_several()

    def _note_several(self) -> None:
        """Tell the lanes of a tenant of one another."""
        found: dict[int, dict[str, TenantLanes]] = {}
        for tenant, lanes in self.seen.lanes.items():
            if len(lanes) > 1:
                others = tuple(self._place_of(one) for one in lanes if one.lane != HOME_LANE)
                for one in lanes:
                    found.setdefault(one.shard, {})[tenant] = TenantLanes(one.lane, others)
        self.several = found

    def _end_outgrown(self, before: Mapping[str, tuple[LaneSeen, ...]]) -> None:
        """End the streams of tenants that have got further lanes: whoever comes back follows all of them."""
        if self.seen.lanes is before:
            return
        for tenant, lanes in self.seen.lanes.items():
            if len(lanes) > len(before.get(tenant, _ONLY_LANE)):
                for shard in self._shards.values():
                    shard.scheduler.feed.end_events(tenant)

    def _place_of(self, lane: LaneSeen) -> LanePlace:
        url = self.url if self.scheduler_of(lane.shard) is not None else self.url_of(lane.shard)
        return LanePlace(lane.lane, None if url is None else self._socket_url(url))

    def _loads(self) -> str:
        """How many tasks wait in the lanes that are served here, of tenants with several."""
        found: dict[str, int] = {}
        for shard, tenants in self.several.items():
            scheduler = self.scheduler_of(shard)
            for tenant, lanes in tenants.items() if scheduler is not None else ():
                assert scheduler is not None
                waiting = scheduler.serving.engine.ask.waiting(tenant)
                found[lane_name(tenant, lanes.own)] = waiting
        return msgspec.json.encode(found).decode() if found else ""

    def _move(self, nodes: list[NodeSeen], shards: list[ShardSeen], now: float) -> None:
        if self._is_leaving:
            for shard in self._shards.values():
                shard.turns.let_claim(False)
            return
        moves = self._moves.decide(nodes, shards, now)
        for seen in shards:
            shard = self._shards.get(seen.shard) or self._add(seen.shard)
            shard.turns.let_claim(seen.shard in moves.claim)
        if moves.give is not None:
            _log.info("giving shard %d to a node that has fewer", moves.give)
            self._shards[moves.give].turns.give()
        if self.problem() is None:
            self.ready.set()

    def _with_tenants(self, seen: ShardSeen) -> ShardSeen:
        several = self.several.get(seen.shard)
        return seen if not several else msgspec.structs.replace(seen, tenants=frozenset(several))

    def _add(self, number: int) -> _Shard:
        turns = ShardTurns()
        shard = self._shards[number] = _Shard(
            self._make(number, turns, SeenLanes(self, number)), turns
        )
        shard.running.add_done_callback(self._ended)
        return shard

    def _ended(self, running: asyncio.Task[None]) -> None:
        """A scheduler ends by itself only when waiting will not help: then this process ends, too."""
        if running.cancelled() or self._failed.done():
            return
        error = running.exception()
        if error is not None:
            self._failed.set_exception(error)
            self._failed.exception()  # it is known: `run` may have failed of the same, and not look

    def end_streams(self) -> None:
        """Let everybody go who follows something: the process is about to end, and they can resume."""
        self.is_ending = True
        for shard in self._shards.values():
            shard.scheduler.end_streams()

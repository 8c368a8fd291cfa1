"""Worlds of tier N with nodes of two releases: the later one writes what the earlier one cannot read, when it may.

Nodes begin with the earlier release. They are stopped or killed one by one and started with the other one, mostly the
later, under all faults of `tests/sim/cluster.py`. When all read more, the owner of the home shard raises the version of
the facts that are written, by the rules of the product (`core/cluster/upgrades.py`, `core/facts_version.py`). What the
later release writes more is in this file alone: a fact for some of the inputs of its engine.

I50: what needs a facts version is stored when the site says that it is written, and not before; nobody who reads less
owns a shard in which it is; the version never falls, and is not raised while a node is known to live that reads
less; it is raised when all read more.
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any, ClassVar, cast
from unittest.mock import patch

from astraflow.core.cluster import upgrades
from astraflow.core.cluster.shards import NodeSeen
from astraflow.core.engine.batch import Batch
from astraflow.core.facts_version import HeldBackFacts
from astraflow.core.fleet.facts import Announced
from tests.sim.cluster import (
    ClusterSimulation,
    ShardProcess,
    ShardSimulation,
    ShardStore,
    SimNode,
    simulate_cluster,
)
from tests.sim.config import TENANTS, Config
from tests.sim.simulation import Outcome
from tests.sim.world import Violation

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["UpgradeSimulation", "missing_in_upgrades", "simulate_nodes", "simulate_upgrade"]

EARLIER, LATER = 1, 2
ROLL_S = 2.0
"""Between two nodes that get another release, on average."""
RAISE_S = 1.0
"""From the decision to raise the version to its transaction, on average."""
SHORT_KNOWN_S = 5.0
"""In most worlds a node that is away is forgotten so soon, and comes back when the version has been raised."""
AWAY = 0.4
"""How often a node of the earlier release is left alone for so long there, instead of being upgraded."""
BACK = 0.15
"""How often a node is started with the earlier release, whichever it had."""
LATE_BACK = 0.7
"""How often a node is taken back just when the others are about to raise the version."""
EVERY = 5
"""One of so many inputs has the later release write its fact."""

SOMETIMES = (
    "earlier release owns what the later one wrote",
    "raised while shards are served",
    "node of the earlier release refused",
    "node went back to the earlier release",
    "raise refused: a node joined",
    "fact of the later release",
)
"""What must have been seen in some of many worlds."""


def missing_in_upgrades(seen: dict[str, int]) -> list[str]:
    return [what for what in SOMETIMES if not seen.get(what)]


class LaterFact(Announced, frozen=True):
    """What the later release writes, and the earlier one cannot read."""

    facts_version: ClassVar[int] = LATER


class UpgradeStore(ShardStore):
    """Rows of a shard that two releases write."""

    cluster: UpgradeSimulation
    needed = EARLIER
    """Which facts version is needed to read it."""
    writer = EARLIER
    """The release of who has committed last."""

    def _write(self, epoch: int, batch: Batch) -> None:
        super()._write(epoch, batch)
        newest = max((one.fact.facts_version for one in batch.fleet), default=EARLIER)
        if newest > self.cluster.written:
            raise Violation("I50", f"facts {newest} are stored in shard {self.number}, too early")
        if newest > EARLIER:
            self.world.sometimes("fact of the later release")
        self.needed = max(self.needed, newest)


class UpgradeProcess(ShardProcess):
    """What a node of some release runs for one shard."""

    node: UpgradeNode
    _held_back = HeldBackFacts(EARLIER)

    @property
    def _rows(self) -> UpgradeStore:
        return cast("UpgradeStore", self.store)

    def let_write(self, facts_version: int) -> None:
        if self.engine is not None and not self.engine.view.may_write(facts_version):
            self._held_back = HeldBackFacts(facts_version)
            self.engine.let_write(facts_version)

    def may_write(self) -> bool:
        assert self.engine is not None
        return self.engine.view.may_write(LATER)

    def _open(self, epoch: int) -> None:
        if self.node.has_ended_for_reading_less():
            return
        if self._rows.needed > self.node.release:
            raise Violation("I50", f"{self.name} reads facts up to {self.node.release} only")
        if self.node.release == EARLIER and self._rows.writer == LATER:
            self.world.sometimes("earlier release owns what the later one wrote")
        super()._open(epoch)

    def _serve(self) -> None:
        self._held_back = HeldBackFacts(EARLIER)
        self.let_write(self.node.site.written)
        super()._serve()

    def _handle(self, kind: str, one: Any, two: Any) -> None:
        super()._handle(kind, one, two)
        engine = self.engine
        if engine is None or self.node.release < LATER or not self.may_write():
            return
        if self.node.site.chances.randrange(EVERY) == 0:
            at = self.clock.wall_ms()
            engine.view.record_note(LaterFact(TENANTS[0], at, "later", b"{}"))

    def _write_down(self, batch: Batch) -> None:
        self.check_facts(batch)
        super()._write_down(batch)

    def check_facts(self, batch: Batch) -> None:
        """As the row writer does."""
        self._held_back.check(one.fact for one in batch.facts)
        self._held_back.check(one.fact for one in batch.fleet)

    def _publish(self) -> None:
        super()._publish()
        self._rows.writer = self.node.release


class UpgradeNode(SimNode):
    """A process of one of two releases."""

    release = EARLIER
    facts_raise = upgrades.FactsRaise(0.0)

    @property
    def site(self) -> UpgradeSimulation:
        return cast("UpgradeSimulation", self.cluster)

    def start(self) -> None:
        """Join, or be refused: then it is upgraded, as its operator is told to."""
        if not self.is_dead:
            return
        if self.release < self.site.written:
            self.site.world.sometimes("node of the earlier release refused")
            self.release = LATER
        self.facts_raise = upgrades.FactsRaise(self.site.wait_s)
        super().start()

    def look(self) -> None:
        if self.has_ended_for_reading_less():
            return
        site, world = self.site, self.site.world
        site.reads[self.node_id] = self.release
        super().look()
        for process in self.processes:
            cast("UpgradeProcess", process).let_write(site.written)
        wanted = self.facts_raise.decide(site.nodes_seen(), site.written, world.now)
        if wanted is not None and self.processes[0].is_serving:
            world.after(world.delay(RAISE_S), site.raise_facts, wanted)
            site.take_back(self)

    def has_ended_for_reading_less(self) -> bool:
        """The version was raised while it was away: it ends, and is upgraded."""
        if self.release >= self.site.written:
            return False
        world = self.site.world
        world.sometimes("node of the earlier release refused")
        world.log(f"{self.name} reads less than is written")
        world.after(0.0, self._end)
        return True

    def _end(self) -> None:
        if self.is_paused:
            self.crash()
        self.stop()
        self.release = LATER
        self.site.world.after(0.5, self.start)


class UpgradeShard(ShardSimulation):
    store_class = UpgradeStore
    scheduler_class = UpgradeProcess


class UpgradeSimulation(ClusterSimulation):
    """Nodes of two releases."""

    shard_class = UpgradeShard
    node_class = UpgradeNode

    def __init__(
        self, seed: int, configs: list[Config], nodes: int, *, keep_transcript: bool = False
    ) -> None:
        self.chances = Random(seed)
        self.written = EARLIER
        self.reads: dict[str, int] = {}
        """Which facts the nodes read that have joined, by the names of their boots."""
        self._known_s = self.chances.choice((*[SHORT_KNOWN_S] * 3, upgrades.KNOWN_S))
        self.wait_s = self.chances.choice((0.0, 0.0, self.chances.uniform(0.0, 10.0)))
        super().__init__(seed, configs, nodes, keep_transcript=keep_transcript)
        self.upgraded = cast("list[UpgradeNode]", self.nodes)
        self.is_watched = True  # until nobody is known any more who reads less

    def nodes_seen(self) -> list[NodeSeen]:
        now = self.world.now
        return [
            NodeSeen(
                node_id, "", now - at, now - self.started[node_id],
                facts_version=self.reads[node_id],
            )
            for node_id, at in self.seen_at.items()
        ]  # fmt: skip

    def run(self) -> None:
        """Raises: Violation."""
        with patch.object(upgrades, "KNOWN_S", self._known_s):
            self.world.after(self.world.delay(ROLL_S), self._roll)
            super().run()
        if self.written != LATER:
            raise Violation("I50", "all nodes read more, and the version is not raised")

    def raise_facts(self, wanted: int) -> None:
        """A transaction of the store."""
        if wanted <= self.written:
            return
        if self.is_too_early(wanted):
            self.world.sometimes("raise refused: a node joined")
            return
        for node in self.nodes:
            seen_at, reads = self.seen_at.get(node.node_id), self.reads.get(node.node_id, LATER)
            is_known = seen_at is not None and self.world.now - seen_at <= self._known_s
            if is_known and not node.is_dead and reads < wanted:
                raise Violation("I50", f"{node.name} lives and reads facts up to {reads} only")
        if any(process.is_serving for node in self.nodes for process in node.processes):
            self.world.sometimes("raised while shards are served")
        self.world.log(f"facts up to {wanted} are written")
        self.written = wanted

    def is_too_early(self, wanted: int) -> bool:
        """What the transaction looks at once more, when no node can join."""
        read = upgrades.read_by_all(self.nodes_seen())
        return read is not None and read < wanted

    def _roll(self) -> None:
        """Give a node another release."""
        world, chances = self.world, self.chances
        if world.now > self.faults_until - 2:
            return
        node = chances.choice(self.upgraded)
        if self._known_s == SHORT_KNOWN_S and node.release == EARLIER and chances.random() < AWAY:
            world.log(f"{node.name} is away for longer than it is known")
            node.pause()
            world.after(SHORT_KNOWN_S + chances.uniform(1.0, 20.0), node.wake)
        elif not node.is_dead and not node.is_paused:
            end: Callable[[], None] = chances.choice((node.stop, node.stop, node.crash))
            end()
            self._start(node, EARLIER if chances.random() < BACK else LATER, 0.1 + chances.random())
        world.after(world.delay(ROLL_S), self._roll)

    def _start(self, node: UpgradeNode, release: int, after_s: float) -> None:
        """Start a node that has ended, with a release."""
        if release < node.release and self.written == EARLIER:
            self.world.sometimes("node went back to the earlier release")
        self.world.log(f"{node.name} is of release {release} from now on")
        node.release = release
        self.world.after(after_s, node.start)

    def take_back(self, raising: UpgradeNode) -> None:
        """Sometimes a node gets the earlier release again, while another one raises the version."""
        others = [
            node
            for node in self.upgraded
            if node is not raising and not node.is_dead and not node.is_paused
        ]
        is_time = self.chances.random() < LATE_BACK and self.world.now < self.faults_until - 2
        if is_time and others:
            node = self.chances.choice(others)
            node.stop()
            self._start(node, EARLIER, self.chances.uniform(0.0, 0.3))

    def heal(self) -> None:
        for node in self.upgraded:
            node.wake()
            if node.release == EARLIER:
                node.stop()
                node.release = LATER
        super().heal()


def simulate_upgrade(
    seed: int, config: Config | None = None, *, keep_transcript: bool = False
) -> Outcome:
    """Run one seed with nodes of two releases."""
    return simulate_cluster(seed, config, keep_transcript=keep_transcript, kind=UpgradeSimulation)


def simulate_nodes(seed: int, *, keep_transcript: bool = False) -> Outcome:
    """Run one seed of tier N: in every third one nodes have two releases."""
    run = simulate_upgrade if seed % 3 == 2 else simulate_cluster
    return run(seed, keep_transcript=keep_transcript)

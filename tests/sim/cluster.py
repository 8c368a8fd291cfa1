"""Worlds with several nodes and several shards: what one node leaves, another takes, and nothing runs twice.

A shard is a whole world of its own (`Simulation`), with an engine process for each node. Nodes look at what the store
shows, some of it old, and decide by the product's own rules which shards to claim and which to give back. They are
killed, frozen, stopped in order, and cut off from the store with or without their connection being seen to be gone.
In some worlds the work of one shard blocks every node that places it, or that restores it.

I21: of a shard no lower epoch commits after a higher one, whichever node it is of.
I17: two attempts of a task never overlap across owners.
I39: every shard has an owner `OWNED_S` after the faults, and none moves more than once in `KEEP_S` from then on; the
     others do also while the work of one ends nodes.
I52: the work of a shard ends few nodes: as many as park it, and one more.
"""

from __future__ import annotations

from itertools import pairwise
from random import Random
from typing import TYPE_CHECKING, Literal, cast

from astraflow.core.cluster.parking import PARKED_FROM, WITHIN_S
from astraflow.core.cluster.shards import KEEP_S, NodeSeen, ShardMoves, ShardSeen
from tests.sim.config import Config, draw
from tests.sim.network import DISPATCH_AS_MOVED
from tests.sim.scheduler import SchedulerProcess
from tests.sim.simulation import (
    CHECK_EVERY_STEPS,
    LIVENESS_S,
    Outcome,
    Simulation,
    run_until_rest,
    violation_of,
)
from tests.sim.store import Store
from tests.sim.world import Violation, World

if TYPE_CHECKING:
    from collections.abc import Callable

    from astraflow.core.engine.batch import Batch
    from tests.sim.store import CommitOutcome

__all__ = ["ClusterSimulation", "ShardStore", "missing_in_clusters", "simulate_cluster"]

GONE_S = 2.5
LOOK_S = 0.25
OWNED_S = 10.0
HANDED_OVER_S = 2.0
"""From giving a shard back until the next owner serves it: a few looks."""
WATCHED_S = 150.0
"""So long a calm site is looked at for moves without a reason, in one of `WATCHED_OF` worlds: nothing else happens in
most of this time."""
WATCHED_OF = 4
BLOCKED_S = 3.0
"""Until the watchdog of a node ends it."""
PARKED_S = 90.0
"""For as many nodes to end as it takes to park a shard."""
Poison = Literal["placing", "restoring"]
"""What of the work of a shard blocks its node."""
OF_NODES = ("scheduler_crash", "takeover", "scheduler_pause", "store_split")
"""Faults of processes: they are of whole nodes here."""


SOMETIMES = (
    "early claim",
    "given back",
    "given back with a commit under way",
    DISPATCH_AS_MOVED,
    "all shards on one node",
    "commit of a replaced owner",
    "parked",
    "withheld",
)
"""What must have been seen in some of many worlds."""


def missing_in_clusters(seen: dict[str, int]) -> list[str]:
    return [what for what in SOMETIMES if not seen.get(what)]


class ShardStore(Store):
    """The rows of one shard, with a claim that may come early (ADR 25)."""

    number = 0
    cluster: ClusterSimulation

    def __init__(self, world: World, config: Config) -> None:
        super().__init__(world, config)
        self.renewed_at = 0.0
        self.is_backend_gone = False
        self.released_at = -HANDED_OVER_S
        self.moves: list[float] = []
        self.poison: Poison | None = None
        self.lost_at: list[float] = []

    def seen(self) -> ShardSeen:
        """As a look at the store shows it."""
        ages = tuple(self.world.now - at for at in self.lost_at)
        return ShardSeen(self.number, self.owner or "", self.is_free(), losses=ages)

    def note_loss(self, epoch: int) -> None:
        """Raises: Violation."""
        if epoch != self.epoch:
            return
        self.lost_at.append(self.world.now)
        self.is_backend_gone = True
        if self.seen().parking != "open":
            self.world.sometimes(self.seen().parking)
        lately = [at for at in self.lost_at if self.world.now - at <= WITHIN_S]
        if len(lately) > PARKED_FROM + (self.poison == "restoring"):
            raise Violation("I52", f"shard {self.number} has ended nodes at {lately}")

    def is_free(self) -> bool:
        is_gone = self.is_backend_gone and self.world.now - self.renewed_at >= GONE_S
        return self.world.now >= self.lease_until or is_gone

    def acquire(self, name: str) -> int | None:
        if not self.is_free() and self.owner != name:
            return None
        if self.is_free() and self.world.now < self.lease_until:
            self.world.sometimes("early claim")
        self.lease_until = 0.0
        epoch = super().acquire(name)
        self.renewed_at, self.is_backend_gone = self.world.now, False
        self.moves.append(self.world.now)
        return epoch

    def is_stale(self, epoch: int) -> bool:
        is_stale = super().is_stale(epoch)
        if is_stale:
            self.world.sometimes("commit of a replaced owner")
        return is_stale

    def renew(self, epoch: int) -> bool:
        if not super().renew(epoch):
            return False
        self.renewed_at, self.is_backend_gone = self.world.now, False
        return True

    def release(self, epoch: int) -> None:
        if epoch == self.epoch:
            self.lease_until = self.released_at = self.world.now


class ShardProcess(SchedulerProcess):
    """What one node runs for one shard."""

    node: SimNode
    _waiting_life: int | None = None  # waits for its turn to claim
    _sent: Batch | None = None  # on its way to the store
    _is_given_back = False

    @property
    def shard(self) -> ShardStore:
        return cast("ShardStore", self.store)

    @property
    def _reaches_store(self) -> bool:
        return self.world.now >= self.node.store_back_at

    def _stand_by(self, life: int) -> None:
        if life == self.life and not self.is_dead:
            self._waiting_life = life

    def try_claim(self) -> None:
        """The node has looked at the store, and it is the turn of this shard."""
        if self._waiting_life != self.life or self.is_dead or self.is_paused:
            return
        epoch = self.store.acquire(self.node.node_id)
        if epoch is None:
            return
        self._waiting_life = None
        self.world.log(f"{self.name} owns shard {self.shard.number}, epoch {epoch}")
        if self.shard.poison == "restoring":
            self.node.block(self.shard, epoch)
        else:
            self._open(epoch)

    def _serve(self) -> None:
        assert self.engine is not None
        self.engine.set_parked(self.shard.seen().parking != "open")
        super()._serve()

    def _pump(self) -> None:
        engine = self.engine
        if (
            self.shard.poison == "placing"
            and engine is not None
            and engine.will_place
            and not self.is_paused
        ):
            self.node.block(self.shard, engine.ownership.epoch)
        else:
            super()._pump()

    def set_parked(self, is_parked: bool) -> None:
        engine = self.engine
        if engine is not None and engine.is_parked != is_parked:
            engine.set_parked(is_parked)
            self._pump()

    def _commit(self, batch: Batch) -> None:
        self._sent = batch
        super()._commit(batch)

    def _store(self, batch: Batch) -> CommitOutcome:
        self._sent = None
        return super()._store(batch)

    def _drop(self) -> None:
        self._sent = None
        super()._drop()

    def _end_connections(self) -> None:
        if not self._is_given_back:
            super()._end_connections()
            return
        for conn in self.network.of_scheduler(self):  # its sessions have moved: E.SESSION.MOVED
            self.network.close(conn)

    def give_back(self) -> None:
        """Release the shard, so that another node can have it at once."""
        if self.engine is None or self.is_paused or not self._reaches_store:
            return
        epoch = self.engine.ownership.epoch
        if self._sent is not None:
            self.world.sometimes("given back with a commit under way")
            if self.world.chance(0.5):  # the store has it, and nobody is told
                self._store(self._sent)
        self._is_given_back = True
        self.close("it is given back")
        self._is_given_back = False
        self.shard.release(epoch)
        self.world.sometimes("given back")


class SimNode:
    """One process with a scheduler for each shard."""

    def __init__(self, cluster: ClusterSimulation, name: str) -> None:
        self.cluster = cluster
        self.name = name
        self.processes: list[ShardProcess] = []
        self.store_back_at = 0.0
        self.is_dead = True
        self.is_paused = False
        self.is_blocked = False
        """By the work of a shard: it does not wake any more."""
        self._boots = 0
        self._moves = ShardMoves("")

    @property
    def node_id(self) -> str:
        return f"{self.name}.{self._boots}"

    def start(self) -> None:
        if not self.is_dead:
            return
        self._boots += 1
        self.is_dead, self.is_paused, self.is_blocked = False, False, False
        self._moves = ShardMoves(self.node_id)
        self.cluster.started[self.node_id] = self.cluster.world.now
        for process in self.processes:
            process.start()
        self._look(self._boots)

    def _look(self, boot: int) -> None:
        if self.is_dead or boot != self._boots:
            return
        world = self.cluster.world
        if not self.is_paused and world.now >= self.store_back_at:
            self.look()
        world.after(world.delay(LOOK_S), self._look, boot)

    def look(self) -> None:
        """Look at the store once, and act on what is seen."""
        cluster, now = self.cluster, self.cluster.world.now
        cluster.seen_at[self.node_id] = now
        shards = cluster.shards_seen()
        for seen in shards:
            self.processes[seen.shard].set_parked(seen.parking != "open")
        moves = self._moves.decide(cluster.nodes_seen(), shards, now)
        for shard in sorted(moves.claim):
            self.processes[shard].try_claim()
        if moves.give is not None:
            self.processes[moves.give].give_back()

    def crash(self) -> None:
        if self.is_dead:
            return
        self.is_dead = True
        for process in self.processes:
            if process.engine is not None:
                process.shard.is_backend_gone = True
            process.crash()

    def stop(self) -> None:
        """SIGTERM."""
        if self.is_dead or self.is_paused:
            return
        for process in self.processes:
            process.give_back()
        self.cluster.seen_at.pop(self.node_id, None)
        self.crash()

    def pause(self) -> None:
        self.is_paused = True
        for process in self.processes:
            process.pause()

    def block(self, shard: ShardStore, epoch: int) -> None:
        """The work of a shard blocks this process, until the watchdog ends it."""
        self.cluster.world.log(f"{self.name} is blocked by shard {shard.number}")
        self.pause()
        self.is_blocked = True
        self.cluster.world.after(BLOCKED_S, self._end_blocked, self._boots, shard, epoch)

    def _end_blocked(self, boot: int, shard: ShardStore, epoch: int) -> None:
        if self.is_dead or boot != self._boots:
            return
        shard.note_loss(epoch)
        self.crash()
        self.cluster.world.after(1.0, self.start)

    def wake(self) -> None:
        if self.is_blocked:
            return
        self.is_paused = False
        for process in self.processes:
            process.wake()

    def cut_off(self, seconds: float, *, is_seen: bool) -> None:
        """The store is out of reach. `is_seen`: the store sees that the connections are gone."""
        self.store_back_at = self.cluster.world.now + seconds
        for process in self.processes:
            if is_seen and process.engine is not None:
                process.shard.is_backend_gone = True


class ShardSimulation(Simulation):
    """The world of one shard."""

    store_class = ShardStore
    scheduler_class = ShardProcess

    def __init__(self, config: Config, cluster: ClusterSimulation, number: int) -> None:
        self.cluster = cluster
        self.number = number
        super().__init__(config, world=cluster.world)

    @property
    def shard(self) -> ShardStore:
        return cast("ShardStore", self.store)

    def _make_schedulers(self) -> list[SchedulerProcess]:
        self.shard.number, self.shard.cluster = self.number, self.cluster
        made: list[SchedulerProcess] = []
        for node in self.cluster.nodes:
            process = cast("ShardProcess", self._scheduler_named(f"{node.name}-{self.number}"))
            process.node = node
            node.processes.append(process)
            made.append(process)
        return made

    def is_served(self) -> bool:
        """By its owner; what ends its nodes may be withheld from all."""
        if self.shard.seen().parking == "withheld":
            return True
        engines = [one.engine for one in self.schedulers if one.is_serving]
        return any(
            engine is not None and engine.ownership.epoch == self.shard.epoch for engine in engines
        )

    def begin(self) -> None:
        schedulers, self.schedulers = self.schedulers, []  # nodes start them
        super().begin()
        self.schedulers = schedulers
        self.nemesis.schedulers = schedulers


class ClusterSimulation:
    """Some nodes, some shards."""

    shard_class: type[ShardSimulation] = ShardSimulation
    node_class: type[SimNode] = SimNode

    poison: Poison | None = None
    """What of the work of the last shard blocks its nodes, after a while."""

    def __init__(
        self, seed: int, configs: list[Config], nodes: int, *, keep_transcript: bool = False
    ) -> None:
        self.world = World(seed, keep_transcript=keep_transcript)
        self.nodes = [self.node_class(self, f"node-{number}") for number in range(nodes)]
        self.seen_at: dict[str, float] = {}
        self.started: dict[str, float] = {}
        self.shards = [
            self.shard_class(config, self, number) for number, config in enumerate(configs)
        ]
        self.faults_until = max(config.fault_phase_s for config in configs)
        self.is_watched = seed % WATCHED_OF == 0
        self._turn = 0

    def nodes_seen(self) -> list[NodeSeen]:
        now = self.world.now
        return [
            NodeSeen(node_id, "", now - at, now - self.started[node_id])
            for node_id, at in self.seen_at.items()
        ]

    def shards_seen(self) -> list[ShardSeen]:
        return [one.shard.seen() for one in self.shards]

    def run(self) -> None:
        """Raises: Violation."""
        world = self.world
        for number, node in enumerate(self.nodes):
            world.after(number * 0.3, node.start)
        for shard in self.shards:
            shard.begin()
        world.after(world.delay(6.0), self._hurt_node)
        if self.poison is not None:
            world.after(
                self.faults_until / 3, setattr, self.shards[-1].shard, "poison", self.poison
            )
        world.run_until(self.faults_until, stop=self._check, every=CHECK_EVERY_STEPS)
        self.heal()
        if self.poison is not None:
            self._outlast(self.shards[-1].shard)
        healed_at = world.now
        world.run_until(healed_at + OWNED_S, stop=self._check, every=CHECK_EVERY_STEPS)
        self._check_owners()
        run_until_rest(world, self.shards, healed_at + LIVENESS_S * 3, self._check)
        if self.is_watched:
            until = max(world.now, healed_at + WATCHED_S)
            world.run_until(until, stop=self._check, every=CHECK_EVERY_STEPS)
        self._check_moves(healed_at + OWNED_S)
        for shard in self.shards:
            shard.finish()

    def _outlast(self, shard: ShardStore) -> None:
        """See that the others are served while the work of this shard would end nodes; then mend it. Raises: Violation.

        It may have no work that is to be placed: then nothing parks it."""
        world = self.world
        until = world.now + PARKED_S
        while shard.seen().parking == "open" and world.now < until:
            world.run_until(world.now + LOOK_S, stop=self._check, every=CHECK_EVERY_STEPS)
        if shard.seen().parking != "open":
            owned_from = world.now + OWNED_S
            world.run_until(owned_from, stop=self._check, every=CHECK_EVERY_STEPS)
            self._check_owners()
            if self.is_watched:
                world.run_until(owned_from + WATCHED_S, stop=self._check, every=CHECK_EVERY_STEPS)
            self._check_moves(owned_from)
        shard.poison = None
        shard.lost_at.clear()

    def _check(self) -> bool:
        if len({one.shard.owner for one in self.shards}) == 1:
            self.world.sometimes("all shards on one node")
        self._turn += 1  # the steps of the world are of all shards, and so are the checks
        self.shards[self._turn % len(self.shards)].check()
        return False

    def _hurt_node(self) -> None:
        world, rng = self.world, self.world.rng
        if world.now > self.faults_until - 2:
            return
        node = rng.choice(self.nodes)
        act: Callable[[], None] = rng.choice(
            (node.crash, node.stop, node.pause, self._freezer(node), self._cutter(node))
        )
        if not node.is_dead and not node.is_paused:
            world.log(f"{node.name}: {getattr(act, '__name__', 'hurt')}")
            act()
            world.after(0.1 + rng.random() * 6, self._mend, node)
        world.after(world.delay(6.0), self._hurt_node)

    def _freezer(self, node: SimNode) -> Callable[[], None]:
        def freeze() -> None:
            node.pause()
            self.world.after(7 + self.world.rng.random() * 8, node.wake)

        return freeze

    def _cutter(self, node: SimNode) -> Callable[[], None]:
        rng = self.world.rng
        return lambda: node.cut_off(1 + rng.random() * 20, is_seen=rng.random() < 0.5)

    def _mend(self, node: SimNode) -> None:
        if node.is_dead:
            node.start()
        elif node.is_paused and self.world.rng.random() < 0.5:
            node.wake()

    def heal(self) -> None:
        for shard in self.shards:
            schedulers, shard.nemesis.schedulers = shard.nemesis.schedulers, []
            shard.nemesis.heal()
            shard.nemesis.schedulers = schedulers
        for node in self.nodes:
            node.store_back_at = 0.0
            node.wake()
            node.start()

    # -- what must hold ---------------------------------------------------------------------

    def _check_owners(self) -> None:
        """Each shard has an owner, or gets one: it was given back just now. Raises: Violation."""
        world = self.world
        before = world.now - HANDED_OVER_S
        unserved = [one.shard for one in self.shards if not one.is_served()]
        if unserved and all(shard.released_at >= before for shard in unserved):
            world.run_until(world.now + HANDED_OVER_S, stop=self._check, every=CHECK_EVERY_STEPS)
            unserved = [one.shard for one in self.shards if not one.is_served()]
        for shard in unserved:
            raise Violation("I39", f"shard {shard.number} has no owner; the last was {shard.owner}")

    def _check_moves(self, since: float) -> None:
        for one in self.shards:
            calm = [at for at in one.shard.moves if at >= since]
            for first, second in pairwise(calm):
                if second - first < KEEP_S:
                    raise Violation("I39", f"shard {one.number} moved at {first} and {second}")
            if len(calm) > 2:
                raise Violation("I39", f"shard {one.number} moved {len(calm)} times: {calm}")


def draw_shards(seed: int) -> tuple[list[Config], int]:
    """Two to four shards, each with the world of another seed, and two to four nodes."""
    world = World(seed)
    count, nodes = world.rng.randint(2, 4), world.rng.randint(2, 4)
    configs = []
    for number in range(count):
        drawn = draw(seed * 31 + number)
        faults = tuple(one for one in drawn.faults if one not in OF_NODES)
        # How much a map returns inline is a constant of the product: it cannot differ between shards.
        configs.append(drawn.shrink(faults=faults, gone=False, stored=False))
    return configs, nodes


def draw_poison(seed: int) -> Poison | None:
    """Drawn apart from the world, which is the same without it."""
    return Random(f"poison {seed}").choice((None, None, "placing", "restoring"))


def simulate_cluster(
    seed: int,
    config: Config | None = None,
    *,
    keep_transcript: bool = False,
    kind: type[ClusterSimulation] = ClusterSimulation,
) -> Outcome:
    """Run one seed to its end. `config`: that of every shard; `kind`: what is simulated."""
    configs, nodes = draw_shards(seed)
    if config is not None:
        configs = [config] * len(configs)
    simulation = kind(seed, configs, nodes, keep_transcript=keep_transcript)
    if config is None and kind is ClusterSimulation:
        simulation.poison = draw_poison(seed)
    violation = violation_of(simulation.run)
    world = simulation.world
    timelines = [line for shard in simulation.shards for line in shard.timelines()]
    return Outcome(
        configs[0].shrink(seed=seed),
        violation,
        world.seen,
        world.digest(),
        sum(shard.checkers.attempts.executions for shard in simulation.shards),
        world.steps,
        timelines if violation is not None else [],
        world.transcript or [],
    )

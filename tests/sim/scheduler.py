"""A simulated scheduler process: the real engine and gateway, with the shell replaced by this file.

It dies with everything in memory; what is left is the store. While it is paused the world goes on, and what
arrives waits in its sockets; when it wakes it reads all of that before it lets time pass (PROTOCOL §5.4).
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any

import msgspec

from astraflow.core.engine.batch import Batch
from astraflow.core.engine.commands import CancelRun, OperatorCommand, SubmitRun
from astraflow.core.engine.effects import (
    AnswerCallback,
    Effect,
    EndPush,
    ReadList,
    ReplyToCaller,
    SendDispatch,
    SendExport,
    SendInstall,
    StoreValue,
)
from astraflow.core.engine.engine import Engine
from astraflow.core.engine.ownership import Ownership
from astraflow.core.engine.settings import EngineSettings
from astraflow.core.fleet.resources import GONE
from astraflow.core.fleet.rollouts import RolloutRecord
from astraflow.core.fleet.versions import EVERY_TENANT, ActiveVersionRecord, PublishedVersion
from astraflow.core.fleet.workers import WorkerRegistered
from astraflow.core.ids import RunId
from astraflow.core.protocol.codec import BadFrame
from astraflow.core.protocol.events import Conn, GatewaySettings, SendFrame
from astraflow.core.protocol.wire import Envelope
from astraflow.core.runs.callbacks import Callback
from astraflow.scheduler.fleet_rows import install_of, pool_of, resource_of, write_fleet
from astraflow.scheduler.shard_lanes import ONLY_LANES
from astraflow.store.rows import Changes, WorkerRow
from tests.sim.clock import Clock
from tests.sim.config import Config
from tests.sim.keeping import EXTRA, NEXT
from tests.sim.map_values import MapValues
from tests.sim.network import Connection, Network
from tests.sim.pools import Pools
from tests.sim.store import CommitOutcome, Store
from tests.sim.wire import SimIds, authenticate, through_codec, tokens_for
from tests.sim.world import World

if TYPE_CHECKING:
    from tests.sim.checkers import Checkers

__all__ = ["SchedulerProcess"]

PUBLISHED = [PublishedVersion(EVERY_TENANT, *key, "0" * 64) for key in (EXTRA, NEXT)]
"""What the repository of the simulation has."""
COPY = msgspec.Raw(b'{"copyUrl":"sim://copy"}')


def rows_of(batch: Batch) -> Changes:
    """The rows of what workers keep, as the row writer makes them."""
    changes = Changes()
    for change in batch.fleet:
        fact = change.fact
        if isinstance(fact, WorkerRegistered):
            row = WorkerRow(
                tenant=fact.tenant,
                worker_id=fact.worker_id,
                subject="",
                incarnation=fact.incarnation,
            )
            changes.workers.append(row)
    if batch.fleet:
        list(write_fleet(changes, batch.fleet, ONLY_LANES))
    return changes


class SchedulerProcess:
    """One scheduler: standing by, serving, paused or dead."""

    def __init__(
        self,
        world: World,
        config: Config,
        name: str,
        store: Store,
        network: Network,
        checkers: Checkers,
        clock: Clock,
    ) -> None:
        self.world = world
        self.config = config
        self.name = name
        self.store = store
        self.network = network
        self.checkers = checkers
        self.clock = clock
        self.engine: Engine | None = None
        self.is_paused = False
        self.is_dead = True
        self.store_back_at = 0.0  # until then the store does not hear it
        self.pools: Pools | None = None
        self.values = MapValues(world, store)
        self.life = 0  # grows at every start, stop and crash: what was planned before is void
        self._conns: dict[Conn, Connection] = {}
        self._inbox: list[tuple[str, Any, Any]] = []
        self._committing = False
        self._changes = Changes()
        self._tick_at: float | None = None

    # -- life -------------------------------------------------------------------------------

    @property
    def is_serving(self) -> bool:
        return self.engine is not None and not self.is_paused and not self.is_dead

    @property
    def _reaches_store(self) -> bool:
        return self.world.now >= self.store_back_at

    def start(self) -> None:
        if not self.is_dead:
            return
        self.is_dead = False
        self.life += 1
        self._stand_by(self.life)

    def _stand_by(self, life: int) -> None:
        if life != self.life or self.is_dead:
            return
        if self.is_paused or not self._reaches_store:
            self.world.after(0.5, self._stand_by, life)
            return
        epoch = self.store.acquire(self.name)
        if epoch is None:
            self.world.after(0.5, self._stand_by, life)
            return
        if epoch > 1 and self.store.owner == self.name:
            self.world.log(f"{self.name} owns the shard, epoch {epoch}")
        self._open(epoch)

    def _open(self, epoch: int) -> None:
        config, now = self.config, self.clock.now()
        ownership = Ownership(epoch, self.store.LEASE_TTL_S, now)
        rng = Random(self.world.rng.getrandbits(64))
        gateway = self.checkers.gateway_class(
            scheduler_id=self.name,
            ids=SimIds(self.world),
            rng=rng,
            settings=GatewaySettings(
                window=config.window,
                heartbeat_interval_s=config.heartbeat_s,
                lease_ttl_s=config.lease_s,
            ),
            authenticate=authenticate,
            tokens=tokens_for(config),
            may_speak=ownership.may_speak,
        )
        gateway.checkers = self.checkers
        self.engine = Engine(self._settings(), gateway, ownership, rng, now)
        at = self.clock.wall_ms()
        for (tenant, worker_id), incarnation in self.store.incarnations.items():
            self.engine.restore_worker(tenant, worker_id, None, incarnation)
        self._restore_fleet(self.engine, at)
        for run in self.store.active():
            self.engine.restore(run.plan, run.bare_facts(), now, at)
        for (tenant, key), (fingerprint, run_id) in self.store.submissions.items():
            self.engine.remember_submission(tenant, key, fingerprint, RunId(run_id))
        self._serve()

    def _restore_fleet(self, engine: Engine, at: int) -> None:
        for pool in self.store.pools.values():
            engine.restore_pool(pool_of(pool))
        for row in self.store.resources.values():
            if row.state not in GONE:
                engine.restore_resource(resource_of(row))
        for intent in self.store.intents.values():
            engine.restore_install(install_of(intent))
        for active in self.store.active_versions.values():
            engine.restore_version(ActiveVersionRecord(*msgspec.structs.astuple(active)))
        for rollout in self.store.rollouts.values():
            if rollout.state == "running":
                engine.restore_rollout(msgspec.json.decode(rollout.body, type=RolloutRecord))
        for key in self.store.affinities.values():
            age_s, left_s = (at - key.acquired_at) / 1000, (key.expires_at - at) / 1000
            engine.restore_affinity(key.tenant, key.key, key.worker_id, age_s, left_s)

    def _settings(self) -> EngineSettings:
        return EngineSettings(
            lease_ttl_s=self.config.lease_s,
            heartbeat_interval_s=self.config.heartbeat_s,
            dispatch_ack_timeout_s=2.0,
            cancel_grace_ms=1000,
            stop_overdue_s=3.0,
            timeout_slack_s=1.0,
            resource_grace_s=1.0 if self.config.copies else 6.0,
            affinity_grace_s=6.0,
            keeps_copies=self.config.copies or self.config.stored,
        )

    def _serve(self) -> None:
        assert self.engine is not None
        for version in PUBLISHED:
            self.engine.publish(version)
        self._committing = False
        self._tick_at = None
        self.world.after(0.0, self._renew, self.life)
        self._pump()

    def _renew(self, life: int) -> None:
        if life != self.life or self.engine is None:
            return
        if self.is_paused:
            self.world.after(0.1, self._renew, life)
            return
        sent_at = self.clock.now()
        if self._reaches_store:
            self.world.after(self.world.delay(0.01), self._renewed, life, sent_at)
        self.world.after(1.0, self._renew, life)

    def _renewed(self, life: int, sent_at: float) -> None:
        if life != self.life or self.engine is None or self.is_dead:
            return
        if not self.store.renew(self.engine.ownership.epoch):
            self.checkers.seen("superseded")
            self.close("superseded")
            return
        if not self.is_paused:
            self.engine.ownership.renewed(sent_at)

    def crash(self) -> None:
        """kill -9: every object in memory is gone, every socket breaks."""
        self.world.log(f"{self.name} crashes")
        self.checkers.pairs.everywhere("restarts")
        self._drop()
        self.is_dead = True
        self.is_paused = False

    def close(self, why: str) -> None:
        """Give the shard up and stand by again with nothing in memory."""
        self.world.log(f"{self.name} starts over: {why}")
        self._drop()
        self.world.after(0.05, self._stand_by, self.life)

    def _drop(self) -> None:
        self.life += 1
        if self.engine is not None:
            self.checkers.scheduler_gone(self)
        self.engine = None
        self._inbox.clear()
        self._conns.clear()
        self._end_connections()

    def _end_connections(self) -> None:
        for conn in self.network.of_scheduler(self):
            self.network.break_connection(conn)

    def pause(self) -> None:
        self.is_paused = True

    def wake(self) -> None:
        if not self.is_paused:
            return
        self.is_paused = False
        if self.engine is None:
            return
        inbox, self._inbox = self._inbox, []
        for kind, one, two in inbox:
            self._handle(kind, one, two)
        self.engine.tick(self.clock.now(), self.clock.wall_ms())
        self._pump()

    # -- the network's end ------------------------------------------------------------------

    def accept_connection(self, conn: Connection) -> None:
        self._input("opened", conn, None)

    def frame_arrived(self, conn: Connection, envelope: Envelope) -> None:
        self._input("frame", conn, envelope)

    def connection_broken(self, conn: Connection) -> None:
        self._input("broken", conn, None)

    def submit(self, request: SubmitRun) -> None:
        self._input("submit", request, None)

    def cancel(self, request: CancelRun) -> None:
        self._input("cancel", request, None)

    def callback(self, callback: Callback) -> None:
        self._input("callback", callback, None)

    def execute(self, command: OperatorCommand) -> None:
        """Raises: what it is refused with."""
        if self.engine is not None and not self.is_dead and not self.is_paused:
            self.engine.execute(command, self.clock.now(), self.clock.wall_ms())
            self._pump()

    def _input(self, kind: str, one: Any, two: Any) -> None:
        if self.is_dead or self.engine is None:
            return
        if self.is_paused:
            self._inbox.append((kind, one, two))
            return
        self._handle(kind, one, two)
        self._pump()

    def _handle(self, kind: str, one: Any, two: Any) -> None:
        engine = self.engine
        if engine is None:
            return
        now, at = self.clock.now(), self.clock.wall_ms()
        if kind == "frame":
            if one.name in self._conns:
                self._receive(engine, one.name, two, now, at)
        elif kind == "opened":
            self._conns[one.name] = one
            engine.opened(one.name, now)
        elif kind == "broken":
            if self._conns.pop(one.name, None) is not None:
                engine.closed(one.name, now, at)
        elif kind == "submit":
            engine.submit(one, now, at)
        elif kind == "callback":
            if not engine.callback(one, now, at):
                assert self.pools is not None
                one.token(self.pools.judge_ended(one))
        else:
            engine.cancel(one, now, at)

    def _receive(self, engine: Engine, conn: str, envelope: Envelope, now: float, at: int) -> None:
        if self.config.with_codec:
            try:
                envelope = through_codec(envelope)
            except BadFrame as error:
                engine.bad_frame(conn, error, now, at)
                return
        engine.receive(conn, envelope, now, at)

    # -- commit, then speak -----------------------------------------------------------------

    def _pump(self) -> None:
        while self.engine is not None and not self.is_paused:
            now, at = self.clock.now(), self.clock.wall_ms()
            batch = None if self._committing else self.engine.take_batch(now, at)
            if batch is None:
                break
            if not self._is_stored(batch):
                self._committed(batch)
            else:
                self._commit(batch)
        self._speak()
        self._schedule_tick()

    def _commit(self, batch: Batch) -> None:
        self._write_down(batch)
        mean = self.config.commit_delay_s
        if mean == 0.0:
            self._write(self.life, batch)
            return
        self._committing = True
        self.world.after(self.world.delay(mean), self._write, self.life, batch)

    def _write(self, life: int, batch: Batch) -> None:
        if life != self.life or self.engine is None or self.is_dead:
            return
        if not self._reaches_store:
            self._committing = True
            self.world.after(0.2, self._write, life, batch)
            return
        outcome = self._store(batch)
        if not self._committing:
            self._written(life, batch, outcome)
        else:
            # A crash here is one after the commit and before anybody was told of it.
            delay = self.world.delay(self.config.commit_delay_s)
            self.world.after(delay, self._written, life, batch, outcome)

    def _written(self, life: int, batch: Batch, outcome: CommitOutcome) -> None:
        if life != self.life or self.engine is None or self.is_dead:
            return
        if self.is_paused:
            self.world.after(0.05, self._written, life, batch, outcome)
            return
        was_committing, self._committing = self._committing, False
        if outcome in (CommitOutcome.UNKNOWN_WRITTEN, CommitOutcome.UNKNOWN_LOST):
            # R16: read back, never guess.
            self.checkers.seen("unknown commit resolved")
            outcome = CommitOutcome.DONE if self._is_written(outcome) else CommitOutcome.REFUSED
        if outcome is CommitOutcome.FENCED:
            self.checkers.seen("superseded")
        if outcome is not CommitOutcome.DONE:
            self.close(outcome.value)
            return
        self._publish()
        self._committed(batch)
        if was_committing:
            self._pump()

    def _committed(self, batch: Batch) -> None:
        assert self.engine is not None
        batch.effects[:] = map(_signed, batch.effects)
        self.engine.committed(batch, self.clock.now(), self.clock.wall_ms())

    # What another store does otherwise.

    def _is_stored(self, batch: Batch) -> bool:
        return batch.has_facts

    def _write_down(self, batch: Batch) -> None:
        self._changes = rows_of(batch)

    def _store(self, batch: Batch) -> CommitOutcome:
        assert self.engine is not None
        return self.store.commit(self.engine.ownership.epoch, batch, self._changes)

    def _is_written(self, outcome: CommitOutcome) -> bool:
        return outcome is CommitOutcome.UNKNOWN_WRITTEN

    def _publish(self) -> None:
        """What was committed may be told to those who follow it."""

    def _speak(self) -> None:
        if self.engine is None:
            return
        outputs = self.engine.take_output()
        if outputs and not self.store.is_healed and self.world.chance(self.config.mute_crash):
            # After the commit, and before anybody hears of it.
            self.crash()
            self.world.after(0.05 + self.world.rng.random(), self.start)
            return
        for output in outputs:
            conn = self._conns.get(output.conn)
            if conn is None:
                continue
            if isinstance(output, SendFrame):
                self.network.send(conn, True, output.envelope)
            else:
                del self._conns[output.conn]
                self.network.close(conn)
        for effect in self.engine.take_shell_effects():
            if isinstance(effect, ReplyToCaller):
                effect.token(effect)  # type: ignore[operator]
            elif isinstance(effect, AnswerCallback):
                effect.token(effect.answer)  # type: ignore[operator]
            elif isinstance(effect, StoreValue | ReadList):
                self.values.perform(self, effect)
            elif self.pools is not None and isinstance(effect, SendDispatch):
                self.pools.push(self, effect)
            elif self.pools is not None and isinstance(effect, EndPush):
                self.pools.end(effect.task_id, effect.attempt)

    def _schedule_tick(self) -> None:
        if self.engine is None:
            return
        deadline = self.engine.deadline()
        if deadline is None:
            self._tick_at = None
            return
        when = max(self.clock.true_time(deadline) + 1e-9, self.world.now + 1e-6)
        if self._tick_at is None or when < self._tick_at or self._tick_at <= self.world.now:
            self._tick_at = when
            self.world.at(when, self._tick, self.life, when)

    def _tick(self, life: int, when: float) -> None:
        if life != self.life or when != self._tick_at:
            return
        self._tick_at = None
        if self.is_paused or self.engine is None:
            return  # waking ticks
        self.engine.tick(self.clock.now(), self.clock.wall_ms())
        self._pump()


def _signed(effect: Effect) -> Effect:
    """As the shell does: add the URLs."""
    if isinstance(effect, SendInstall | SendExport):
        return msgspec.structs.replace(effect, url="sim://somewhere")
    if isinstance(effect, SendDispatch) and effect.copies:
        refs = tuple(
            ref if copy is None else msgspec.structs.replace(ref, metadata=COPY)
            for ref, copy in zip(effect.dispatch.resource_refs, effect.copies, strict=True)
        )
        dispatch = msgspec.structs.replace(effect.dispatch, resource_refs=refs)
        return msgspec.structs.replace(effect, dispatch=dispatch)
    return effect

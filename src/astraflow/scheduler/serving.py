"""Serving: everything that lives as long as one claim on the store.

It is restored from the store, and discarded whole when the store fails or another scheduler takes over, so that no
state in memory outlives the claim (engine Rule 4).
"""

from __future__ import annotations

import asyncio
import gc
from contextlib import contextmanager
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Final

import msgspec

from astraflow.clock import Clock
from astraflow.core import errors
from astraflow.core.cluster.lanes import tenant_of_lane
from astraflow.core.engine.engine import Engine
from astraflow.core.engine.ownership import Ownership
from astraflow.core.engine.settings import EngineSettings
from astraflow.core.facts_version import FACTS_VERSION
from astraflow.core.fleet.resources import GONE
from astraflow.core.fleet.rollouts import RolloutRecord
from astraflow.core.fleet.versions import ActiveVersionRecord
from astraflow.core.fleet.workers import DrainIntent
from astraflow.core.ids import IdSource
from astraflow.core.protocol.events import Authenticate, GatewaySettings, ResumeTokens
from astraflow.core.protocol.gateway import Gateway
from astraflow.core.runs.facts import Fact
from astraflow.core.workflow.plan import Plan
from astraflow.scheduler.audit_head_log import AuditHeadLog
from astraflow.scheduler.confirmed_time import ConfirmedTime
from astraflow.scheduler.ended_runs import EndedRuns
from astraflow.scheduler.feed import Feed
from astraflow.scheduler.fleet_rows import install_of, pool_of, resource_of, tenant_of
from astraflow.scheduler.frame_quarantine import FrameQuarantine
from astraflow.scheduler.oidc_terms import OidcTerms
from astraflow.scheduler.other_shards import NO_OTHER_SHARDS, OtherShards
from astraflow.scheduler.plans import Plans
from astraflow.scheduler.repository import published_version
from astraflow.scheduler.row_writer import RowWriter
from astraflow.scheduler.run_traces import RunTraces
from astraflow.scheduler.sent_audits import keep_restored_audits, keep_sent_audits
from astraflow.scheduler.shard_lanes import ONLY_LANES, ShardLanes
from astraflow.scheduler.shell_effects import ShellEffects
from astraflow.scheduler.stale_values import close_stale_values
from astraflow.scheduler.stale_workers import forget_stale_workers
from astraflow.scheduler.store_timeouts import STALL_TIMEOUT_S
from astraflow.scheduler.writer import Reached, Writer, WriterGauge
from astraflow.store.rows import RunRow
from astraflow.store.store import HOME_SHARD, Claim, Retention, Store

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence

    from astraflow.store.cluster import StoredCluster

RENEW_RATIO: Final = 0.2
"""A claim is renewed five times in its life, so that one lost renewal costs nothing."""

SWEEP_EVERY_S: Final = 60.0
SWEEP_PAUSE_S: Final = 0.05
"""Between two pieces of one sweep, so that commits go between them."""

IS_FULL: Final = "is_full"
"""The value of the site that says whether the store has passed its bound."""

READERS: Final = 32
"""Runs that are read at once while a scheduler starts."""
PLANS_AT_ONCE: Final = 2
"""One is read while another is decoded. A large one takes 30 MB meanwhile."""


class Parts(msgspec.Struct, frozen=True):
    """What a scheduler is made of, as the process that starts it gives it."""

    scheduler_id: str
    store: Store
    clock: Clock
    ids: IdSource
    rng: Random
    engine: EngineSettings
    gateway: GatewaySettings
    retention: Retention
    authenticate: Authenticate
    tokens: ResumeTokens
    gauge: WriterGauge
    reached: Reached
    session_ttl_s: int = 7 * 24 * 3600
    session_idle_s: int = 12 * 3600
    requests_per_second: float | None = None
    oidc: OidcTerms | None = None
    base_url: str = ""
    """Where it is reached from outside; empty: that is not known."""
    traces: RunTraces = msgspec.field(default_factory=RunTraces)
    lanes: ShardLanes = ONLY_LANES
    """Which lanes of tenants live in the shard of the store that is claimed."""
    others: OtherShards = NO_OTHER_SHARDS
    several_lanes: bool = False
    """Whether tenants may get several lanes."""
    cluster: StoredCluster | None = None
    """What the schedulers that share the store tell one another; None: it has one scheduler."""


class Serving:
    """One engine with what surrounds it, under one claim."""

    def __init__(self, parts: Parts, claim: Claim, writer: Writer, ownership: Ownership) -> None:
        self.claim = claim
        self.writer = writer
        self._parts = parts
        self._ownership = ownership
        self._time = ConfirmedTime(parts.clock)
        self._heads_log = AuditHeadLog()
        self._sweeping = asyncio.Lock()
        self.is_full = False
        """Whether the store has passed its bound: then it takes no new run."""

    @property
    def engine(self) -> Engine:
        return self.writer.engine

    def problem(self) -> str | None:
        """Why nothing can be decided now, if so: the store has not answered for too long."""
        silent_s = self.writer.silent_s()
        if silent_s > STALL_TIMEOUT_S:
            return f"the store has not answered a commit for {silent_s:.0f} s"
        if not self._ownership.may_speak(self._parts.clock.now()):
            return "the store does not answer: the claim could not be renewed in time"
        return None

    async def run(self, *beside: Coroutine[None, None, None]) -> None:
        """Serve until the store fails or the claim is lost; `beside` are endless, too.

        Raises:
            StoreError: why.
        """
        tasks = [self.writer.run(), self._sweep(), *beside]
        if self.claim.ttl_s is not None:
            tasks.append(self._renew(self.claim.ttl_s))
            tasks.append(keep_sent_audits(self._parts.store, self.writer))
        else:
            tasks.append(keep_restored_audits(self._parts.store, self.writer))
        await _first_to_fail(tasks)

    async def _renew(self, ttl_s: float) -> None:
        clock = self._parts.clock
        while True:
            await asyncio.sleep(ttl_s * RENEW_RATIO)
            sent_at = clock.now()
            try:
                is_ours = await self._parts.store.renew(self.claim)
            except errors.StoreError as error:
                if error.code is not errors.STORE_UNAVAILABLE:
                    raise
                continue  # past its right to speak the engine falls silent by itself
            if not is_ours:
                raise errors.StoreError(errors.STORE_FENCED, "another scheduler has taken over")
            self._ownership.renewed(sent_at)

    async def _sweep(self) -> None:
        while True:
            await self.sweep()
            await asyncio.sleep(SWEEP_EVERY_S)

    async def sweep(self) -> None:
        """Remove what is past its retention, and see whether there is room for more."""
        async with (
            self._sweeping
        ):  # of two at once the later one must have the last word about the room
            await self._sweep_once(self._parts)

    async def _sweep_once(self, parts: Parts) -> None:
        if self.claim.shard != HOME_SHARD:
            await self._after_sweep(parts)
            return
        while True:
            swept = await parts.store.sweep(self.claim, parts.retention, self._time.wall_ms())
            if swept.runs:
                self.writer.feed.tapes.clear()
            if not swept.more:
                break
            await asyncio.sleep(SWEEP_PAUSE_S)
        usage = await parts.store.usage()
        limit = parts.retention.max_bytes
        # What is active is never swept, so that the bound may be passed by it alone.
        self.is_full = limit is not None and usage.bytes > limit
        parts.gauge.stored(usage.bytes)
        if self.claim.ttl_s is not None:
            await self._tell_room(parts.store)
        await self._tidy(parts)

    async def _tell_room(self, store: Store) -> None:
        """Tell the owners of other shards whether the store takes new runs."""
        full = "yes" if self.is_full else "no"
        if await store.find_site(IS_FULL) != full:
            await store.put_site(self.claim, IS_FULL, full)

    async def _after_sweep(self, parts: Parts) -> None:
        """The owner of the home shard sweeps the whole store. Which runs it has removed is not known here."""
        self.writer.feed.tapes.clear()
        self.is_full = await parts.store.find_site(IS_FULL) == "yes"
        await self._tidy(parts)

    async def _tidy(self, parts: Parts) -> None:
        """Remove what the engine alone knows to be over."""
        self._heads_log.log(self.writer.rows.audit_chains, parts.clock.now())
        forget_stale_workers(self.writer, parts.retention.workers_s, self._time.wall_ms())
        await close_stale_values(parts.store, self.writer)


async def _first_to_fail(endless: Sequence[Coroutine[None, None, None]]) -> None:
    """Run endless tasks until one fails; end the others and raise what it failed with.

    Not a task group: when one of its tasks fails just as it is cancelled, a group forgets the cancel, and a scheduler
    that was told to stop would restart.
    """
    tasks = [asyncio.create_task(one) for one in endless]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        first = next((task for task in tasks if task.done()), None)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    assert first is not None
    await first


async def open_serving(
    parts: Parts,
    claim: Claim,
    plans: Plans,
    feed: Feed,
    effects: ShellEffects,
    quarantine: FrameQuarantine | None = None,
) -> Serving:
    """Restore what is stored: active runs, workers, submissions."""
    store, clock = parts.store, parts.clock
    ownership = Ownership(claim.epoch, claim.ttl_s, clock.now())
    gateway = Gateway(
        scheduler_id=parts.scheduler_id,
        ids=parts.ids,
        rng=parts.rng,
        authenticate=parts.authenticate,
        tokens=parts.tokens,
        settings=parts.gateway,
        may_speak=ownership.may_speak,
    )
    engine = Engine(parts.engine, gateway, ownership, parts.rng, clock.now())
    engine.set_parked(claim.is_parked)
    parts.reached(f"restoring/{claim.shard}")
    written = await _facts_to_write(store, claim)
    engine.let_write(written)
    rows = await store.active_runs()
    workers = await store.workers()
    await (
        parts.lanes.refresh()
    )  # after the claim: an owner knows of every lane that was opened before
    for tenant, lanes in parts.lanes.several().items():
        engine.set_lanes(tenant, lanes, clock.now(), clock.wall_ms())
    for worker in workers:
        tenant = tenant_of_lane(worker.tenant)
        gateway.bind(tenant, worker.worker_id, worker.subject, worker.incarnation)
        drain = worker.drain and msgspec.json.decode(worker.drain, type=DrainIntent)
        engine.restore_worker(tenant, worker.worker_id, drain or None, worker.incarnation)
    # Before the runs: where a task can go depends on where its resources are, and who has its affinity key.
    for row in await store.tenants():
        engine.restore_tenant(tenant_of(row))
    for pool in await store.pools():
        engine.restore_pool(pool_of(pool))
    await _restore_fleet(parts, engine)
    await _restore_affinities(parts, engine)
    await _restore(parts, engine, plans, rows, partial(_hold, parts, claim, ownership))
    since = clock.wall_ms() - int(parts.engine.remember_submissions_s * 1000)
    for known in await store.submissions(since):
        engine.remember_submission(known.tenant, known.key, known.fingerprint, known.run_id)
    heads = await store.event_heads(), await store.audit_heads()
    row_writer = RowWriter(rows, workers, *heads, claim, parts.lanes, written)
    await _hold(parts, claim, ownership)
    writer = Writer(
        engine,
        store,
        claim,
        row_writer,
        effects,
        feed,
        clock,
        parts.gauge,
        parts.reached,
        quarantine,
        parts.traces,
    )
    return Serving(parts, claim, writer, ownership)


async def _facts_to_write(store: Store, claim: Claim) -> int:
    """Up to which version facts are written, read under the claim: so this release reads what a former owner of the
    shard has written. A scheduler that is alone writes all that it reads; of several, the node raises the version.

    Raises:
        StoreError: this release does not read them.
    """
    if claim.ttl_s is None:
        await store.raise_written_facts(claim, FACTS_VERSION)
    return await store.written_facts()


async def _restore_fleet(parts: Parts, engine: Engine) -> None:
    """What workers keep, what is intended of them, and the versions and rollouts of packages."""
    store = parts.store
    for row in await store.resources():
        if row.state not in GONE:
            engine.restore_resource(resource_of(row))
    for intent in await store.intents():
        engine.restore_install(install_of(intent))
    for package in await store.packages():
        engine.restore_version(published_version(package))
    for active in await store.active_versions():
        engine.restore_version(ActiveVersionRecord(*msgspec.structs.astuple(active)))
    for rollout in await store.rollouts(["running"]):
        engine.restore_rollout(msgspec.json.decode(rollout.body, type=RolloutRecord))


async def _restore_affinities(parts: Parts, engine: Engine) -> None:
    """Which keys are whose. That their workers are back is not known yet."""
    wall_ms = parts.clock.wall_ms()
    for key in await parts.store.affinities():
        age_s = (wall_ms - key.acquired_at) / 1000
        left_s = (key.expires_at - wall_ms) / 1000
        engine.restore_affinity(key.tenant, key.key, key.worker_id, age_s, left_s)


async def _hold(parts: Parts, claim: Claim, ownership: Ownership) -> None:
    """Keep the claim through a long start, and be sure that nobody else has written since what was read.

    Raises:
        StoreError: another scheduler has taken over.
    """
    if claim.ttl_s is None:
        return
    sent_at = parts.clock.now()
    if not await parts.store.renew(claim):
        raise errors.StoreError(errors.STORE_FENCED, "another scheduler has taken over")
    ownership.renewed(sent_at)


async def _restore(
    parts: Parts,
    engine: Engine,
    plans: Plans,
    rows: list[RunRow],
    hold: Callable[[], Awaitable[None]],
) -> None:
    """Fold every active run. Read some at once: a start with ten thousand runs is waited for."""
    ended = EndedRuns(parts.store, plans)
    known: dict[str, Plan] = {}
    with _collector_paused():
        plan_ids = list(dict.fromkeys(row.plan_id for row in rows))
        for start in range(0, len(plan_ids), PLANS_AT_ONCE):
            wanted = plan_ids[start : start + PLANS_AT_ONCE]
            found = await asyncio.gather(*map(plans.find, wanted))
            known.update(zip(wanted, found, strict=True))
        for start in range(0, len(rows), READERS):
            some = rows[start : start + READERS]
            read: list[list[Fact]] = await asyncio.gather(
                *(ended.facts(row.run_id) for row in some)
            )
            await hold()
            for row, facts in zip(some, read, strict=True):
                now, at = parts.clock.now(), parts.clock.wall_ms()
                engine.restore(known[row.plan_id], facts, now, at, row.attempt_floor)
                await asyncio.sleep(0)  # a node that serves other shards goes on with them


@contextmanager
def _collector_paused() -> Iterator[None]:
    """What is restored stays: to look for garbage among a million new tasks took a second of a start."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()

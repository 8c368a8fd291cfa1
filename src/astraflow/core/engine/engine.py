"""The engine: the pure half of a scheduler, with its sessions.

A shell drives it so, and does nothing else with it::

    engine.opened(conn, …) / engine.receive(conn, envelope, …) / engine.closed(conn, …)
    engine.submit(…) / engine.cancel(…) / engine.tick(…)
    batch = engine.take_batch(…)      # decided, not yet true
    … commit batch.facts in one transaction, with the epoch …
    engine.committed(batch, …)        # true: acknowledge, dispatch, accept
    for out in engine.take_output(): …

Rule 1: commit, then speak. Nothing that depends on a fact leaves before `committed`.
Rule 2: heartbeats are answered without a transaction: the lease they renew is not stored.
Rule 3: one batch at a time, in order: the next is taken after `committed`. A batch without facts may still say what
        follows from the one before it (the ack of a report that came twice), so it must not overtake that one.
Rule 4: an engine whose batch could not be committed is discarded, with all its sessions, and restored from
        the store. A commit whose outcome is unknown is first read back (R16).
Rule 5: an engine that fails in the middle of an input is discarded, too, because its state may be half changed
        (`InputFailed` says whose input). One exception: when the session layer fails, before anything of a run is
        touched, only that session is half changed, and only it is discarded (`SessionFailed`, `abandon`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from math import inf
from typing import TYPE_CHECKING, assert_never

from astraflow.core import errors
from astraflow.core.engine.batch import Batch
from astraflow.core.engine.callbacks import on_callback
from astraflow.core.engine.command_table import COMMANDS
from astraflow.core.engine.commands import (
    CancelRun,
    ConfigureTenant,
    ForgetWorker,
    KeepAudit,
    OperatorCommand,
    SubmitRun,
)
from astraflow.core.engine.effects import ShellEffect
from astraflow.core.engine.intake import cancel_run, submit_run
from astraflow.core.engine.lanes import TenantLanes, greet_worker, set_lanes, tell_hunger
from astraflow.core.engine.operations import forget_worker
from astraflow.core.engine.ownership import Ownership
from astraflow.core.engine.placing import place
from astraflow.core.engine.queries import Queries
from astraflow.core.engine.recovery import restore_run
from astraflow.core.engine.reports import on_delivered, on_refused
from astraflow.core.engine.rollouts import watch_rollouts
from astraflow.core.engine.sending import Sending
from astraflow.core.engine.sessions import (
    on_acked,
    on_heartbeat,
    on_missed,
    on_register,
    on_session_ended,
    on_slots,
)
from astraflow.core.engine.settings import EngineSettings
from astraflow.core.engine.tenants import configure_tenant, use_policy
from astraflow.core.engine.timeouts import (
    expire_affinities,
    expire_leases,
    lose_link,
    notice_links,
    on_timer,
    withdraw_unacked,
)
from astraflow.core.engine.view import View
from astraflow.core.engine.wait_facts import record_wait_reasons
from astraflow.core.fleet.installs import InstallIntent
from astraflow.core.fleet.pools import PoolRecord
from astraflow.core.fleet.resources import ResourceRecord
from astraflow.core.fleet.rollouts import RolloutRecord
from astraflow.core.fleet.tenants import TenantRecord
from astraflow.core.fleet.versions import ActiveVersionRecord, PublishedVersion
from astraflow.core.fleet.workers import DrainIntent, PoolConfigured, WorkerBound
from astraflow.core.ids import RunId
from astraflow.core.protocol.events import (
    Acked,
    CloseConnection,
    Delivered,
    FrameRefused,
    GatewayEvent,
    HeartbeatArrived,
    IdentityBound,
    Missed,
    PeerError,
    Principal,
    RegisterArrived,
    SendFrame,
    SessionAudited,
    SessionEnded,
    SlotsArrived,
)
from astraflow.core.protocol.gateway import Gateway
from astraflow.core.protocol.wire import Envelope
from astraflow.core.runs.callbacks import Callback
from astraflow.core.runs.commands import Fail
from astraflow.core.runs.facts import Fact
from astraflow.core.workflow.plan import Plan

if TYPE_CHECKING:
    from random import Random


class SessionFailed(Exception):
    """The session layer failed at a frame of this connection; call `abandon`, and the engine is whole."""


class InputFailed(Exception):
    """The engine failed at something of this worker; it is of no use any more."""

    def __init__(self, tenant: str, worker: str, frame_id: str | None) -> None:
        super().__init__(f"input of worker {worker} of tenant {tenant}")
        self.tenant = tenant
        self.worker = worker
        self.frame_id = frame_id


def earliest(*times: float | None) -> float | None:
    """The first of some points in time, of which any may be missing."""
    first: float | None = None
    for when in times:
        if when is not None and (first is None or when < first):
            first = when
    return first


class Engine:
    """One owner of one shard."""

    def __init__(
        self,
        settings: EngineSettings,
        gateway: Gateway,
        ownership: Ownership,
        rng: Random,
        now: float,
    ) -> None:
        self.view = View(settings, rng, now)
        self.gateway = gateway
        self.ownership = ownership
        self.ask = Queries(self.view)
        self._sending = Sending(self.view, gateway)
        self._wakes_at = now
        self._listen_until = now
        self._say_waiting_at = now
        self._is_silent = False

    # -- starting ---------------------------------------------------------------------------

    def restore(
        self, plan: Plan, facts: Iterable[Fact], now: float, at: int, attempt_floor: int = 0
    ) -> None:
        """Restore an active run from the store; call it for each run before anything else."""
        self._enter(now, at)
        restore_run(self.view, plan, facts, attempt_floor)
        self._fail_unplaceable()

    def remember_submission(
        self, tenant: str, key: str, fingerprint: str | None, run_id: RunId, age_s: float = 0.0
    ) -> None:
        """An idempotency key that is still good, of an active or a finished run."""
        now = self.view.now
        self.view.submissions.remember(tenant, key, fingerprint, run_id, now, age_s)

    def let_write(self, facts_version: int) -> None:
        """Facts up to this version may be written, from the next input on. Call it when the shard is claimed, before
        anything else, and when the version is raised."""
        self.view.let_write(facts_version)

    # -- inputs -----------------------------------------------------------------------------

    def submit(self, request: SubmitRun, now: float, at: int) -> None:
        self._enter(now, at, request.run_id)
        submit_run(self.view, request)
        self._fail_unplaceable()

    def cancel(self, request: CancelRun, now: float, at: int) -> None:
        self._enter(now, at, request.run_id)
        cancel_run(self.view, request)
        self._fail_unplaceable()

    def callback(self, callback: Callback, now: float, at: int) -> bool:
        """A report of an HTTP worker; whether its run is active, and the answer an effect."""
        self._enter(now, at, callback.task_id)
        is_active = on_callback(self.view, callback)
        self._fail_unplaceable()
        return is_active

    def opened(self, conn: str, now: float, certificate: object = None) -> None:
        self.gateway.opened(conn, now, certificate)

    def receive(self, conn: str, envelope: Envelope, now: float, at: int) -> None:
        """A frame that the codec accepted.

        Raises:
            SessionFailed, InputFailed: Rule 5.
        """
        self._enter(now, at, envelope.id)
        try:
            self.gateway.feed(conn, envelope, now, at / 1000)
        except Exception as error:
            raise SessionFailed from error
        self._take_events()
        # Only what opens a connection, or resumes one, is of no seq.
        if envelope.seq is None and self.view.workers.disconnected:
            notice_links(self.view, self.gateway)

    def abandon(self, conn: str, now: float, at: int) -> None:
        """Discard a connection at whose frame the session layer failed, and its session.

        Raises: AssertionError, when there is more that is not whole; InputFailed.
        """
        self._enter(now, at)
        self.gateway.abandon(conn, now)
        self.gateway.check()
        self._take_events()

    def revoke(self, is_over: Callable[[Principal], bool], now: float, at: int) -> None:
        """End the sessions of workers whose credential is over (PROTOCOL §2)."""
        self._enter(now, at)
        if self.gateway.revoke(is_over, now):
            self._take_events()

    def bad_frame(self, conn: str, error: errors.AstraflowError, now: float, at: int) -> None:
        """A frame that the codec refused."""
        self._enter(now, at)
        self.gateway.bad_frame(conn, error, now)
        self._take_events()

    def closed(self, conn: str, now: float, at: int) -> None:
        self._enter(now, at)
        whose = self.gateway.closed(conn, now)
        self._take_events()
        if whose is not None:
            lose_link(self.view, self.gateway, *whose)
            self._take_events()
            self._fail_unplaceable()

    def tick(self, now: float, at: int) -> None:
        """Let time pass. Call it when `deadline` is due, after everything readable was read."""
        self._enter(now, at)
        self._notice_stall(now)
        self._stop_answering(now)
        self.gateway.tick(now, at / 1000)
        self._take_events()
        if now >= self._listen_until:
            expire_leases(self.view)
        self.view.queue.advance(now)
        for timer in self.view.timers.due(now):
            on_timer(self.view, timer)
        withdraw_unacked(self.view, self.gateway)
        expire_affinities(self.view)
        self.view.lanes.wake(now)
        if now >= self._say_waiting_at:
            self._say_waiting_at = now + self.view.settings.say_waiting_after_s
            record_wait_reasons(self.view)
        self._fail_unplaceable()

    def deadline(self) -> float | None:
        """When `tick` is due."""
        view = self.view
        lease_end = view.leases.deadline()
        if lease_end is not None and lease_end < self._listen_until:
            lease_end = self._listen_until
        due = earliest(
            view.now if view.placing.has_more else None,
            lease_end,
            view.queue.deadline(),
            self._say_waiting_at if view.queue.has_sleepers else None,
            view.affinity.deadline(),
            self.gateway.deadline(),
            view.timers.deadline(),
            view.sent.deadline(),
            view.lanes.deadline(),
            None if self._is_silent else self.ownership.deadline(),
        )
        self._wakes_at = inf if due is None else due
        return due

    def set_parked(self, is_parked: bool) -> None:
        """Whether this shard places no task; all else goes on. What is placed already runs to its end."""
        self.view.is_parked = is_parked

    @property
    def is_parked(self) -> bool:
        return self.view.is_parked

    # -- starting: call these before anything is received -------------------------------------

    def restore_worker(
        self,
        tenant: str,
        worker_id: str,
        drain: DrainIntent | None = None,
        incarnation: int = 0,
    ) -> None:
        """A worker that is stored, and the last boot of it that registered."""
        worker = self.view.workers.expect(tenant, worker_id)
        worker.incarnation = incarnation
        worker.drain = drain

    def restore_pool(self, pool: PoolRecord) -> None:
        """An HTTP pool that is stored. Before the runs: their leases may be of it."""
        self.view.workers.apply(PoolConfigured(pool.tenant, self.view.at, pool.worker_id, pool))

    def restore_resource(self, record: ResourceRecord) -> None:
        """A resource that is stored; the worker that keeps it may come back."""
        self.view.resources.put(record)

    def restore_install(self, intent: InstallIntent) -> None:
        """An intent that is stored, confirmed or not; a worker that registers is compared with it."""
        self.view.installs.put(intent)

    def restore_version(self, version: PublishedVersion | ActiveVersionRecord) -> None:
        """A version that is published, or yanked, or set as the active one."""
        if isinstance(version, PublishedVersion):
            self.view.versions.publish(version)
        else:
            self.view.versions.put(version)

    def restore_tenant(self, record: TenantRecord) -> None:
        """A tenant that is stored."""
        self.view.tenants.put(record)
        use_policy(self.view, self.gateway, record)

    def restore_rollout(self, rollout: RolloutRecord) -> None:
        """A rollout that runs."""
        self.view.rollouts.put(rollout)
        watch_rollouts(self.view)

    def restore_affinity(
        self, tenant: str, key: str, worker_id: str, age_s: float, left_s: float
    ) -> None:
        """A key that is stored. Its worker has the grace to come back, as after a loss. Before the runs: their leases
        use some."""
        now = self.view.now
        left_s = min(max(left_s, 0.0), self.view.settings.affinity_grace_s)
        self.view.affinity.restore(tenant, key, worker_id, now - age_s, now + left_s)
        self.view.workers.expect(tenant, worker_id)

    def set_lanes(self, tenant: str, lanes: TenantLanes | None, now: float, at: int) -> None:
        """Which lanes a tenant has beside the one that is decided here; None: it has one."""
        self._enter(now, at)
        set_lanes(self.view, self.gateway, tenant, lanes)

    def forget_want(self, package: tuple[str, str, str]) -> None:
        """A package (tenant, name, version) that tasks of this lane wanted is there, or never will be."""
        self.view.lanes.wanted.pop(package, None)

    def send_away(self, tenants: Collection[str], now: float, at: int) -> None:
        """End the sessions of workers of these tenants: another scheduler decides for them."""
        self._enter(now, at)
        for worker in list(self.view.workers):
            if worker.tenant in tenants and worker.session_id is not None:
                self.gateway.end(worker.session_id, errors.SESSION_MOVED, now)
        self._take_events()

    # -- what operators ask -----------------------------------------------------------------

    def publish(self, version: PublishedVersion) -> None:
        """The repository has a version, or has yanked it, or taken that back; that is stored already."""
        self.view.versions.publish(version)

    def execute(self, command: OperatorCommand, now: float, at: int) -> None:
        """Decide a command of an operator, and keep in the audit log who asked for it.

        Raises:
            AstraflowError: it is refused, and nothing has changed.
        """
        self._enter(now, at, command.corr)
        view = self.view
        if isinstance(command, KeepAudit):
            view.audit(
                command.tenant, command.by, command.what, command.corr, command.code,
                subject=command.subject, at=command.happened_at, sent_id=command.sent_id,
            )  # fmt: skip
            return
        if isinstance(command, ForgetWorker):
            forget_worker(view, self.gateway, command)
        elif isinstance(command, ConfigureTenant):
            configure_tenant(view, self.gateway, command)
        else:
            COMMANDS[type(command)](view, command)
        if command.action:
            worker_id = getattr(command, "worker_id", "")
            view.audit(
                command.tenant, command.by, command.action, command.corr,
                worker_id=worker_id, subject=command.subject,
            )  # fmt: skip
        self._fail_unplaceable()

    # -- commit, then speak -----------------------------------------------------------------

    def take_batch(self, now: float, at: int) -> Batch | None:
        """Place what can be placed, and return what is to be committed; None if there is nothing."""
        self._enter(now, at)
        may_speak = self.ownership.may_speak(now)
        if may_speak and not self.view.is_parked:
            place(self.view)
            self._fail_unplaceable()
        else:
            self.view.placing.has_more = False
        if may_speak and self.view.lanes:
            tell_hunger(self.view, self.gateway)
        batch = self.view.batch
        if batch.is_empty:
            return None
        self.view.batch = Batch()
        return batch

    @property
    def has_decided(self) -> bool:
        """Whether something is decided that `take_batch` has not handed out."""
        return not self.view.batch.is_empty

    @property
    def has_more(self) -> bool:
        """Whether `take_batch` has something to hand out, or to place."""
        return self.has_decided or self.will_place

    @property
    def will_place(self) -> bool:
        """Whether `take_batch` looks for places."""
        return self.view.queue.has_candidates and not self.view.is_parked

    @property
    def may_wait(self) -> bool:
        """Whether what is decided may wait a little for company: with it, it costs no transaction of its own."""
        return self.view.batch.may_wait and not self.will_place

    def committed(self, batch: Batch, now: float, at: int) -> None:
        """The batch is durable: perform its effects."""
        self._enter(now, at)
        for session_id, seqs in batch.delivered.items():
            self.gateway.committed(session_id, seqs)
        for effect in batch.effects:
            self._sending.perform(effect, now, at)
        self._take_events()

    def take_output(self) -> list[SendFrame | CloseConnection]:
        """Frames to put on sockets and connections to close, in order."""
        return self.gateway.take_output()

    def take_shell_effects(self) -> list[ShellEffect]:
        """What the shell does itself: answers to callers of the API above all."""
        return self._sending.take_shell_effects()

    def check(self) -> None:
        """Assert what must always hold between two inputs (I2, I8, I15, I23)."""
        view = self.view
        self.gateway.check()
        view.leases.check()
        view.workers.check()
        view.queue.check()
        view.affinity.check()
        view.resources.check()
        held: dict[tuple[str, str], int] = {}
        for lease in view.leases:
            run = lease.run
            task = run.tasks[lease.task]
            assert task.is_held, f"a lease outlives its attempt: {lease.task_id}"
            assert task.attempt == lease.attempt
            assert lease.is_lent == (task.open_calls > 0), f"{lease.task_id} lends wrongly"
            if lease.is_lent:
                continue
            holder = (lease.tenant, lease.worker_id)
            held[holder] = held.get(holder, 0) + 1
        for worker in view.workers:
            holds = held.get((worker.tenant, worker.worker_id), 0)
            assert worker.used == holds, f"{worker.worker_id} miscounts"
        for run in view.runs:
            assert not run.is_terminal, "an ended run is still in memory"

    # -- inside -----------------------------------------------------------------------------

    def _enter(self, now: float, at: int, cause: str | None = None) -> None:
        """An input begins. `cause`: the id of the frame or command that it is."""
        assert now >= self.view.now, "monotonic time does not go back"
        self.view.now = now
        self.view.at = at
        self.view.cause = cause

    def _notice_stall(self, now: float) -> None:
        """A tick that comes long after it was due: this process stood still, and did not listen."""
        stall_s = self.view.settings.stall_s
        if now - self._wakes_at > stall_s:
            self._listen_until = now + stall_s
            self.view.count("own stall noticed")

    def _stop_answering(self, now: float) -> None:
        """PROTOCOL §5.10: past its right to speak a scheduler "closes its sockets"."""
        if self.ownership.may_speak(now):
            self._is_silent = False
        elif not self._is_silent:
            self._is_silent = True
            self.gateway.close_all()

    def _fail_unplaceable(self) -> None:
        """Fail what a decision found to have no possible place."""
        unplaceable = self.view.placing.unplaceable
        while unplaceable:
            run, task, problem = unplaceable.pop()
            self.view.decide(run, Fail(task, problem))

    def _take_events(self) -> None:
        for event in self.gateway.take_events():
            try:
                self._on_event(event)
            except Exception as error:
                frame_id = event.envelope.id if isinstance(event, Delivered) else None
                raise InputFailed(event.tenant, event.worker, frame_id) from error
        self._fail_unplaceable()

    def _on_event(self, event: GatewayEvent) -> None:
        view = self.view
        if isinstance(event, Delivered):
            on_delivered(view, event)
        elif isinstance(event, Acked):
            on_acked(view, event)
            view.batch.effects += self._sending.take_unsent(event.session_id)
        elif isinstance(event, HeartbeatArrived):
            stop = on_heartbeat(view, event)
            self.gateway.answer_heartbeat(event.session_id, event.frame_id, stop, view.now)
            worker = view.workers.find(event.tenant, event.worker) if view.lanes else None
            if worker is not None:
                greet_worker(view, self.gateway, worker)
        elif isinstance(event, SlotsArrived):
            on_slots(view, event)
            self.gateway.answer(event.session_id, event.frame_id, view.now)
        elif isinstance(event, RegisterArrived):
            on_register(view, event)
        elif isinstance(event, SessionEnded):
            on_session_ended(view, event)
            self._sending.take_unsent(event.session_id)
        elif isinstance(event, Missed):
            on_missed(view, event)
        elif isinstance(event, FrameRefused):
            on_refused(view, event)
        elif isinstance(event, IdentityBound):
            view.record_worker(WorkerBound(event.tenant, view.at, event.worker, event.subject))
        elif isinstance(event, SessionAudited):
            who = event.subject or event.worker
            view.audit(
                event.tenant,
                who,
                event.action,
                event.frame_id,
                event.code,
                event.worker,
                event.session_id,
            )
        elif isinstance(event, PeerError):
            view.count("error of a worker")
        else:
            assert_never(event)

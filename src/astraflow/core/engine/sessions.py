"""What happens to sessions: registers, heartbeats, acks, ends.

Rule 1: the first register of a session reconciles (R4). Leased attempts in its inventory are rebound; those not
        in it are lost at once, because the worker itself says that it does not have them. What it has and should
        not have is stopped. A later register only replaces what the worker offers.
Rule 2: when another *incarnation* takes over a session that was alive, nothing is lost at once: two processes may be
        running under one identity, and only the end of a lease proves that the old one stopped.
Rule 3: a heartbeat renews what it names and is answered at once, outside any transaction. It also proves: an attempt
        whose cancel the worker had taken when it made the heartbeat, and which it does not name, does not run.
Rule 4: the end of a session ends no lease.
"""

from __future__ import annotations

import msgspec

from astraflow.core.dispatch import AttemptLease
from astraflow.core.engine.calls import answer_ended_calls
from astraflow.core.engine.effects import AcceptSession, SendStop
from astraflow.core.engine.operations import send_drain_intent
from astraflow.core.engine.packages import reconcile_packages
from astraflow.core.engine.resources import UNHEARD, lose_sticky, resend_cleanups, take_over_boot
from astraflow.core.engine.tenants import pressure_mark
from astraflow.core.engine.view import View
from astraflow.core.fleet.affinity import AffinityRevived, AffinityStale
from astraflow.core.fleet.workers import (
    HeartbeatMissed,
    MeasuredLoad,
    Offer,
    OfferedPackage,
    WorkerDegraded,
    WorkerDrainChanged,
    WorkerDrifted,
    WorkerEntry,
    WorkerLeft,
    WorkerLost,
    WorkerPressureChanged,
    WorkerRecovered,
    WorkerRegistered,
)
from astraflow.core.ids import RunId, TaskId
from astraflow.core.protocol import business, control
from astraflow.core.protocol.events import (
    Acked,
    HeartbeatArrived,
    Missed,
    RegisterArrived,
    SessionEnded,
    SlotsArrived,
)
from astraflow.core.protocol.limits import HEARTBEATS_MISSED_DEGRADED
from astraflow.core.protocol.wire import AttemptRef
from astraflow.core.runs.commands import Lose, Start
from astraflow.core.runs.consequences import StopAttempt
from astraflow.core.runs.states import Stopping
from astraflow.core.workflow.amounts import Amounts

INSTALLED = "installed"


def offer_of(register: control.Register) -> Offer:
    """What a register says a worker offers; packages that are not whole do not count."""
    packages: dict[str, set[str]] = {}
    for package in register.packages:
        if package.status == INSTALLED:
            packages.setdefault(package.name, set()).add(package.version)
    concurrency = register.capabilities.concurrency
    machine = register.capabilities.resources
    return Offer(
        concurrency.max_parallel,
        {name: frozenset(versions) for name, versions in packages.items()},
        frozenset(register.capabilities.runtimes),
        frozenset(register.capabilities.features),
        register.labels,
        concurrency.per_node_limits,
        None if machine is None else Amounts.of(machine.cpu, machine.memory_bytes, machine.gpu),
        None if register.slots is None else min(register.slots, concurrency.max_parallel),
    )


def on_register(view: View, event: RegisterArrived) -> None:
    known = view.workers.find(event.tenant, event.worker)
    is_new_boot = known is not None and known.incarnation not in (UNHEARD, event.incarnation)
    if known is not None and is_new_boot:
        take_over_boot(view, known)
    worker = view.record_worker(_registered(view, event))
    worker.heard(event.frame_id, view.at, view.now)
    if event.first:
        _revive_affinities(view, worker)
    view.batch.effects.append(AcceptSession(event.session_id))
    if event.first:
        send_drain_intent(view, worker)
        resend_cleanups(view, worker)
        _reconcile(view, worker, event)
    if is_new_boot:
        for key in view.affinity.keys_of(event.tenant, event.worker):
            lose_sticky(view, event.tenant, key, f"worker {event.worker} has started anew")
    reconcile_packages(view, worker, is_first=event.first)
    view.reconsider(worker)


def _registered(view: View, event: RegisterArrived) -> WorkerRegistered:
    register, said = event.register, event.description
    return WorkerRegistered(
        event.tenant,
        view.at,
        event.worker,
        event.session_id,
        event.incarnation,
        event.first,
        offer_of(register),
        tuple(OfferedPackage(one.name, one.version, one.status) for one in register.packages),
        said.worker_name,
        said.version,
        said.hostname,
    )


def _revive_affinities(view: View, worker: WorkerEntry) -> None:
    """The worker came back: its keys are good again."""
    expires_at = view.at + int(view.settings.affinity_ttl_s * 1000)
    for key in view.affinity.stale_keys_of(worker.tenant, worker.worker_id):
        view.record_affinity(AffinityRevived(worker.tenant, view.at, key, expires_at))


def _reconcile(view: View, worker: WorkerEntry, event: RegisterArrived) -> None:
    register = event.register
    inventory = {(ref.task_id, ref.attempt) for ref in register.inflight}
    inventory.update((ref.task_id, ref.attempt) for ref in register.held_results)
    for lease in view.leases.of_worker(event.tenant, event.worker):
        if (lease.task_id, lease.attempt) in inventory:
            _rebind(view, worker, lease)
        elif not event.displaced:
            run = lease.run
            view.decide(run, Lose(lease.task, lease.attempt, "its worker registered without it"))
    for ref in register.inflight:
        lease_of_it = view.leases.find(ref.task_id, ref.attempt)
        if lease_of_it is None or not _is_of(lease_of_it, event):
            frame = business.ExecCancel(
                _run_of(ref.task_id), ref.task_id, ref.attempt, "not current", 0
            )
            view.batch.effects.append(SendStop(frame, event.session_id))


def _is_of(lease: AttemptLease, event: RegisterArrived) -> bool:
    return lease.tenant == event.tenant and lease.worker_id == event.worker


def _run_of(task_id: TaskId) -> RunId:
    return RunId(task_id.rpartition(".")[0] or task_id)


def _rebind(view: View, worker: WorkerEntry, lease: AttemptLease) -> None:
    """The worker still has the attempt: its lease goes on under the new session, and what was asked of
    it in the old one is asked again."""
    lease.until = max(lease.until, view.now + lease.ttl_s)
    lease.session_id = worker.session_id
    lease.is_taken = True
    lease.stop_taken_seq = None  # of the old session's numbers
    run = lease.run
    view.decide(run, Start(lease.task, lease.attempt, lease.worker_id))
    answer_ended_calls(view, run, lease.task, lease.attempt)
    state = run.tasks[lease.task].state
    if isinstance(state, Stopping):
        again = StopAttempt(lease.task, lease.attempt, lease.worker_id, state.why, state.grace_ms)
        view.owe_stop(run, lease.task_id, again)


def _notice_drift(view: View, worker: WorkerEntry, digest: str) -> None:
    """Packages that change without a register are somebody's hand in the worker's folder."""
    if worker.digest and digest and digest != worker.digest and not worker.has_drifted:
        view.count("inventory drifted")
        view.record_worker(WorkerDrifted(worker.tenant, view.at, worker.worker_id))
    if digest:
        worker.digest = digest


def on_heartbeat(view: View, event: HeartbeatArrived) -> tuple[AttemptRef, ...]:
    """Renew what is named; returns what the worker is to stop, for the answer."""
    worker = view.workers.find(event.tenant, event.worker)
    if worker is None or worker.session_id != event.session_id:
        return ()
    worker.heard(event.frame_id, view.at, view.now)
    metrics = event.heartbeat.metrics
    worker.resources = msgspec.structs.asdict(metrics.resource)
    worker.measured = MeasuredLoad(
        metrics.cpu_pct, metrics.mem_pct, metrics.disk_pct, metrics.latency_ms
    )
    worker.says_draining = event.heartbeat.draining
    was = (worker.is_reachable, worker.is_available)
    _judge(view, worker, event.heartbeat)
    if was != (worker.is_reachable, worker.is_available):
        view.reconsider(worker)
    named = [(ref.task_id, ref.attempt) for ref in event.heartbeat.attempts]
    stop = view.leases.renew(event.tenant, event.worker, named, view.now)
    _take_as_proof(view, event, named)
    return tuple(AttemptRef(task_id, attempt) for task_id, attempt in stop)


def on_slots(view: View, event: SlotsArrived) -> None:
    """A worker of several lanes gives this one more of its slots, or fewer. What runs is not touched: with fewer slots
    than attempts the worker gets nothing new until some have ended."""
    worker = view.workers.find(event.tenant, event.worker)
    if worker is None or worker.session_id != event.session_id:
        return
    worker.slots = min(event.slots, worker.offer.max_parallel)
    view.workers.refresh(worker)
    view.wake_for(worker)


def _judge(view: View, worker: WorkerEntry, heartbeat: control.Heartbeat) -> None:
    """What a heartbeat changes of the worker's state."""
    who = (worker.tenant, view.at, worker.worker_id)
    # "`healthy: false` in a heartbeat means degraded: nothing new is sent" (PROTOCOL §4).
    if not heartbeat.healthy and worker.status == "online":
        view.record_worker(WorkerDegraded(*who))
    elif heartbeat.healthy and worker.status == "degraded":
        view.record_worker(WorkerRecovered(*who))
    _notice_drift(view, worker, heartbeat.packages.digest)
    is_draining = worker.says_draining or worker.drain is not None
    if worker.is_draining != is_draining:
        view.record_worker(WorkerDrainChanged(*who, is_draining))
    is_pressed = _is_pressed(view, worker, heartbeat.metrics)
    if worker.is_pressed != is_pressed:
        view.count("worker pressed" if is_pressed else "worker relieved")
        view.record_worker(WorkerPressureChanged(*who, is_pressed))


def _is_pressed(view: View, worker: WorkerEntry, metrics: control.HeartbeatMetrics) -> bool:
    policy = view.tenants.policy(worker.tenant)
    mark = pressure_mark(view.settings, policy, is_pressed=worker.is_pressed)
    return metrics.mem_pct >= mark.mem_pct or metrics.disk_pct >= mark.disk_pct


def _take_as_proof(view: View, event: HeartbeatArrived, named: list[tuple[TaskId, int]]) -> None:
    # Built only when it is needed: most workers have nothing to stop most of the time.
    candidates = [
        lease
        for lease in view.leases.of_worker(event.tenant, event.worker)
        if lease.stop_taken_seq is not None
        and lease.session_id == event.session_id
        and event.covers(lease.stop_taken_seq)
    ]
    for lease in candidates:
        if (lease.task_id, lease.attempt) not in named:
            cause = "its worker took the cancel and does not have it"
            view.decide(lease.run, Lose(lease.task, lease.attempt, cause))


def on_acked(view: View, event: Acked) -> None:
    """The worker has taken frames: a dispatch is its attempt's start, a cancel begins to prove."""
    for frame_id in event.frame_ids:
        lease = view.sent.take(frame_id)
        if lease is None:
            continue
        if frame_id == lease.frame_id:
            lease.is_taken = True
            view.decide(lease.run, Start(lease.task, lease.attempt, lease.worker_id))
        else:
            lease.stop_taken_seq = event.ack_seq


def on_missed(view: View, event: Missed) -> None:
    """PROTOCOL §5.4: "One missed heartbeat → WARN, two → DEGRADED (nothing new is sent)"."""
    view.count("heartbeat missed")
    who = (event.tenant, view.at, event.worker)
    view.record_note(HeartbeatMissed(*who, event.count))
    worker = view.workers.find(event.tenant, event.worker)
    if worker is None or worker.session_id != event.session_id:
        return
    if event.count >= HEARTBEATS_MISSED_DEGRADED and worker.status == "online":
        view.record_worker(WorkerDegraded(*who))
        view.reconsider(worker)


def on_session_ended(view: View, event: SessionEnded) -> None:
    worker = view.workers.find(event.tenant, event.worker)
    if worker is None or worker.session_id != event.session_id:
        return
    who = (event.tenant, view.at, event.worker)
    view.record_worker(WorkerLost(*who) if event.lost else WorkerLeft(*who))
    left_s = view.lost_until(worker, view.settings.affinity_grace_s) - view.now
    for key in view.affinity.keys_of(event.tenant, event.worker):
        expires_at = view.at + int(left_s * 1000)
        view.record_affinity(AffinityStale(event.tenant, view.at, key, expires_at))
    view.reconsider(worker)

"""Timeouts: leases that end, dispatches and stops that no worker acknowledged, deadlines of runs.

Rule 1: a lease that has ended is proof (with the worker's own fence) that its attempt does not run.
Rule 2: a dispatch that was not acknowledged in time is *withdrawn*, and given away only on proof (R6, PROTOCOL §5.5).
Rule 3: after a stall of its own the scheduler listens before it expires anything: heartbeats may be waiting to be read.
"""

from __future__ import annotations

from typing import assert_never

from astraflow.core import errors
from astraflow.core.dispatch import AttemptLease
from astraflow.core.engine.packages import on_install_due
from astraflow.core.engine.resources import lose_pinned, lose_sticky, on_cleanup_due
from astraflow.core.engine.rollouts import on_rollout_due
from astraflow.core.engine.timers import (
    CallDue,
    CleanupDue,
    DeadlineDue,
    InstallDue,
    ParkedDue,
    PinDue,
    RolloutDue,
    StopDue,
    TimeoutDue,
    Timer,
)
from astraflow.core.engine.view import View, worker_key
from astraflow.core.fleet.affinity import AffinityReleased
from astraflow.core.fleet.workers import WorkerConnectionChanged, WorkerEntry
from astraflow.core.ids import is_pool
from astraflow.core.protocol.gateway import Gateway
from astraflow.core.runs.commands import (
    Cancel,
    EndCall,
    EndWait,
    Lose,
    Refuse,
    StopOverdue,
    TimeOut,
    Withdraw,
)


def expire_leases(view: View) -> None:
    """Give up the attempts whose leases have run out."""
    for lease in view.leases.expired(view.now):
        if lease.is_over:
            continue  # the loss of another ended the map that both were in
        view.count("lease expired")
        is_unstarted = is_pool(lease.worker_id) and not lease.is_taken
        cause = "no worker started it in time" if is_unstarted else "its lease ended"
        view.decide(lease.run, Lose(lease.task, lease.attempt, cause))


def expire_affinities(view: View) -> None:
    """Give up the keys that nobody used for long, or whose worker did not come back."""
    for tenant, key, worker_id in view.affinity.expired(view.now):
        view.count("affinity expired")
        view.record_affinity(AffinityReleased(tenant, view.at, key))
        lose_sticky(view, tenant, key, f"worker {worker_id} did not come back")
        view.unbind(tenant, key)


def on_timer(view: View, timer: Timer) -> None:
    if isinstance(timer, StopDue):
        _stop_due(view, timer)
    elif isinstance(timer, TimeoutDue):
        _timeout_due(view, timer)
    elif isinstance(timer, CallDue):
        _call_due(view, timer)
    elif isinstance(timer, ParkedDue):
        _parked_due(view, timer)
    elif isinstance(timer, PinDue):
        _pin_due(view, timer)
    elif isinstance(timer, CleanupDue):
        on_cleanup_due(view, timer.tenant, timer.worker_id, timer.scope)
    elif isinstance(timer, InstallDue):
        on_install_due(view, timer.key)
    elif isinstance(timer, RolloutDue):
        on_rollout_due(view)
    elif isinstance(timer, DeadlineDue):
        run = view.runs.get(timer.run_id)
        if run is not None:
            view.decide(run, Cancel("", view.settings.cancel_grace_ms, "deadline"))
    else:
        assert_never(timer)


def withdraw_unacked(view: View, gateway: Gateway) -> None:
    """Take back the dispatches that nobody has acknowledged in time."""
    for lease in view.sent.take_overdue(view.now):
        if not lease.is_over:
            _withdraw(view, gateway, lease)


def _withdraw(view: View, gateway: Gateway, lease: AttemptLease) -> None:
    if not take_back_unsent(view, gateway, lease):
        view.decide(lease.run, Withdraw(lease.task, lease.attempt))


def take_back_unsent(view: View, gateway: Gateway, lease: AttemptLease) -> bool:
    """Give a dispatch away at once if it is proved that it never left; whether it is."""
    if lease.frame_id is None or lease.session_id is None:
        return False
    if not gateway.withdraw(lease.session_id, lease.frame_id):
        return False
    code = errors.DISPATCH_WITHDRAWN.code
    message = "the dispatch never reached the socket"
    refuse = Refuse(lease.task, lease.attempt, lease.worker_id, code, message)
    view.decide(lease.run, refuse)
    return True


def lose_link(view: View, gateway: Gateway, tenant: str, worker_id: str) -> None:
    """A connection has closed: its worker gets nothing new until it is back, and what waited to be sent to it goes to
    others. A worker that was killed is not known to be lost for some seconds more.

    One that was draining and holds nothing has ended: it is offline at once. If it was cut off before its end, it opens
    a new session."""
    worker = view.workers.find(tenant, worker_id)
    if worker is None or worker.session_id is None or gateway.is_connected(worker.session_id):
        return  # it has another one already
    view.count("link lost")
    if worker.is_draining and not view.leases.of_worker(tenant, worker_id):
        gateway.end(worker.session_id, errors.SESSION_UNKNOWN, view.now, "the worker has drained")
        return
    view.record_worker(WorkerConnectionChanged(tenant, view.at, worker_id, is_connected=False))
    for lease in view.leases.of_worker(tenant, worker_id):
        if not lease.is_taken:
            take_back_unsent(view, gateway, lease)


def notice_links(view: View, gateway: Gateway) -> None:
    """A session that was resumed has a connection again."""
    for worker in list(view.workers.disconnected):
        if worker.session_id is not None and gateway.is_connected(worker.session_id):
            view.record_worker(WorkerConnectionChanged(*_who(view, worker), is_connected=True))
            view.reconsider(worker)


def _who(view: View, worker: WorkerEntry) -> tuple[str, int, str]:
    return worker.tenant, view.at, worker.worker_id


def _stop_due(view: View, timer: StopDue) -> None:
    lease = view.leases.find(timer.task_id, timer.attempt)
    if lease is None:
        return
    decision = view.decide(lease.run, StopOverdue(lease.task, lease.attempt))
    if decision.ignored is not None:
        # It waits for proof. The worker is told to kill it at every heartbeat, and the lease
        # runs out because it is not renewed any more.
        lease.is_revoked = True


def _timeout_due(view: View, timer: TimeoutDue) -> None:
    lease = view.leases.find(timer.task_id, timer.attempt)
    if lease is not None:
        grace_ms = view.settings.cancel_grace_ms
        view.decide(lease.run, TimeOut(lease.task, lease.attempt, grace_ms))


def _call_due(view: View, timer: CallDue) -> None:
    place = view.runs.find_call(timer.task_id)
    if place is not None:
        run, task = place
        view.decide(run, EndCall(task))


def _parked_due(view: View, timer: ParkedDue) -> None:
    place = view.runs.find_task(timer.tenant, timer.task_id)
    if place is not None:
        run, task = place
        view.decide(run, EndWait(task))


def _pin_due(view: View, timer: PinDue) -> None:
    """P12: a reference to a resource that is gone fails within the grace; it is never sent elsewhere."""
    demand = timer.demand
    assert demand.pin is not None
    if view.placing.pin_until(demand) != timer.due:
        return
    view.placing.forget_pin(demand)
    lose_pinned(view, demand)
    # One that comes later with the same demand is looked at anew, and has a watch of its own.
    view.queue.wake(worker_key(demand.tenant, demand.pin))

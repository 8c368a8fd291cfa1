"""Starting from what is stored: a restarted scheduler, or one that took over.

PROTOCOL §5.10: a new owner "lets every stored lease run for its full stored `ttl_ms` from the moment it has its
epoch". It cannot know when the last owner heard of an attempt, but the worker's fence falls within that time.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import inf
from typing import Final

from astraflow.core.dispatch import AttemptLease
from astraflow.core.dispatch.demand import bind_task
from astraflow.core.engine.callbacks import watch_timeout
from astraflow.core.engine.calls import lenders_of
from astraflow.core.engine.placing import push_of
from astraflow.core.engine.timers import DeadlineDue, StopDue, TimeoutDue
from astraflow.core.engine.view import View
from astraflow.core.engine.waiting_tasks import enqueue_all
from astraflow.core.fleet.affinity import AffinityExpected
from astraflow.core.fleet.pools import PoolRecord
from astraflow.core.fleet.workers import WorkerEntry
from astraflow.core.ids import is_pool
from astraflow.core.runs.commands import Cancel, Restart
from astraflow.core.runs.facts import Fact
from astraflow.core.runs.keys import affinity_of, concurrency_key
from astraflow.core.runs.run import RunRecord
from astraflow.core.runs.states import READY, Leased, Opened, Parked, Running, Stopping
from astraflow.core.runs.transitions import replay
from astraflow.core.workflow.plan import Plan

_HELD: Final = (Leased, Running, Stopping)
_TIMED: Final = (Parked, Opened)


def restore_run(view: View, plan: Plan, facts: Iterable[Fact], attempt_floor: int = 0) -> RunRecord:
    """Fold the facts of one active run and go on with its tasks where they stand."""
    run = replay(plan, facts)
    run.attempt_floor = attempt_floor
    assert not run.is_terminal, "only active runs are restored"
    view.runs.add(run)
    left_s = inf
    if run.accepted.deadline_s is not None:
        left_s = _time_left(run.accepted.deadline_s, view.at - run.accepted.at)
        view.timers.set(view.now + left_s, DeadlineDue(run.run_id))
    for index in run.calls.values():
        task = run.tasks[index]
        assert task.call is not None
        view.runs.add_call(task.call.call_id, run, index)
        if not task.is_terminal:
            view.watch_call(task.call)
    waiting: list[int] = []
    for index, task in enumerate(run.tasks):
        state = task.state
        if state is READY and task.worker is None and task.open_calls == 0:
            waiting.append(index)  # as most of a million do
            continue
        if task.worker is not None:
            # A preference only: the last worker that the run used for the package.
            view.placing.bind(run.run_id, run.tasks[index].node.package_name, task.worker)
        if isinstance(state, _HELD):
            _restore_lease(view, run, index, state)
        elif isinstance(state, _TIMED):
            is_over = isinstance(state, Opened) and run.scopes[index].is_over
            left_ms = 0 if is_over else state.left_ms(view.at)
            if left_ms is not None:
                view.watch_parked(run, index, left_ms)
        elif task.is_waiting and task.open_calls == 0:
            waiting.append(index)
    enqueue_all(view, run, waiting)
    if left_s <= 0:  # at once: tasks are placed before time is let pass
        view.decide(run, Cancel("", view.settings.cancel_grace_ms, "deadline"))
    return run


def _time_left(deadline_s: float, age_ms: int) -> float:
    """What is left of a run's time. Only the wall clock goes on while no scheduler is there; one that was set back
    meanwhile gives the run no more than its whole time, and one that was set forward ends it at once at the worst."""
    return min(deadline_s, max(0.0, deadline_s - age_ms / 1000))


def _restore_key(view: View, worker: WorkerEntry, key: str) -> None:
    """A stored lease uses the key. Another worker may have had it and lost it: then the store knows of no holder."""
    tenant, worker_id = worker.tenant, worker.worker_id
    if view.affinity.lookup(tenant, key) is None:
        left_s = view.lost_until(worker, view.settings.affinity_grace_s) - view.now
        expires_at = view.at + int(left_s * 1000)
        view.record_affinity(AffinityExpected(tenant, view.at, key, worker_id, view.at, expires_at))
    view.affinity.begin_use(tenant, key, worker_id)


def _restore_push(view: View, run: RunRecord, task: int, pool: PoolRecord) -> None:
    """Nobody knows whether a push that was not started has left: it is sent again, and run once, because its
    `dispatchId` is the same. An attempt that was started has one full timeout (PROTOCOL §9)."""
    state = run.tasks[task].state
    is_fixed = run.tasks[task].node.join != "any" and not run.takes_back
    if isinstance(state, Leased) and not is_fixed:
        # Upstream may have ended since: it would be pushed again with other inputs. Its start is refused from now on.
        view.decide(run, Restart(task, state.attempt, 0))
    elif isinstance(state, Leased):
        view.batch.effects.append(push_of(view, run, task, pool, bind_task(run, task)[0]))
    else:
        watch_timeout(view, run, task)


def _restore_lease(
    view: View, run: RunRecord, task: int, state: Leased | Running | Stopping
) -> None:
    task_id = run.task_id(task)
    node = run.tasks[task].node
    ttl_s = state.ttl_ms / 1000
    worker = view.workers.expect(run.tenant, state.worker)
    lease = AttemptLease(run, task, task_id, state.attempt, worker, ttl_s, view.now)
    # Nobody here can say whether its frame left: only the worker, or the end of the lease, can.
    lease.is_taken = not (is_pool(state.worker) and isinstance(state, Leased))
    view.leases.grant(lease)
    lease.is_lent = run.tasks[task].open_calls > 0
    if not lease.is_lent:
        view.workers.take_slot(worker, node.type, node.resources)
    key, hint = concurrency_key(run, task), affinity_of(run, task)
    if key is not None:
        # Callers stand before their calls in a run, so that the key is lent in the right order.
        view.keys.take(run.tenant, key, task_id, lenders_of(run, task))
    if hint is not None:
        _restore_key(view, worker, hint.key)
    if worker.pool is not None:
        _restore_push(view, run, task, worker.pool)
    elif isinstance(state, Stopping):
        overdue = view.now + state.grace_ms / 1000 + view.settings.stop_overdue_s
        view.timers.set(overdue, StopDue(task_id, state.attempt))
    elif node.timeout_s is not None:
        when = view.now + node.timeout_s + view.settings.timeout_slack_s
        view.timers.set(when, TimeoutDue(task_id, state.attempt))

"""What operators ask of workers and runs: drain, undrain, rebind.

Rule 1: a drain is a wish that is kept until it is taken back. "Nothing S→W lives only in a window" (PROTOCOL §5.7): a
        worker that comes back is told again.
Rule 2: a worker that was draining, holds nothing and has closed its connection has ended: it is offline. Taking the
        drain back does not change that; it gets work when it has a session again.
Rule 3: rebinding forgets what ties work to a worker; it moves nothing that runs unless a restart is asked for, and a
        restarted attempt is given away only on proof that it has ended.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from astraflow.core import errors
from astraflow.core.dispatch import WorkerEntry
from astraflow.core.engine.batch import DrainWish, SendDrain, WorkerChanged
from astraflow.core.runs.commands import Restart
from astraflow.core.runs.run import Run

if TYPE_CHECKING:
    from astraflow.core.engine.view import View

__all__ = ["drain_worker", "owe_drain", "rebind_run", "rebind_worker", "undrain_worker"]


def drain_worker(view: View, tenant: str, worker_id: str, wish: DrainWish) -> None:
    """Give the worker nothing new, and tell it, now or when it is back.

    Raises:
        NotFound: no such worker.
    """
    worker = _get_worker(view, tenant, worker_id)
    view.drains[tenant, worker_id] = wish
    view.workers.set_draining(worker, True)
    view.batch.notices.append(WorkerChanged(tenant, worker_id))
    owe_drain(view, worker)
    view.reconsider(worker)


def owe_drain(view: View, worker: WorkerEntry) -> None:
    """Tell a worker that has a session what is wished of it."""
    wish = view.drains.get((worker.tenant, worker.worker_id))
    if wish is None or worker.session_id is None:
        return
    view.workers.set_draining(worker, True)
    view.batch.effects.append(SendDrain(worker.session_id, wish))


def undrain_worker(view: View, tenant: str, worker_id: str) -> None:
    """Take the wish back. A worker that was told already ends all the same, or has ended; it gets work when it is back.

    Raises:
        NotFound: no such worker.
    """
    worker = _get_worker(view, tenant, worker_id)
    if view.drains.pop((tenant, worker_id), None) is not None:
        view.workers.set_draining(worker, worker.says_draining)
        view.batch.notices.append(WorkerChanged(tenant, worker_id))
        view.reconsider(worker)


def rebind_worker(view: View, tenant: str, worker_id: str) -> None:
    """Forget every preference and every affinity for the worker.

    Raises:
        NotFound: no such worker.
    """
    worker = _get_worker(view, tenant, worker_id)
    bound = [key for key, holder in view.bindings.items() if holder == worker_id]
    for run_id, package in bound:
        run = view.runs.get(run_id)
        if run is not None and run.tenant == tenant:
            del view.bindings[run_id, package]
    for key in view.affinity.keys_of(tenant, worker_id):
        view.release(tenant, key)
    view.reconsider(worker)


def rebind_run(view: View, tenant: str, run_id: str, *, restart: bool) -> None:
    """Forget the run's bindings and the affinity keys that it uses; with `restart`, what runs begins anew.

    Raises:
        NotFound: no such active run.
    """
    run = view.runs.get(run_id)
    if run is None or run.tenant != tenant:
        raise errors.NotFound(errors.RUN_NOT_FOUND, f"no active run: {run_id[:64]}")
    for package in {node.package_name for node in run.plan.nodes}:
        view.bindings.pop((run_id, package), None)
    for node in run.plan.nodes:
        if node.affinity is not None:
            record = view.affinity.lookup(tenant, node.affinity.key)
            if record is not None:
                view.release(tenant, node.affinity.key)
                _wake(view, tenant, record.worker_id)
    if restart:
        _restart(view, run)


def _restart(view: View, run: Run) -> None:
    grace_ms = view.settings.cancel_grace_ms
    for index, task in enumerate(run.tasks):
        if task.is_held and task.open_calls == 0:
            view.decide(run, Restart(index, task.attempt, grace_ms))


def _wake(view: View, tenant: str, worker_id: str) -> None:
    worker = view.workers.find(tenant, worker_id)
    if worker is not None:
        view.reconsider(worker)


def _get_worker(view: View, tenant: str, worker_id: str) -> WorkerEntry:
    worker = view.workers.find(tenant, worker_id)
    if worker is None:
        raise errors.NotFound(errors.WORKER_NOT_FOUND, f"no such worker: {worker_id[:64]}")
    return worker

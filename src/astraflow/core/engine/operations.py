"""What operators ask of workers and runs: drain, undrain, rebind.

Rule 1: a drain is an intent that is kept until it is withdrawn. "Nothing S→W lives only in a window" (PROTOCOL §5.7):
        a worker that comes back is told again.
Rule 2: a worker that was draining, holds nothing and has closed its connection has ended: it is offline. Taking the
        drain back does not change that; it gets work when it has a session again.
Rule 3: rebinding forgets what ties work to a worker; it moves nothing that runs unless a restart is asked for, and a
        restarted attempt is given away only on proof that it has ended.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from astraflow.core import errors
from astraflow.core.engine.commands import (
    AnnounceChange,
    DrainWorker,
    ForgetWorker,
    RebindRun,
    RebindWorker,
    RequestInstall,
    RequestRemoval,
    UndrainWorker,
)
from astraflow.core.engine.effects import SendDrain
from astraflow.core.engine.packages import request_install, request_removal
from astraflow.core.engine.resources import lose_resources
from astraflow.core.fleet.facts import Announced
from astraflow.core.fleet.installs import InstallForgotten
from astraflow.core.fleet.workers import (
    WorkerDrainRequested,
    WorkerDrainWithdrawn,
    WorkerEntry,
    WorkerForgotten,
    WorkerSeen,
)
from astraflow.core.ids import RunId
from astraflow.core.runs.commands import Restart
from astraflow.core.runs.run import RunRecord
from astraflow.core.workflow.plan import walk_nodes

if TYPE_CHECKING:
    from astraflow.core.engine.view import View
    from astraflow.core.protocol.gateway import Gateway


def announce_change(view: View, command: AnnounceChange) -> None:
    view.record_note(Announced(command.tenant, view.at, command.kind, command.body))


def drain_worker(view: View, command: DrainWorker) -> None:
    """Raises: NotFound."""
    worker = _get_worker(view, command.tenant, command.worker_id)
    view.record_worker(
        WorkerDrainRequested(command.tenant, view.at, command.worker_id, command.intent)
    )
    send_drain_intent(view, worker)
    view.reconsider(worker)


def send_drain_intent(view: View, worker: WorkerEntry) -> None:
    """Tell a worker that has a session that it is to drain."""
    if worker.drain is not None and worker.session_id is not None:
        view.batch.effects.append(SendDrain(worker.session_id, worker.drain))


def undrain_worker(view: View, command: UndrainWorker) -> None:
    """A worker that was told already exits all the same, or has exited; it gets work when it is back.

    Raises: NotFound.
    """
    worker = _get_worker(view, command.tenant, command.worker_id)
    if worker.drain is not None:
        view.record_worker(WorkerDrainWithdrawn(command.tenant, view.at, command.worker_id))
        view.reconsider(worker)


def install_on_worker(view: View, command: RequestInstall) -> None:
    """Raises: NotFound: no such worker, or the version is not published."""
    worker = _get_worker(view, command.tenant, command.worker_id)
    request_install(view, worker, command.name, command.version, "command")


def remove_from_worker(view: View, command: RequestRemoval) -> None:
    """Raises: NotFound."""
    worker = _get_worker(view, command.tenant, command.worker_id)
    request_removal(view, worker, command.name, command.version, "command")


def rebind_worker(view: View, command: RebindWorker) -> None:
    """Drop every binding and every affinity key of the worker.

    Raises: NotFound.
    """
    tenant, worker_id = command.tenant, command.worker_id
    worker = _get_worker(view, tenant, worker_id)
    view.placing.unbind_worker([run.run_id for run in view.runs if run.tenant == tenant], worker_id)
    for key in view.affinity.keys_of(tenant, worker_id):
        view.release(tenant, key)
    view.reconsider(worker)


def rebind_run(view: View, command: RebindRun) -> None:
    """Drop the run's bindings and the affinity keys that it uses; with `restart`, running attempts are restarted.

    Raises: NotFound: no such active run.
    """
    tenant, run_id = command.tenant, command.run_id
    run = active_run(view, tenant, run_id)
    view.placing.unbind_run(run_id)
    authored = {node.affinity.key for node in walk_nodes(run.plan) if node.affinity is not None}
    evaluated = {key for _, key in run.keys.values() if key is not None}
    for key in sorted(authored | evaluated):
        record = view.affinity.lookup(tenant, key)
        if record is not None:
            view.release(tenant, key)
            _wake(view, tenant, record.worker_id)
    if command.restart:
        _restart(view, run)


def active_run(view: View, tenant: str, run_id: RunId) -> RunRecord:
    """Raises: NotFound: no such active run of this tenant."""
    run = view.runs.get(run_id)
    if run is None or run.tenant != tenant:
        raise errors.NotFound(errors.RUN_NOT_FOUND, f"no active run: {run_id[:64]}")
    return run


def _restart(view: View, run: RunRecord) -> None:
    grace_ms = view.settings.cancel_grace_ms
    for index, task in enumerate(run.tasks):
        if task.is_held and task.open_calls == 0:
            view.decide(run, Restart(index, task.attempt, grace_ms))


def _wake(view: View, tenant: str, worker_id: str) -> None:
    worker = view.workers.find(tenant, worker_id)
    if worker is not None:
        view.reconsider(worker)


def forget_worker(view: View, gateway: Gateway, command: ForgetWorker) -> None:
    """Forget a worker and all that it kept. One that has a session or holds an attempt is never forgotten; one that
    comes back after all is a new one, as if it had never been there."""
    tenant, worker_id = command.tenant, command.worker_id
    worker = view.workers.find(tenant, worker_id)
    if worker is not None and worker.session_id is not None:
        view.record_worker(WorkerSeen(tenant, view.at, worker_id))
        return
    is_busy = worker is not None and worker.used > 0
    if not command.is_stale or is_busy or view.leases.of_worker(tenant, worker_id):
        return
    if not gateway.forget(tenant, worker_id):
        return
    for key in view.affinity.keys_of(tenant, worker_id):
        view.release(tenant, key)
    lose_resources(view, tenant, worker_id)
    for intent in view.installs.of_worker(tenant, worker_id):
        view.record_install(
            InstallForgotten(tenant, view.at, worker_id, intent.name, intent.version)
        )
    view.record_worker(WorkerForgotten(tenant, view.at, worker_id))


def _get_worker(view: View, tenant: str, worker_id: str) -> WorkerEntry:
    worker = view.workers.find(tenant, worker_id)
    if worker is None:
        raise errors.NotFound(errors.WORKER_NOT_FOUND, f"no such worker: {worker_id[:64]}")
    return worker

"""Forgetting workers that will not come back: their identities, and what is kept about them.

Rule: a worker that is connected, has a session, or holds an attempt is never forgotten. One that comes back after all
is a new one, as if it had never been there.
"""

from __future__ import annotations

from astraflow.core.engine.batch import WishChanged, WorkerChanged, WorkerForgotten
from astraflow.core.engine.resources import lose_resources
from astraflow.core.engine.view import View
from astraflow.core.protocol.gateway import Gateway

__all__ = ["forget_worker", "note_worker"]


def forget_worker(view: View, gateway: Gateway, tenant: str, worker_id: str) -> bool:
    """Forget a worker and all that it held; False if it is in use."""
    worker = view.workers.find(tenant, worker_id)
    is_busy = worker is not None and (worker.session_id is not None or worker.used > 0)
    if is_busy or view.leases.of_worker(tenant, worker_id):
        return False
    if not gateway.forget(tenant, worker_id):
        return False
    for key in view.affinity.keys_of(tenant, worker_id):
        view.release(tenant, key)
    lose_resources(view, tenant, worker_id)
    for wish in view.wishes.forget_worker(tenant, worker_id):
        view.batch.notices.append(WishChanged(wish.key))
    view.drains.pop((tenant, worker_id), None)
    if worker is not None:
        view.workers.forget(worker)
    view.batch.notices.append(WorkerForgotten(tenant, worker_id))
    return True


def note_worker(view: View, tenant: str, worker_id: str) -> None:
    """Write down that a worker is there, although nothing about it has changed."""
    view.batch.notices.append(WorkerChanged(tenant, worker_id))

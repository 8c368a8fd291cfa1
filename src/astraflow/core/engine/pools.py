"""HTTP pools: what operators ask of them, and pushes that nobody took.

Numbers that could not work are refused when a pool is stored, not when a task fails (R14).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from astraflow.core import errors
from astraflow.core.fleet.pools import MAX_SECONDS, PoolRecord
from astraflow.core.fleet.workers import PoolConfigured, PoolRemoved
from astraflow.core.ids import POOL_PREFIX
from astraflow.core.runs.commands import Refuse
from astraflow.core.security.tokens import TASK_TTL_MAX_S, refuse_weak_heartbeat

if TYPE_CHECKING:
    from astraflow.core.engine.commands import ConfigurePool, RefusePush, RemovePool
    from astraflow.core.engine.view import View


def configure_pool(view: View, command: ConfigurePool) -> None:
    """Raises: Refused, when its numbers could not work."""
    pool = command.pool
    check_pool(pool)
    worker = view.record_worker(PoolConfigured(pool.tenant, view.at, pool.worker_id, pool))
    view.reconsider(worker)


def remove_pool(view: View, command: RemovePool) -> None:
    """Raises: NotFound; Conflict, while attempts are under way in it."""
    worker = view.workers.find(command.tenant, POOL_PREFIX + command.name)
    if worker is None or worker.pool is None:
        raise errors.NotFound(errors.POOL_NOT_FOUND, f"no such pool: {command.name[:64]}")
    held = len(view.leases.of_worker(command.tenant, worker.worker_id))
    if held:
        message = f"{held} attempts are under way in the pool: pause it, and remove it when they have ended"
        raise errors.Conflict(errors.POOL_BUSY, message)
    for key in view.affinity.keys_of(command.tenant, worker.worker_id):
        view.release(command.tenant, key)
    view.record_worker(PoolRemoved(command.tenant, view.at, worker.worker_id))


def refuse_push(view: View, command: RefusePush) -> None:
    """Give a push away at once that reached nobody. One that was started meanwhile is not touched."""
    lease = view.leases.find(command.task_id, command.attempt)
    if lease is None or lease.is_taken or lease.tenant != command.tenant:
        return
    refuse = Refuse(lease.task, lease.attempt, lease.worker_id, command.code, command.message)
    view.decide(lease.run, refuse)


def check_pool(pool: PoolRecord) -> None:
    """Raises: Refused, when its numbers could not work; the pointer names the field."""
    seconds = {
        "/startTimeoutSeconds": pool.start_timeout_s,
        "/heartbeatIntervalSeconds": pool.heartbeat_interval_s,
        "/heartbeatTimeoutSeconds": pool.heartbeat_timeout_s,
        "/cancelGraceSeconds": pool.cancel_grace_s,
    }
    for pointer, value in seconds.items():
        least = 0.0 if pointer == "/cancelGraceSeconds" else 0.001
        if not least <= value <= MAX_SECONDS:
            message = f"a duration must be above 0 s and at most {MAX_SECONDS:g} s: {value:g}"
            raise errors.Refused(errors.POOL_INVALID, message, pointer=pointer)
    if not 0 < pool.token_ttl_s <= TASK_TTL_MAX_S:
        message = f"a task token lives 1 to {TASK_TTL_MAX_S} s: {pool.token_ttl_s}"
        raise errors.Refused(errors.POOL_INVALID, message, pointer="/tokenTtlSeconds")
    try:
        refuse_weak_heartbeat(pool.heartbeat_interval_s, pool.heartbeat_timeout_s)
    except errors.Refused as refused:
        pointer = "/heartbeatTimeoutSeconds"
        raise errors.Refused(errors.POOL_INVALID, refused.message, pointer=pointer) from refused

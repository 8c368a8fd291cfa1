"""Giving ready tasks to workers: one lease fact and one dispatch effect each."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import msgspec

from astraflow.core.dispatch import AttemptLease, NoPlace, choose
from astraflow.core.dispatch.demand import Demand, bind_task
from astraflow.core.dispatch.flows import Entry
from astraflow.core.dispatch.placement import find_place, is_offered
from astraflow.core.engine.calls import lenders_of, wrapped_host
from astraflow.core.engine.effects import SendDispatch
from astraflow.core.engine.packages import install_for, why_no_package
from astraflow.core.engine.resources import copies_for
from astraflow.core.engine.timers import PinDue, TimeoutDue
from astraflow.core.engine.view import (
    View,
    key_key,
    label_key,
    offer_key,
    package_key,
    tenant_key,
    worker_key,
)
from astraflow.core.expressions import ExpressionError
from astraflow.core.fleet.pools import PoolRecord
from astraflow.core.fleet.resources import ResourceRecord
from astraflow.core.fleet.workers import WorkerEntry
from astraflow.core.ids import NodeId
from astraflow.core.protocol import business
from astraflow.core.protocol.wire import MachineAmounts
from astraflow.core.runs.calls import chain_index_of
from astraflow.core.runs.commands import LeaseTask as LeaseTask
from astraflow.core.runs.facts import WaitReason
from astraflow.core.runs.keys import affinity_of, concurrency_key
from astraflow.core.runs.run import RunRecord
from astraflow.core.runs.traces import traceparent_of
from astraflow.core.runs.value_checks import input_failure
from astraflow.core.workflow.amounts import Amounts
from astraflow.core.workflow.plan import ResourceRefValue

NO_CONSTRAINTS = business.Constraints()
PLACE_BUDGET = 2_000
"""How many tasks are looked at in one turn; then others have theirs: sessions, heartbeats, the API."""
LEASE_COSTS = 7
"""A task that is leased costs as much as so many that are only looked at."""
PARKED = (
    "its shard is parked: its work has ended several schedulers; nothing of it is started for now"
)
UNTYPED = "resource"
"""The type of a reference whose author named none; the wire wants one (seed 000 §3.1)."""


def place(view: View) -> None:
    """Lease every task that has a place now, up to a budget: what is left is placed in the next turn."""
    view.queue.advance(view.now)
    budget = PLACE_BUDGET
    while budget > 0 and (entry := view.queue.next()) is not None:
        budget -= 1
        run = view.runs.get(entry.run_id)
        if run is None or not may_be_placed(run, entry.task):
            view.queue.drop(entry)
        elif _is_elsewhere(view, run, entry):
            view.queue.drop(entry)
            view.enqueue(run, entry.task, 0.0)
        elif entry.lock is not None and not _key_is_free(view, run, entry):
            view.queue.lock(entry, key_key(entry.tenant, entry.lock[0]))
        elif _place_one(view, run, entry):
            budget -= LEASE_COSTS
    view.placing.has_more = budget <= 0


def _place_one(view: View, run: RunRecord, entry: Entry) -> bool:
    demand = entry.demand
    if view.tenants.is_suspended(demand.tenant):
        view.queue.sleep(entry, tenant_key(demand.tenant))
        return False
    chosen = find_place(demand, view.workers, _preferred(view, entry))
    if chosen is not None:
        view.queue.served(entry)
        if demand.pin is not None:
            view.placing.forget_pin(demand)
        if demand.request is not None:
            view.placing.release(demand)
        _lease(view, run, entry, chosen)
        return True
    view.queue.sleep(entry, _wakes(view, demand))
    if demand.pin is not None:
        _watch_pin(view, demand)
    if view.placing.is_new(demand):
        install_for(view, demand)
    return False


def _preferred(view: View, entry: Entry) -> list[str]:
    """The worker of its affinity key, and the one that its run used for the package."""
    preferred = []
    hint = entry.affinity
    record = view.affinity.lookup(entry.tenant, hint.key) if hint is not None else None
    if record is not None:
        preferred.append(record.worker_id)
    bound_to = view.placing.binding(entry.run_id, entry.demand.package_name)
    if bound_to is not None:
        preferred.append(bound_to)
    return preferred


def _is_elsewhere(view: View, run: RunRecord, entry: Entry) -> bool:
    """Whether the task has another place than when it was queued: its affinity key has found a worker, or has left
    it; or an upstream task has ended since that a join did not wait for, or that made a resource again, and its
    result names one."""
    hint = entry.affinity
    if (
        hint is not None
        and entry.demand.pin is None
        and view.sticky_worker(run.tenant, hint) != entry.demand.sticky
    ):
        return True
    may_have_moved = run.takes_back or not run.is_simple or run.run_id in view.placing.unpinned
    return may_have_moved and _needs_more(view, run, entry)


def may_be_placed(run: RunRecord, task: int) -> bool:
    """Whether a queued task still needs a place."""
    state = run.tasks[task]
    return not run.is_cancelled_at(task) and state.open_calls == 0 and state.is_waiting


def _needs_more(view: View, run: RunRecord, entry: Entry) -> bool:
    try:
        parameters, refs = bind_task(run, entry.task)
    except ExpressionError:
        return True
    if input_failure(run, entry.task, parameters) is not None:
        return True
    pins = {ref.worker_id for ref in view.locate(run.tenant, refs) if ref.worker_id is not None}
    return bool(pins) and pins != {entry.demand.pin}


def _key_is_free(view: View, run: RunRecord, entry: Entry) -> bool:
    assert entry.lock is not None
    return view.keys.is_free(entry.tenant, entry.lock[0], lenders_of(run, entry.task))


def _wakes(view: View, demand: Demand) -> Hashable:
    """What may give this demand a place: its one worker, room on any with the package or the label, or another one."""
    if demand.only is not None:
        return worker_key(demand.tenant, demand.only)
    name = demand.package_name
    if demand.labels and is_offered(demand, view.workers):
        # Not on the package: a slot of each of many pools would wake what waits for all the others.
        return label_key(demand.tenant, *demand.labels[0])
    if view.workers.available(demand.tenant, name) and not is_offered(demand, view.workers):
        return offer_key(demand.tenant, name)
    return package_key(demand.tenant, name)


def _watch_pin(view: View, demand: Demand) -> None:
    """A lost worker has the whole grace to come back, each time that it is lost."""
    chosen = choose(demand, view.workers)
    if isinstance(chosen, NoPlace) and chosen.waiting_for.kind == "resource":
        assert demand.pin is not None
        worker = view.workers.expect(demand.tenant, demand.pin)
        due = view.lost_until(worker, view.settings.resource_grace_s)
        view.placing.watch_pin(demand, due)
        view.timers.set(due, PinDue(demand, due))
    else:
        view.placing.forget_pin(demand)


def _lease(view: View, run: RunRecord, entry: Entry, worker: WorkerEntry) -> None:
    settings = view.settings
    task = entry.task
    parameters, refs = bind_task(run, task)
    pool = worker.pool
    ttl_s = settings.lease_ttl_s if pool is None else pool.start_timeout_s
    ttl_ms = int(ttl_s * 1000)
    command = LeaseTask(task, worker.worker_id, worker.incarnation, ttl_ms)
    if run.has_keys:
        command = msgspec.structs.replace(
            command,
            key=None if entry.lock is None else entry.lock[0],
            affinity_key=None if entry.affinity is None else entry.affinity.key,
        )
    decision = view.decide(run, command)
    assert decision.facts, "a task that may be placed can be leased"
    node = run.tasks[task].node
    attempt = run.tasks[task].attempt
    task_id = run.task_id(task)
    lease = AttemptLease(run, task, task_id, attempt, worker, ttl_s, view.now)
    view.leases.grant(lease)
    view.workers.take_slot(worker, node.type, node.resources)
    if entry.lock is not None:
        view.keys.take(run.tenant, entry.lock[0], task_id, lenders_of(run, task))
    if entry.affinity is not None:
        view.acquire(run.tenant, entry.affinity.key, worker.worker_id)
    view.placing.bind(run.run_id, node.package_name, worker.worker_id)
    if pool is not None:
        view.batch.effects.append(push_of(view, run, task, pool, parameters))
        return
    if node.timeout_s is not None:
        when = view.now + node.timeout_s + settings.timeout_slack_s
        view.timers.set(when, TimeoutDue(task_id, attempt))
    view.sent.expect_ack(lease, view.now + settings.dispatch_ack_timeout_s)
    assert worker.session_id is not None
    assert worker.since is not None, "a worker with a session has registered"
    copies: tuple[ResourceRecord | None, ...] = ()
    if refs:
        refs = view.locate(run.tenant, refs)
        copies = copies_for(view, run.tenant, refs)
    grant = business.LeaseGrant(ttl_ms, worker.since)
    wire_refs = _wire_refs(refs, worker.worker_id) if refs else ()
    dispatch = _dispatch_frame(run, task, grant, parameters, wire_refs)
    tenant = run.tenant if node.secrets else ""
    view.batch.effects.append(SendDispatch(dispatch, worker.session_id, copies, tenant=tenant))


def push_of(
    view: View, run: RunRecord, task: int, pool: PoolRecord, parameters: bytes
) -> SendDispatch:
    """The push of a leased attempt to its pool. A node in a pool starts late: its timeout counts from its start."""
    grant = business.LeaseGrant(int(pool.start_timeout_s * 1000), "")
    dispatch = _dispatch_frame(run, task, grant, parameters, ())
    return SendDispatch(
        dispatch, pool, (), run.plan.workflow_id, view.at, run.tenant if dispatch.secrets else ""
    )


def _dispatch_frame(
    run: RunRecord,
    task: int,
    grant: business.LeaseGrant,
    parameters: bytes,
    refs: tuple[business.RequiredResource, ...],
) -> business.Dispatch:
    state = run.tasks[task]
    node = state.node
    is_alone = state.call is None and node.host is None  # of no chain of middlewares
    host = node if is_alone else run.node_at(task)
    chain: tuple[NodeId, ...] = ()
    if host.middlewares:
        level = run.plan_of(run.host_of(task)).nodes
        chain = tuple([level[one].node_id for one in host.middlewares])
    constraints = NO_CONSTRAINTS
    if node.timeout_s is not None or node.resources is not None:
        timeout_ms = int(node.timeout_s * 1000) if node.timeout_s is not None else None
        constraints = business.Constraints(timeout_ms, _wire_amounts(node.resources))
    hint = None if node.affinity is None else affinity_of(run, task)
    chain_index = None if is_alone else chain_index_of(run, task)
    return business.Dispatch(
        run_id=run.run_id,
        task_id=run.task_id(task),
        attempt=state.attempt,
        failures=state.failures,
        node_id=node.node_id,
        node_type=node.type,
        package=business.PackageId(node.package_name, node.package_version),
        parameters=msgspec.Raw(parameters),
        lease=grant,
        constraints=constraints,
        concurrency_key=None if node.concurrency_key is None else concurrency_key(run, task),
        resource_refs=refs,
        affinity=None if hint is None else business.DispatchAffinity(hint.key, hint.mode),
        host_node_id=host.node_id if chain else None,
        middleware_chain=chain,
        chain_index=chain_index,
        host=None if chain_index is None else wrapped_host(run, task),
        secrets=dict.fromkeys(node.secrets, "") if node.secrets else None,
        traceparent=None
        if run.accepted.trace is None
        else traceparent_of(run, task, state.attempt),
    )


def _wire_amounts(request: Amounts | None) -> MachineAmounts | None:
    if request is None:
        return None
    return MachineAmounts(request.cpu, request.memory_bytes, request.gpu)


def _wire_refs(
    refs: Sequence[ResourceRefValue], worker_id: str
) -> tuple[business.RequiredResource, ...]:
    return tuple(
        business.RequiredResource(ref.resource_id, worker_id, ref.type or UNTYPED, ref.scope)
        for ref in refs
    )


def why_no_place(view: View, demand: Demand) -> WaitReason:
    """What the tasks of a demand wait for."""
    if view.tenants.is_suspended(demand.tenant):
        return WaitReason("tenant", f"tenant {demand.tenant} is suspended")
    if view.is_parked:
        return WaitReason("tenant", PARKED)
    chosen = choose(demand, view.workers)
    if not isinstance(chosen, NoPlace):
        return WaitReason("slot", "")
    if chosen.waiting_for.kind == "package":
        return why_no_package(view, demand) or chosen.waiting_for
    return chosen.waiting_for

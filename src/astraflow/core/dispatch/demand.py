"""What a task needs of a worker. Tasks with equal demands have a place, or none, together.

A concurrency key is none of it, nor is an affinity key that binds to no worker: they differ from task to task, and do
not decide which workers would do.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from astraflow.core import errors
from astraflow.core.expressions import ExpressionError
from astraflow.core.runs.facts import TaskFailure
from astraflow.core.runs.keys import concurrency_key, next_concurrency_key
from astraflow.core.runs.run import RunRecord
from astraflow.core.runs.values import bind_parameters
from astraflow.core.workflow.amounts import Amounts
from astraflow.core.workflow.plan import ResourceRefValue, find_resource_refs


class Demand(msgspec.Struct, frozen=True, gc=False):
    """The requirements of a task, as far as they decide where it can go."""

    tenant: str
    package_name: str
    package_version: str
    node_type: str
    runtime: str | None = None
    labels: tuple[tuple[str, str], ...] = ()
    pin: str | None = None
    """The one worker that holds a resource which the task refers to."""
    sticky: str | None = None
    """The one worker that a sticky affinity key binds the task to."""
    needs_session: bool = False
    """It calls the rest of a chain, uses resources, or wants to be where it was before: an HTTP worker can do none."""
    request: Amounts | None = None
    """What it takes of a worker's machine."""

    @property
    def only(self) -> str | None:
        """The one worker that will do, if it is only one."""
        return self.pin if self.pin is not None else self.sticky


def bind_task(run: RunRecord, task: int) -> tuple[bytes, Sequence[ResourceRefValue]]:
    """The parameters of a ready task, as authored, with the committed results of its upstream (P4); and what they refer
    to.

    PROTOCOL §4: "After binding, every {"resourceRef": {…}} found in the parameters joins `resource_refs`".

    Raises:
        ExpressionError: a parameter has no value.
    """
    state = run.tasks[task]
    node = state.node
    is_authored = not (node.inputs or node.expressions or node.takes_item)
    if state.call is None and is_authored:
        return node.parameters, node.resource_refs  # the planner has looked for references
    parameters = _bound_parameters(run, task)
    bound = find_resource_refs(parameters)
    if not bound and len(node.resource_refs) < 2:
        return parameters, node.resource_refs
    return parameters, list(dict.fromkeys((*node.resource_refs, *bound)))


def refs_of(run: RunRecord, task: int) -> Sequence[ResourceRefValue]:
    """What a task refers to, as far as its parameters can be bound."""
    try:
        return bind_task(run, task)[1]
    except ExpressionError:
        return run.tasks[task].node.resource_refs


def host_input(run: RunRecord, task: int) -> bytes | None:
    """What the host of a chain would be given if the middleware `task` called it now with nothing of its own; None if
    a parameter has no value: the call then says so."""
    given = _given_payload(run, task)
    if given is not None:
        return given
    host = run.host_of(task)
    try:
        return bind_parameters(run, host, run.node_at(host))
    except ExpressionError:
        return None


def _bound_parameters(run: RunRecord, task: int) -> bytes:
    call = run.tasks[task].call
    if call is not None and call.chain_index is None:
        given = _given_payload(run, task)
        if given is not None:
            return given
    return bind_parameters(run, run.host_of(task), run.tasks[task].node)


def _given_payload(run: RunRecord, task: int) -> bytes | None:
    """What a middleware gave its host in place of its parameters: the innermost that gave something."""
    for link in (task, *run.callers_of(task)):
        call = run.tasks[link].call
        if call is not None and bytes(call.payload) != b"null":
            return bytes(call.payload)
    return None


def conflict_of(refs: Sequence[ResourceRefValue]) -> TaskFailure | None:
    """Resources on two workers cannot be used by one task."""
    if len(refs) < 2:
        return None
    workers = sorted({ref.worker_id for ref in refs if ref.worker_id is not None})
    if len(workers) < 2:
        return None
    message = f"the task refers to resources of several workers: {', '.join(workers)}"
    return TaskFailure(errors.RESOURCE_CONFLICT.code, "CONFIGURATION", message)


def demand_of(
    run: RunRecord, task: int, refs: Sequence[ResourceRefValue], sticky: str | None = None
) -> Demand:
    """The demand of a task whose references are known not to conflict."""
    node = run.tasks[task].node
    pins = [ref.worker_id for ref in refs if ref.worker_id is not None]
    return Demand(
        run.tenant,
        node.package_name,
        node.package_version,
        node.type,
        node.runtime,
        node.worker_labels,
        pins[0] if pins else None,
        sticky if not pins else None,
        bool(refs) or node.host is not None or node.affinity is not None,
        node.resources,
    )


def lock_of(run: RunRecord, task: int) -> tuple[str, str | None] | None:
    """The concurrency key that a task needs, and the chain that lends it: those that it waits for may use a key which
    for others is taken. Raises: ExpressionError."""
    key = next_concurrency_key(run, task)
    if key is None:
        return None
    is_lent = any(concurrency_key(run, caller) == key for caller in run.callers_of(task))
    return key, run.task_id(run.host_of(task)) if is_lent else None

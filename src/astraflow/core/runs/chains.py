"""Which tasks of a run stand for which node of a chain of middlewares.

The task of a wrapped host runs the outermost middleware, and its outcome is that of the whole chain: what the nodes
after the host are given. Each other node of the chain, and the host itself, is executed by calls, any number of times.
Inside of a map each item has a chain of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from astraflow.core.runs.run import RunRecord

Calls = Mapping[int, Sequence[int]]
"""The calls that executed each node, oldest first, by the task that stands where the node does."""


def calls_by_task(run: RunRecord) -> Calls:
    """All calls of a run."""
    found: dict[int, list[int]] = {}
    for call in run.calls.values():
        found.setdefault(_place_of(run, call), []).append(call)
    return found


def _place_of(run: RunRecord, call: int) -> int:
    host = run.host_of(call)
    opened = run.tasks[call].call
    assert opened is not None
    if opened.chain_index is None:
        return host
    return run.base_of(host) + run.node_at(host).middlewares[opened.chain_index]


def host_task(run: RunRecord, index: int) -> int | None:
    """The task of the host that a middleware is around; None for other nodes."""
    host = run.node_at(index).host
    return None if host is None else run.base_of(index) + host


def shown_task(run: RunRecord, index: int, calls: Calls | None = None) -> int:
    """The task that a node is shown with: of a middleware its last call, of the outermost the task of its host."""
    host = host_task(run, index)
    if host is None:
        return index
    if is_outermost(run, index):
        return host
    found = (calls_by_task(run) if calls is None else calls).get(index)
    return found[-1] if found else index


def is_outermost(run: RunRecord, index: int) -> bool:
    """Whether a node is the outermost middleware of its host."""
    host = host_task(run, index)
    return host is not None and run.node_at(host).middlewares[:1] == (index - run.base_of(index),)


def executing_tasks(run: RunRecord, index: int) -> set[int]:
    """The tasks that executed a node itself: of a wrapped host its calls, not the task that runs its chain."""
    host = host_task(run, index)
    if host is None and not run.node_at(index).middlewares:
        return {index}
    if host is not None and is_outermost(run, index):
        return {host}
    return set(calls_by_task(run).get(index, ()))


def related_tasks(run: RunRecord, index: int) -> dict[int, str]:
    """The tasks that the timeline of a node is made of, each with what its sentences begin with: of a host the tasks
    of its whole chain."""
    node = run.node_at(index)
    if not node.middlewares and node.host is None:
        return {index: ""}
    tasks: list[int] = sorted(executing_tasks(run, index))
    if node.middlewares:
        tasks = [index, *(task for task in run.calls.values() if run.host_of(task) == index)]
    numbers = {
        task: number
        for calls in calls_by_task(run).values()
        for number, task in enumerate(calls, 1)
    }
    return {task: _prefix(run, task, numbers.get(task)) for task in tasks}


def _prefix(run: RunRecord, task: int, call_number: int | None) -> str:
    node = run.tasks[task].node
    name = node.label or node.node_id
    return f"{name}: " if call_number is None else f"{name}, call {call_number}: "

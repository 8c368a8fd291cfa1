"""What clients see of nodes with a body: the nodes inside, and the items of a map.

A container has its body once, so that a node inside has one task and is shown as any other. Inside of a map a node has
a task for each item: it is shown once, with counts, and each item can be asked for.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

import msgspec
from msgspec import structs

from astraflow.core import errors
from astraflow.core.contract.runs import Artifact, ItemCounts, Node, Run, WaitingFor
from astraflow.core.contract.scope_paths import is_within
from astraflow.core.contract.words import NodeStatus
from astraflow.core.runs.chains import Calls, calls_by_task, shown_task
from astraflow.core.runs.projections import (
    artifact_view,
    node_status,
    shown_status,
    view_node,
    view_run,
)
from astraflow.core.runs.run import RunRecord
from astraflow.core.workflow.plan import BodyStep, Plan, PlanNode

_members: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])
_ENDED: Final = ("succeeded", "failed", "skipped", "cancelled")


class Level(NamedTuple):
    """The nodes of one plan, and the numbers of the first tasks of each time that the run has it."""

    plan: Plan
    bases: Sequence[int]
    is_mapped: bool
    parent: str | None


def levels_of(run: RunRecord) -> Iterator[Level]:
    """The workflow itself and what is inside its containers and maps; called workflows are left out."""
    pending = [Level(run.plan, (0,), False, None)]
    while pending:
        level = pending.pop(0)
        yield level
        for place, node in enumerate(level.plan.nodes):
            body = _body_of(node)
            if body is None or body.is_call:
                continue
            bases = [base for task in level.bases for base in _bases(run, task + place)]
            is_mapped = level.is_mapped or body.map is not None
            parent = level.parent if body.map is not None else node.node_id
            pending.append(Level(body.plan, bases, is_mapped, parent))


def _body_of(node: PlanNode) -> BodyStep | None:
    return None if node.control is None else node.control.body


def _bases(run: RunRecord, owner: int) -> Iterator[int]:
    scope = run.scopes.get(owner)
    if scope is not None:
        yield from (scope.first_of(item) for item in range(scope.count))


def inner_nodes(run: RunRecord) -> list[Node]:
    """The nodes of the definition that are inside of others."""
    found: list[Node] = []
    calls = calls_by_task(run)
    for level in levels_of(run):
        if level.plan is run.plan:
            continue
        for place, node in enumerate(level.plan.nodes):
            if not node.takes_item:  # that one is the map itself
                tasks = [base + place for base in level.bases]
                found.append(_view(run, node, tasks, level, calls))
    return found


def view_whole(
    run: RunRecord, ack_deadlines: Mapping[int, str], waits: Mapping[int, WaitingFor]
) -> Run:
    """The run as REST shows it, with the nodes inside of others."""
    view = view_run(run, ack_deadlines=ack_deadlines, waits=waits)
    if not any(_body_of(node) for node in run.plan.nodes):
        return view
    outer = [with_scope(run, index, node) for index, node in enumerate(view.nodes)]
    return structs.replace(view, nodes=[*outer, *inner_nodes(run)])


def _view(run: RunRecord, node: PlanNode, tasks: list[int], level: Level, calls: Calls) -> Node:
    if len(tasks) == 1 and not level.is_mapped:
        return with_scope(run, tasks[0], view_node(run, tasks[0], calls=calls), level.parent)
    counts = _counts(run, [shown_task(run, task, calls) for task in tasks])
    status = _status(counts) if tasks else "skipped" if run.is_terminal else "pending"
    return Node(
        node_id=node.node_id,
        type=node.type,
        label=node.label,
        status=status,
        attempt=0,
        failures=0,
        worker_id=None,
        waiting_for=None,
        result=None,
        error=None,
        progress=None,
        message=None,
        started_at=None,
        finished_at=None,
        pending_ack=False,
        dispatch_id=None,
        ack_deadline=None,
        artifacts=[],
        parent=level.parent,
        items=counts if level.is_mapped else None,
    )


def with_scope(run: RunRecord, task: int, node: Node, parent: str | None = None) -> Node:
    """A node as it is shown, with what is known of where it is and of its items."""
    scope = run.scopes.get(task)
    path = path_of(run, task)
    items = None
    if scope is not None and scope.step.map is not None:
        items = _counts(run, [scope.first_of(item) for item in range(scope.count)])
    elif scope is None and _is_empty_map(run, task):
        items = _counts(run, ())
    if path is None and scope is None and parent is None and items is None:
        return node
    mapped = next(((one, item) for one, item in run.scopes_of(task)), None)
    item = mapped[1] if mapped is not None and mapped[0].step.map is not None else None
    return structs.replace(node, scope_path=path, items=items, parent=parent, item=item)


def _is_empty_map(run: RunRecord, task: int) -> bool:
    """Whether a task is a map that had nothing to do: its list is empty, so that it has opened no scope."""
    body = _body_of(run.tasks[task].node)
    result = run.tasks[task].result
    if body is None or body.map is None or result is None:
        return False
    try:
        collected = _members.decode(result).get(body.map.collect)
    except msgspec.ValidationError:  # a pinned result is whatever its author likes
        return False
    return collected is not None and bytes(collected) == b"[]"


def path_of(run: RunRecord, task: int) -> str | None:
    """Where a task is: the nodes and items around it, outermost first."""
    steps = [f"{run.node_at(scope.owner).node_id}:{item}" for scope, item in run.scopes_of(task)]
    return "/".join(reversed(steps)) or None


def _counts(run: RunRecord, tasks: Sequence[int]) -> ItemCounts:
    words = Counter(shown_status(run, run.tasks[task]) for task in tasks)
    ended = {word: words[word] for word in _ENDED}
    pending = words["pending"]
    running = len(tasks) - pending - sum(ended.values())
    return ItemCounts(
        total=len(tasks),
        pending=pending,
        running=running,
        succeeded=words["succeeded"],
        failed=words["failed"],
        skipped=words["skipped"],
        cancelled=words["cancelled"],
    )


def _status(counts: ItemCounts) -> NodeStatus:
    """One word for many: what is under way first, then what went wrong."""
    if counts.pending == counts.total:
        return "pending"
    if counts.pending or counts.running:
        return "running"
    if counts.failed:
        return "failed"
    if counts.cancelled:
        return "cancelled"
    return "succeeded" if counts.succeeded else "skipped"


# -- finding one -------------------------------------------------------------------------------


def find_task(run: RunRecord, node_id: str, scope_path: str | None = None) -> int:
    """The task of a node: of the workflow itself, inside of containers, or at a path of items.

    Raises: NotFound.
    """
    if scope_path:
        base, plan = _descend(run, scope_path)
        return base + _place(plan, node_id)
    for level in levels_of(run):
        place = level.plan.find(node_id)
        if place is None or level.plan.nodes[place].takes_item:
            continue
        if len(level.bases) == 1 and not level.is_mapped:
            return level.bases[0] + place
        what = "is inside of a map: give `scope`" if level.is_mapped else "has not begun"
        raise errors.NotFound(errors.RUN_NODE_NOT_FOUND, f"the node {what}: {node_id[:64]}")
    raise errors.NotFound(errors.RUN_NODE_NOT_FOUND, f"no such node in the run: {node_id[:64]}")


_is_number: Final = re.compile(r"0|[1-9][0-9]{0,8}").fullmatch
"""An item has one path: 01 is none."""


def _place(plan: Plan, node_id: str) -> int:
    place = plan.find(node_id)
    if place is None:
        message = f"no such node in this scope: {node_id[:64]}"
        raise errors.NotFound(errors.RUN_NODE_NOT_FOUND, message)
    return place


def _descend(run: RunRecord, scope_path: str) -> tuple[int, Plan]:
    base, plan = 0, run.plan
    for step in scope_path.split("/"):
        node_id, _, number = step.partition(":")
        scope = run.scopes.get(base + _place(plan, node_id))
        item = int(number) if _is_number(number) else -1
        if scope is None or not 0 <= item < scope.count:
            message = f"no such item in the run: {step[:64]}"
            raise errors.NotFound(errors.RUN_NODE_NOT_FOUND, message)
        base, plan = scope.first_of(item), scope.plan
    return base, plan


def check_scope(run: RunRecord, scope_path: str) -> None:
    """Raises: NotFound: the run has no such scope, or has not begun it."""
    _descend(run, scope_path)


def view_artifacts(run: RunRecord, scope_path: str) -> list[Artifact]:
    """The artifacts of all nodes; with a path, of those inside of that scope.

    Raises: NotFound.
    """
    if scope_path:
        check_scope(run, scope_path)
    return [
        artifact_view(artifact)
        for index, task in enumerate(run.tasks)
        if task.artifacts and (not scope_path or is_within(path_of(run, index), scope_path))
        for artifact in task.artifacts
    ]


def view_body(run: RunRecord, task: int, item: int) -> list[Node]:
    """The nodes of the body of a node, for one item; the body of a container and of a call has one.

    Raises: NotFound.
    """
    scope = run.scopes.get(task)
    if scope is None or item >= scope.count:
        message = f"the node has no such item, or has not begun: {item}"
        raise errors.NotFound(errors.RUN_NODE_NOT_FOUND, message)
    first = scope.first_of(item)
    tasks, calls = range(first, first + scope.width), calls_by_task(run)
    return [with_scope(run, inner, view_node(run, inner, calls=calls)) for inner in tasks]


def view_items(
    run: RunRecord, task: int, first: int, limit: int, status: NodeStatus | None = None
) -> list[Node]:
    """The items of a map from `first` on, in their order, `limit` at the most."""
    scope = run.scopes.get(task)
    if scope is not None and scope.step.map is None:
        scope = None
    found: list[Node] = []
    calls = calls_by_task(run)
    for item in range(first, 0 if scope is None else scope.count):
        assert scope is not None
        inner = scope.first_of(item)
        if status is not None and node_status(run.tasks[inner]) != status:
            continue
        found.append(with_scope(run, inner, view_node(run, inner, calls=calls)))
        if len(found) == limit:
            break
    return found

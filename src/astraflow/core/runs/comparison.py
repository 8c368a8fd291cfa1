"""Two runs, node by node: what they did, with what, and what came of it.

A side is read from a run at once; the values in it are compared later, in a thread if they are large.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from astraflow.core.contract.reruns import NodeComparison, NodeSide, RunComparison
from astraflow.core.contract.versions import ValueChange
from astraflow.core.contract.words import RunStatus
from astraflow.core.json_diff import MAX_DIFFERENCES, differences
from astraflow.core.runs.chains import shown_task
from astraflow.core.runs.projections import view_node
from astraflow.core.runs.run import RunRecord

ResultWord = Literal["equal", "changed", "only_first", "only_second", "none"]


class ComparedNode(msgspec.Struct, frozen=True):
    """What is compared of a node."""

    label: str
    type: str
    side: NodeSide
    parameters: bytes
    result: bytes | None


class ComparedRun(msgspec.Struct, frozen=True):
    """What is compared of a run: nothing in it changes when the run goes on."""

    run_id: str
    status: RunStatus
    inputs: bytes
    nodes: Mapping[str, ComparedNode]

    @property
    def size(self) -> int:
        """The bytes of its values."""
        return sum(len(one.parameters) + len(one.result or b"") for one in self.nodes.values())


def side_of(run: RunRecord) -> ComparedRun:
    """What is compared of a run, as it is now."""
    nodes = {str(node.node_id): _node_of(run, index) for index, node in enumerate(run.plan.nodes)}
    return ComparedRun(run.run_id, run.status, bytes(run.accepted.inputs), nodes)


def _node_of(run: RunRecord, index: int) -> ComparedNode:
    node, view = run.plan.nodes[index], view_node(run, index)
    task = run.tasks[shown_task(run, index)]
    is_timed = task.started_at is not None and task.finished_at is not None
    side = NodeSide(
        status=view.status,
        attempt=view.attempt,
        duration_ms=(task.finished_at or 0) - (task.started_at or 0) if is_timed else None,
        worker_id=view.worker_id,
        package=node.package_name,
        package_version=node.package_version,
    )
    result = None if task.result is None else bytes(task.result)
    return ComparedNode(node.label or "", node.type, side, node.parameters, result)


def compare_runs(
    first: ComparedRun, second: ComparedRun, limit: int = MAX_DIFFERENCES
) -> RunComparison:
    """What differs between two runs; at most `limit` differences of values are listed."""
    values = _Values(limit)
    inputs = values.changes(first.inputs, second.inputs)
    order = [*first.nodes, *(node for node in second.nodes if node not in first.nodes)]
    nodes = [
        _compare(node, first.nodes.get(node), second.nodes.get(node), values) for node in order
    ]
    return RunComparison(
        first=first.run_id,
        second=second.run_id,
        first_status=first.status,
        second_status=second.status,
        inputs=inputs,
        nodes=nodes,
        is_truncated=values.is_truncated,
    )


def _compare(
    node_id: str, first: ComparedNode | None, second: ComparedNode | None, values: _Values
) -> NodeComparison:
    known = first or second
    assert known is not None, "a node is in one of the runs"
    result, result_changes = _results(
        None if first is None else first.result, None if second is None else second.result, values
    )
    parameters: list[ValueChange] = []
    is_equal = False
    if first is not None and second is not None:
        parameters = values.changes(first.parameters, second.parameters)
        is_equal = (
            _outcome(first.side) == _outcome(second.side)
            and not values.differ(first.parameters, second.parameters)
            and result in ("equal", "none")
        )
    return NodeComparison(
        node_id=node_id,
        label=known.label,
        type=known.type,
        is_equal=is_equal,
        first=None if first is None else first.side,
        second=None if second is None else second.side,
        parameters=parameters,
        result=result,
        result_changes=result_changes,
    )


def _outcome(side: NodeSide) -> tuple[str, str, str]:
    return side.status, side.package, side.package_version


def _results(
    first: bytes | None, second: bytes | None, values: _Values
) -> tuple[ResultWord, list[ValueChange]]:
    if first is None or second is None:
        if first is None and second is None:
            return "none", []
        return ("only_second" if first is None else "only_first"), []
    if not values.differ(first, second):
        return "equal", []
    return "changed", values.changes(first, second)


class _Values:
    """Compares JSON texts, and counts what may still be listed."""

    def __init__(self, limit: int) -> None:
        self._left = limit
        self.is_truncated = False

    def differ(self, first: bytes, second: bytes) -> bool:
        """Whether they are different JSON values."""
        return first != second and differences(_decode(first), _decode(second), limit=0)[1]

    def changes(self, first: bytes, second: bytes) -> list[ValueChange]:
        if first == second:
            return []
        found, has_more = differences(_decode(first), _decode(second), limit=self._left)
        self._left -= len(found)
        self.is_truncated = self.is_truncated or has_more
        return [msgspec.convert(one, ValueChange, from_attributes=True) for one in found]


def _decode(text: bytes) -> Any:
    return msgspec.json.decode(text)

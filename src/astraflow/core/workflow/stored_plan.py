"""The stored form of a plan, and how it is read.

Most nodes of a large plan differ in their id, their label and their parameters alone. So they are stored as *kinds*,
each once, and columns of what differs: a start with a million waiting tasks is made of reading them. A node is then a
copy of its kind, so that equal parts are one object again (rule 3 of `plan`).

Earlier releases stored every node as a whole: such a plan is read node by node, and equal parts are found by comparing
each node with the one before it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from operator import attrgetter
from typing import Any, Final

import msgspec

from astraflow.core.ids import NodeId
from astraflow.core.workflow.plan import Plan, PlanNode

_OWN: Final = ("node_id", "label", "parameters")
"""The parts in which nodes of one kind differ."""
_parts_of: Final[Callable[[PlanNode], tuple[Any, ...]]] = attrgetter(
    *(name for name in PlanNode.__struct_fields__ if name not in _OWN)
)
_ids, _labels, _parameters = (attrgetter(name) for name in _OWN)


class _StoredPlan(Plan, frozen=True, gc=False, kw_only=True, omit_defaults=True):
    """A plan whose nodes are in columns."""

    nodes: tuple[PlanNode, ...] = ()
    """Whole, if an earlier release has stored them."""
    kinds: tuple[PlanNode, ...] = ()
    """Of each kind, its first node."""
    rows: tuple[tuple[int, int], ...] = ()
    """The kind of the next nodes, and how many they are."""
    ids: tuple[NodeId, ...] = ()
    labels: tuple[str, ...] = ()
    parameters: tuple[bytes, ...] = ()


_encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder(_StoredPlan).decode
_set: Final = msgspec.structs.force_setattr
# Not `copy.copy`, which finds this method anew each time.
_copy: Final[Callable[[PlanNode], PlanNode]] = PlanNode.__copy__  # type: ignore[attr-defined]


def encode_plan(plan: Plan) -> bytes:
    """The stored form of a plan."""
    kinds, rows = _kinds(plan.nodes)
    return _encode(
        _StoredPlan(
            workflow_id=plan.workflow_id,
            kinds=tuple(kinds),
            rows=tuple(rows),
            ids=tuple(map(_ids, plan.nodes)),
            labels=tuple(map(_labels, plan.nodes)),
            parameters=tuple(map(_parameters, plan.nodes)),
            **_rest_of(plan, plan.parents, plan.children),
        )
    )


def decode_plan(raw: bytes) -> Plan:
    """Read a stored plan, of this release or an earlier one. Raises: msgspec.DecodeError."""
    stored = _decode(raw)
    nodes = _shared(stored.nodes) if stored.nodes else _nodes(stored)
    equal: dict[tuple[int, ...], tuple[int, ...]] = {}
    return Plan(
        workflow_id=stored.workflow_id,
        nodes=tuple(nodes),
        **_rest_of(
            stored,
            tuple([equal.setdefault(one, one) for one in stored.parents]),
            tuple([equal.setdefault(one, one) for one in stored.children]),
        ),
    )


def _rest_of(
    plan: Plan, parents: tuple[tuple[int, ...], ...], children: tuple[tuple[int, ...], ...]
) -> dict[str, Any]:
    """What is stored as it is."""
    return {
        "parents": parents,
        "children": children,
        "features": plan.features,
        "outputs": plan.outputs,
        "timeout_s": plan.timeout_s,
        "names": plan.names,
        "schemas": plan.schemas,
    }


def _kinds(nodes: Iterable[PlanNode]) -> tuple[list[PlanNode], list[tuple[int, int]]]:
    """The first node of each kind; and the kinds of the nodes, in rows."""
    kinds: list[PlanNode] = []
    rows: list[tuple[int, int]] = []
    known: dict[tuple[Any, ...], int] = {}
    last: tuple[Any, ...] | None = None
    kind = count = 0
    for node in nodes:
        parts = _parts_of(node)
        if parts == last:
            count += 1
            continue
        if count:
            rows.append((kind, count))
        # What the scheduler itself does may have a body, which is no key: such a node is of a kind of its own.
        place = known.setdefault(parts, len(kinds)) if node.control is None else len(kinds)
        if place == len(kinds):
            kinds.append(node)
        last, kind, count = parts, place, 1
    if count:
        rows.append((kind, count))
    return kinds, rows


def _nodes(stored: _StoredPlan) -> Iterator[PlanNode]:
    columns = zip(stored.ids, stored.labels, stored.parameters, strict=True)
    for kind, count in stored.rows:
        first = stored.kinds[kind]
        label, parameters = first.label, first.parameters
        for node_id, its_label, its_parameters in islice(columns, count):
            node = _copy(first)
            _set(node, "node_id", node_id)
            if its_label != label:
                _set(node, "label", its_label)
            if its_parameters != parameters:
                _set(node, "parameters", its_parameters)
            yield node


def _shared(nodes: Iterable[PlanNode]) -> Iterator[PlanNode]:
    """The same nodes. One that is of the kind of the one before it has all other parts in common with that."""
    last: PlanNode | None = None
    for node in nodes:
        if last is not None and _parts_of(node) == _parts_of(last):
            copy = _copy(last)
            _set(copy, "node_id", node.node_id)
            if node.label != last.label:
                _set(copy, "label", node.label)
            if node.parameters != last.parameters:
                _set(copy, "parameters", node.parameters)
            node = copy
        last = node
        yield node

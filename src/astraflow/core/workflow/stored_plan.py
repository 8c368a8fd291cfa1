"""The stored form of a plan, and how it is read.

A decoder makes every string and tuple anew: 400 bytes a node more than the plan that was stored, in which equal parts
are one object (rule 3 of `plan`). Reading shares them again. Most nodes are stored with the bytes of the node before
them, their id left out: such a node is copied from that one and not decoded. A start with a million waiting tasks is
made of that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

import msgspec

from astraflow.core.workflow.plan import Plan, PlanNode

ID_CHARS: Final = 36
_ID: Final = b"\xa7node_id\xd9\x24"
"""In MessagePack: the key of the first field of a node, and the head of a text of 36 characters."""
_MAP_HEAD: Final = 3
"""Bytes of a map before its first key, at the most."""

encode_plan: Final = msgspec.msgpack.Encoder().encode


class _StoredPlan(Plan, frozen=True, gc=False, kw_only=True):
    """A plan whose nodes are not decoded."""

    nodes: tuple[msgspec.Raw, ...]  # type: ignore[assignment]


_decode: Final = msgspec.msgpack.Decoder(_StoredPlan).decode
_decode_node: Final = msgspec.msgpack.Decoder(PlanNode).decode
_set: Final = msgspec.structs.force_setattr
# Not `copy.copy`, which finds this method anew each time.
_copy: Final[Callable[[PlanNode], PlanNode]] = PlanNode.__copy__  # type: ignore[attr-defined]


def decode_plan(raw: bytes) -> Plan:
    """Read a stored plan, of this release or an earlier one. Raises: msgspec.DecodeError."""
    stored = _decode(raw)
    nodes = tuple(_nodes(stored.nodes))
    equal: dict[tuple[int, ...], tuple[int, ...]] = {}
    return Plan(
        workflow_id=stored.workflow_id,
        nodes=nodes,
        parents=tuple([equal.setdefault(one, one) for one in stored.parents]),
        children=tuple([equal.setdefault(one, one) for one in stored.children]),
        features=stored.features,
        outputs=stored.outputs,
        timeout_s=stored.timeout_s,
        names=stored.names,
        schemas=stored.schemas,
    )


def _nodes(stored: Iterable[msgspec.Raw]) -> Iterator[PlanNode]:
    size, head, tail = -1, b"", b""  # of the node before: its length, and its bytes around its id
    last: PlanNode | None = None
    for raw in stored:
        body = bytes(raw)
        if len(body) == size and body.startswith(head) and body.endswith(tail):
            assert last is not None
            node = _copy(last)
            _set(node, "node_id", body[len(head) : -len(tail)].decode())
        else:
            node = _decode_node(body)
            if last is not None:
                node = _shared(node, last)
            size, head, tail = _around_id(body)
        last = node
        yield node


def _around_id(body: bytes) -> tuple[int, bytes, bytes]:
    """The length of a stored node and its bytes before and after its id; -1 if the id has another form."""
    place = body.find(_ID, 0, _MAP_HEAD + len(_ID))
    if place < 0:
        return -1, b"", b""
    start = place + len(_ID)
    return len(body), body[:start], body[start + ID_CHARS :]


def _shared(node: PlanNode, last: PlanNode) -> PlanNode:
    """The same node. If it differs from the one before only in its id, label and parameters, it has all other parts in
    common with that."""
    copy = _copy(last)
    _set(copy, "node_id", node.node_id)
    if node.label != last.label:
        _set(copy, "label", node.label)
    if node.parameters != last.parameters:
        _set(copy, "parameters", node.parameters)
    return copy if copy == node else node

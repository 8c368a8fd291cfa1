"""Plans for tests, drawn by hand: nodes by number, edges as pairs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from inspect import isdatadescriptor
from random import Random
from typing import Any

from astraflow.core.ids import NodeId, RunId
from astraflow.core.runs.accept import accept
from astraflow.core.runs.decision import Decision
from astraflow.core.runs.facts import RunAccepted
from astraflow.core.runs.run import Task
from astraflow.core.workflow.plan import (
    BodyStep,
    ControlStep,
    Feature,
    InEdge,
    InputEdge,
    MapStep,
    Plan,
    PlanNode,
    RetryPolicy,
)

AT = 1_700_000_000_000

TASK_ATTRIBUTES = [name for name, one in vars(Task).items() if isdatadescriptor(one)]
"""What a task has. A class that is compiled has no `__slots__` that would say so."""

JOINING = frozenset({Feature.JOIN_ANY, Feature.JOIN_ALL_DONE, Feature.ERROR_PORT})


def make_plan(
    count: int,
    edges: Sequence[tuple[int, int]] = (),
    *,
    nodes: Mapping[int, Mapping[str, Any]] | None = None,
    error_edges: Sequence[tuple[int, int]] = (),
    features: frozenset[Feature] = frozenset(),
    reads: bool = False,
    schemas: tuple[bytes, ...] = (),
) -> Plan:
    """A plan of `count` nodes; `nodes` overrides fields of single ones."""
    every = [*edges, *error_edges]
    parents = [sorted({one for one, other in every if other == index}) for index in range(count)]
    children = [sorted({other for one, other in every if one == index}) for index in range(count)]
    made = []
    for index in range(count):
        edges_in = [InEdge(one, "control") for one, other in edges if other == index]
        edges_in += [InEdge(one, "error") for one, other in error_edges if other == index]
        fields: dict[str, Any] = {
            "node_id": NodeId(f"n{index}"),
            "type": "t.node",
            "label": f"node {index}",
            "package_name": "pkg",
            "package_version": "1.0",
            "edges_in": tuple(edges_in),
            "inputs": tuple(InputEdge(one, ("v",), (f"from{one}",)) for one in parents[index])
            if reads
            else (),
        }
        fields.update((nodes or {}).get(index, {}))
        made.append(PlanNode(**fields))
    return Plan(
        workflow_id="wf",
        nodes=tuple(made),
        parents=tuple(map(tuple, parents)),
        children=tuple(map(tuple, children)),
        features=features,
        schemas=schemas,
    )


def wrapped(count: int, **fields: Mapping[str, Any]) -> Plan:
    """A host, n0, in a chain of `count` middlewares, outermost n1; `fields` of single nodes by id."""
    nodes: dict[int, dict[str, Any]] = {0: {"middlewares": tuple(range(1, count + 1))}}
    nodes.update({index: {"host": 0} for index in range(1, count + 1)})
    for node_id, more in fields.items():
        nodes[int(node_id[1:])].update(more)
    return make_plan(count + 1, nodes=nodes, features=frozenset({Feature.MIDDLEWARE}))


def with_body(**fields: Any) -> dict[str, Any]:
    """The field of a node that is run for each item of a list: its body is one node."""
    body = BodyStep(plan=make_plan(1), map=MapStep(path=("list",), target=("item",)), **fields)
    return {"control": ControlStep(body=body)}


def retrying(attempts: int = 3, **fields: Any) -> dict[str, Any]:
    """The field of a node that is tried again."""
    return {"retry": RetryPolicy(attempts, 1.0, 2.0, 8.0, 0.0), **fields}


def accepted(**fields: Any) -> RunAccepted:
    return RunAccepted(AT, RunId("run1"), "acme", "wf", **fields)


def start(plan: Plan, **fields: Any) -> Decision:
    """A run that has just been accepted."""
    return accept(plan, accepted(**fields), Random(1))

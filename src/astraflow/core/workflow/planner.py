"""The planner: from a definition to the `Plan` that a run executes.

Planning happens once for each accepted run and its cost is linear: 50,000 nodes in under a second.
Hence the shared objects: a plan of equal nodes holds one retry policy, one node type and one tuple
for each set of parents, not 50,000.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec

from astraflow.core.errors import WORKFLOW_INVALID
from astraflow.core.ids import NodeId
from astraflow.core.workflow.amounts import Amounts
from astraflow.core.workflow.analysis import Analysis
from astraflow.core.workflow.callees import Callees
from astraflow.core.workflow.core_manifest import (
    APPROVAL_TYPE,
    CALL_TYPE,
    CONTAINER_TYPE,
    IF_TYPE,
    SWITCH_TYPE,
)
from astraflow.core.workflow.definition import Approval, ContainerSpec
from astraflow.core.workflow.expression_rules import condition_text
from astraflow.core.workflow.maps import map_step
from astraflow.core.workflow.plan import (
    DEFAULT_RETRY,
    OUTER,
    AffinityHint,
    ApprovalStep,
    BodyStep,
    ControlStep,
    InEdge,
    InputEdge,
    Plan,
    PlanNode,
    PlanOutput,
    ResourceRefValue,
    RetryPolicy,
)
from astraflow.core.workflow.ports import TRIGGER
from astraflow.core.workflow.problems import InvalidDocument
from astraflow.core.workflow.value_schemas import find_schema

if TYPE_CHECKING:
    from collections.abc import Sequence

    from astraflow.core.workflow.bindings import Path
    from astraflow.core.workflow.callees import Documents
    from astraflow.core.workflow.catalog import Catalog
    from astraflow.core.workflow.definition import (
        Affinity,
        NodeSpec,
        ResourcesSpec,
        Retry,
        WorkflowDocument,
    )
    from astraflow.core.workflow.edge_rules import PlannedEdge
    from astraflow.core.workflow.ports import PortSpec

_Labels = tuple[tuple[str, str], ...]
_NO_TUPLE: Final[tuple[Any, ...]] = ()
_WITH_BODY: Final = frozenset({CONTAINER_TYPE, CALL_TYPE})
_CHOICES: Final[dict[str, Literal["if", "switch"]]] = {IF_TYPE: "if", SWITCH_TYPE: "switch"}


def plan_workflow(
    definition: WorkflowDocument, catalog: Catalog, documents: Documents | None = None
) -> Plan:
    """Validate a definition and plan it. `documents` are the definitions that it calls, and those that they call.

    Raises:
        InvalidDocument: a `Refused` that carries all problems.
    """
    return _plan(definition, catalog, callees_of(definition, catalog, documents or {}))


def callees_of(definition: WorkflowDocument, catalog: Catalog, documents: Documents) -> Callees:
    """The workflows that a definition may call."""

    def plan(callee: WorkflowDocument, callees: Callees) -> Plan:
        return _plan(callee, catalog, callees)

    return Callees(documents, plan, definition.workflow.id)


def _plan(definition: WorkflowDocument, catalog: Catalog, callees: Callees) -> Plan:
    analysis = Analysis(definition.workflow, catalog, callees)
    problems = analysis.problems.found()
    if problems:
        raise InvalidDocument(WORKFLOW_INVALID, problems)
    return _Planner(analysis).plan()


class _Planner:
    """Plans one level: the workflow itself, or the inside of a container or a map."""

    def __init__(self, analysis: Analysis, above: _Planner | None = None) -> None:
        self._analysis = analysis
        self._workflow = analysis.workflow
        self._order = analysis.order
        # In the authored order, places are ranks. Either way there is
        # one int object for each: 50,000 nodes name them several times over.
        self._is_ordered = analysis.edges.is_ordered and not analysis.family.has_bodies
        self._numbers: list[int]
        self._rank: list[int]
        self._shared: dict[Any, Any]
        self._labels: dict[str, _Labels]
        self._runtimes: dict[str, str]
        if above is None:
            self._number()
            self._shared = {DEFAULT_RETRY: DEFAULT_RETRY}
            self._labels = _runtime_labels(analysis)
            self._runtimes = _runtimes_by_package(analysis)
        else:
            self._numbers, self._rank, self._shared = above._numbers, above._rank, above._shared
            self._labels, self._runtimes = above._labels, above._runtimes
        self._plain: list[tuple[InEdge, ...]] = [_NO_TUPLE] * len(self._order)
        self._singles: list[tuple[int, ...]] = [_NO_TUPLE] * len(self._order)
        self._schemas: dict[bytes, int | None] = {b"": None}

    def _number(self) -> None:
        """Give every node its place in the plan of its level."""
        family = self._analysis.family
        if self._is_ordered:
            self._numbers = list(self._analysis.nodes.index.values())
            self._rank = self._numbers
            return
        self._numbers = list(range(len(self._order)))
        self._rank = [0] * len(self._order)
        for members in family.members.values():
            for number, place in zip(self._numbers, members, strict=False):
                self._rank[place] = number
        for place, node in enumerate(self._workflow.nodes):
            if node.map is not None:  # in the body of a map the node is the first
                for number, middleware in enumerate(self._middlewares_of(place)):
                    self._rank[middleware] = number + 1

    def plan(self) -> Plan:
        workflow, analysis = self._workflow, self._analysis
        places = analysis.family.members[None]
        return self._level(
            [self._node(place) for place in places],
            self._names(None),
            outputs=tuple([self._output(*row) for row in analysis.outputs]),
            features=frozenset(analysis.features),
            timeout_s=workflow.timeout_seconds,
        )

    def _level(self, nodes: list[PlanNode], names: dict[str, int], **rest: Any) -> Plan:
        parents = [self._parents(node.edges_in) for node in nodes]
        return Plan(
            workflow_id=self._workflow.id,
            nodes=tuple(nodes),
            parents=tuple(parents),
            children=self._children(parents),
            names=names,
            schemas=tuple(raw for raw, place in self._schemas.items() if place is not None),
            **rest,
        )

    def _names(self, container: int | None) -> dict[str, int]:
        """The nodes of one level that expressions refer to."""
        parents = self._analysis.family.parents
        return {
            name: self._rank[place]
            for name, place in self._analysis.expressions.names.items()
            if parents.get(place) == container
        }

    # -- bodies --------------------------------------------------------------------------------

    def _body(self, place: int) -> BodyStep:
        """What is inside a container, or what a call runs."""
        node, called = self._workflow.nodes[place], self._analysis.called.get(place)
        if called is not None:
            assert node.call is not None
            return BodyStep(
                plan=called.plan,
                policy=node.call.failure_policy,
                inputs=called.inputs,
                timeout_s=_least(node.timeout_seconds, called.plan.timeout_s),
            )
        policy = ContainerSpec() if node.container is None else node.container
        return BodyStep(
            plan=_Planner(self._analysis, self).plan_inside(place),
            policy=policy.failure_policy,
            timeout_s=node.timeout_seconds,
        )

    def plan_inside(self, container: int) -> Plan:
        """The plan of the nodes inside a container."""
        places = self._analysis.family.members.get(container, [])
        outputs = [
            self._output(link.write.key, link.source, link.read, link.write.path)
            for link in self._analysis.edges.outputs.get(container, ())
        ]
        nodes = [self._node(place) for place in places]
        return self._level(nodes, self._names(container), outputs=tuple(outputs))

    def plan_item(self, place: int) -> Plan:
        """The plan of one item of a map: the node, and its middlewares."""
        middlewares = self._middlewares_of(place)
        host = self._single_node(place, self._control(place))
        item = msgspec.structs.replace(
            host,
            takes_item=True,
            inputs=_NO_TUPLE,
            edges_in=_NO_TUPLE,
            join="all",
            when=None,
            disabled=False,
            expressions=self._analysis.bound[place].of_item
            if place in self._analysis.bound
            else _NO_TUPLE,
            middlewares=tuple(range(1, len(middlewares) + 1)),
        )
        wrappers = [
            msgspec.structs.replace(self._node(one), host=0, middlewares=_NO_TUPLE)
            for one in middlewares
        ]
        return self._level([item, *wrappers], {})

    def _node(self, place: int) -> PlanNode:
        """A node of its level: of a map, the node that runs the items."""
        node = self._workflow.nodes[place]
        if node.map is None:
            return self._single_node(place, self._control(place))
        body = BodyStep(
            plan=_Planner(self._analysis, self).plan_item(place),
            policy=node.map.failure_policy,
            map=map_step(node.map),
        )
        return msgspec.structs.replace(
            self._single_node(place, ControlStep(body=body)),
            middlewares=_NO_TUPLE,
            parameters_schema=None,
            results_schema=None,
        )

    def _middlewares_of(self, place: int) -> list[int]:
        """Those that wrap a node, outermost first; those that are disabled wrap nothing."""
        nodes, index = self._workflow.nodes, self._analysis.nodes.index
        places = [index[one] for one in nodes[place].middlewares]
        return [one for one in places if not nodes[one].disabled]

    def _schema(self, raw: bytes) -> int | None:
        """The place of a schema in the plan; None where there is nothing that it could refuse."""
        known = self._schemas
        if raw not in known:
            count = sum(place is not None for place in known.values())
            known[raw] = None if find_schema(raw) is None else count
        return known[raw]

    def _share(self, value: Any) -> Any:
        return self._shared.setdefault(value, value)

    def _single_node(self, place: int, control: ControlStep | None) -> PlanNode:
        analysis, workflow = self._analysis, self._workflow
        node = workflow.nodes[place]
        found = analysis.nodes.types[place]
        assert found is not None, "a node without a type is a problem, and there was none"
        inputs, edges_in = self._incoming(analysis.edges.links[place])
        runtime = node.runtime or found.runtime or self._runtimes.get(found.package_name)
        parameters = analysis.nodes.texts[place]
        hosts = analysis.family.hosts
        schemas = analysis.nodes.schemas[place]
        is_bound = inputs or node.middlewares or place in analysis.bound or node.map is not None
        return PlanNode(
            node_id=NodeId(node.id),
            type=found.type,
            label=found.type if node.label is None else node.label,
            package_name=found.package_name,
            package_version=found.package_version,
            runtime=runtime,
            parameters=parameters,
            inputs=inputs,
            edges_in=edges_in,
            join=node.join,
            when=None if node.when is None else condition_text(node.when),
            retry=DEFAULT_RETRY if node.retry is None else self._share(_retry(node.retry)),
            timeout_s=node.timeout_seconds,
            concurrency_key=node.concurrency_key,
            affinity=None if node.affinity is None else self._affinity(node.affinity),
            resource_refs=self._resource_refs(node, parameters),
            on_resource_lost=node.on_resource_lost,
            middlewares=tuple([self._rank[one] for one in self._middlewares_of(place)])
            if node.middlewares
            else _NO_TUPLE,
            host=self._rank[hosts[place]] if place in hosts else None,
            **self._undoing(place),
            control=control,
            disabled=node.disabled,
            priority=workflow.priority if node.priority is None else node.priority,
            idempotency=found.idempotency,
            worker_labels=self._worker_labels(node, runtime),
            resources=None if node.resources is None else self._resources(node.resources),
            secrets=analysis.nodes.parameters.secrets.get(parameters, _NO_TUPLE),
            expressions=analysis.bound[place].expressions if place in analysis.bound else _NO_TUPLE,
            parameters_schema=self._schema(schemas.parameters) if is_bound else None,
            results_schema=self._schema(schemas.results),
        )

    def _undoing(self, place: int) -> dict[str, Any]:
        """What undoes a node, and what it undoes itself."""
        rules, index = self._analysis.compensation, self._analysis.nodes.index
        if not rules.owners:
            return {}
        node, rank = self._workflow.nodes[place], self._rank
        root = rules.branches.get(self._analysis.family.hosts.get(place, place))
        return {
            "on_failure": None if node.on_failure is None else rank[index[node.on_failure]],
            "on_cancel": None if node.on_cancel is None else rank[index[node.on_cancel]],
            "branch": None if root is None else rank[root],
        }

    def _incoming(
        self, links: Sequence[PlannedEdge]
    ) -> tuple[tuple[InputEdge, ...], tuple[InEdge, ...]]:
        if not links:
            return _NO_TUPLE, _NO_TUPLE
        if len(links) == 1 and links[0] is self._analysis.edges.plain_link(links[0].source):
            return _NO_TUPLE, self._plain_row(self._rank[links[0].source])
        ordered = [link for link in links if not link.is_outer]
        inputs = [
            self._input(link, number)
            for number, link in enumerate(ordered)
            if link.write is not TRIGGER
        ]
        outer = [self._input(link, 0) for link in links if link.is_outer]
        return tuple([*outer, *inputs]), tuple([self._edge(link) for link in ordered])

    def _edge(self, link: PlannedEdge) -> InEdge:
        source = self._rank[link.source]
        if link.kind == "control" and link.when is None and link.read.case is None:
            return self._plain_row(source)[0]
        when = None if link.when is None else condition_text(link.when)
        return InEdge(source, link.kind, when, link.read.case)

    def _plain_row(self, source: int) -> tuple[InEdge, ...]:
        """What every node has that follows this source and nothing else."""
        row = self._plain[source]
        if not row:
            # Of no fixed length: compiled code would pack one that has it anew each time.
            row = tuple([InEdge(source, "control")])
            self._plain[source] = row
        return row

    def _input(self, link: PlannedEdge, number: int) -> InputEdge:
        return InputEdge(
            source=OUTER if link.is_outer else self._rank[link.source],
            read=_read(link.read),
            write=link.write.path,
            multiple=link.write.multiple,
            unwrap=link.read.unwrap,
            of_error=link.read.kind == "error",
            edge=None if link.when is None and link.read.case is None else number,
            each=None if link.is_outer else self._each(link.source, link.read),
        )

    def _each(self, source: int, port: PortSpec) -> str | None:
        """The name under which a map collects what the port reads from each of its results."""
        over = self._workflow.nodes[source].map
        if over is None or port.is_collected or port.kind != "data":
            return None
        return over.collect

    def _parents(self, edges: tuple[InEdge, ...]) -> tuple[int, ...]:
        if not edges:
            return _NO_TUPLE
        if len(edges) == 1:
            return self._single(edges[0].source)
        parents = tuple(dict.fromkeys([edge.source for edge in edges]))
        return self._single(parents[0]) if len(parents) == 1 else parents

    def _single(self, vertex: int) -> tuple[int, ...]:
        single = self._singles[vertex]
        if not single:
            single = tuple([vertex])
            self._singles[vertex] = single
        return single

    def _children(self, parents: Sequence[tuple[int, ...]]) -> tuple[tuple[int, ...], ...]:
        children: list[list[int] | None] = [None] * len(parents)
        for here, above in zip(self._numbers, parents, strict=False):
            for parent in above:
                row = children[parent]
                if row is None:
                    children[parent] = [here]
                else:
                    row.append(here)
        return tuple(
            _NO_TUPLE if row is None else self._single(row[0]) if len(row) == 1 else tuple(row)
            for row in children
        )

    def _affinity(self, affinity: Affinity) -> AffinityHint:
        hint: AffinityHint = self._share(AffinityHint(affinity.key, affinity.mode))
        return hint

    def _resources(self, asked: ResourcesSpec) -> Amounts | None:
        amounts = Amounts.of(asked.cpu, asked.memory_bytes, asked.gpu)
        return self._share(amounts) if amounts else None

    def _resource_refs(self, node: NodeSpec, parameters: bytes) -> tuple[ResourceRefValue, ...]:
        found = self._analysis.nodes.parameters.resource_refs.get(parameters, _NO_TUPLE)
        if not node.resource_refs:
            return found
        named = [
            ResourceRefValue(ref.resource_id, ref.worker_id, ref.type, ref.scope)
            for ref in node.resource_refs
        ]
        return tuple(dict.fromkeys([*named, *found]))

    def _worker_labels(self, node: NodeSpec, runtime: str | None) -> _Labels:
        labels = self._labels.get(runtime, _NO_TUPLE) if runtime is not None else _NO_TUPLE
        if node.worker_hints is None or not node.worker_hints.labels:
            return labels
        merged: _Labels = tuple(sorted({**dict(labels), **node.worker_hints.labels}.items()))
        shared: _Labels = self._share(merged)
        return shared

    def _output(self, name: str, source: int, port: PortSpec, write: Path = ()) -> PlanOutput:
        each = self._each(source, port)
        return PlanOutput(name, self._rank[source], _read(port), port.unwrap, each, write)

    def _control(self, place: int) -> ControlStep | None:
        node = self._workflow.nodes[place]
        if node.type in _CHOICES:
            return ControlStep(choose=_CHOICES[node.type])
        if node.type == APPROVAL_TYPE:
            return ControlStep(approval=_approval(node.approval or Approval()))
        if node.wait or node.signal:
            return ControlStep(wait=node.wait, signal=node.signal)
        if node.type not in _WITH_BODY:
            return None
        return ControlStep(body=self._body(place))


def _least(first: float | None, second: float | None) -> float | None:
    known = [one for one in (first, second) if one is not None]
    return min(known, default=None)


def _read(port: PortSpec) -> tuple[str, ...] | None:
    """What an output port reads; None for a control port, which reads as true."""
    return None if port.kind == "control" else port.path


def _approval(approval: Approval) -> ApprovalStep:
    return ApprovalStep(
        message=approval.message or "",
        roles=tuple(approval.roles),
        form=None if approval.form is None else msgspec.json.encode(approval.form),
        timeout_s=approval.timeout_seconds,
        default=approval.default,
    )


def _retry(retry: Retry) -> RetryPolicy:
    categories = None if retry.categories is None else frozenset(retry.categories)
    backoff = retry.backoff
    if backoff is None:
        return RetryPolicy(max_attempts=retry.max_attempts, categories=categories)
    return RetryPolicy(
        max_attempts=retry.max_attempts,
        initial_s=backoff.initial_seconds,
        factor=backoff.factor,
        max_s=backoff.max_seconds,
        jitter=backoff.jitter,
        categories=categories,
    )


def _runtime_labels(analysis: Analysis) -> dict[str, _Labels]:
    labels: dict[str, _Labels] = {}
    for name, runtime in analysis.workflow.runtimes.items():
        if runtime.worker_hints is not None and runtime.worker_hints.labels:
            labels[name] = tuple(sorted(runtime.worker_hints.labels.items()))
    return labels


def _runtimes_by_package(analysis: Analysis) -> dict[str, str]:
    """The runtime that the definition itself names for a package that no catalog knows."""
    names: dict[str, str] = {}
    for name, runtime in analysis.workflow.runtimes.items():
        if runtime.worker_hints is not None and runtime.worker_hints.package is not None:
            names.setdefault(runtime.worker_hints.package, name)
    return names

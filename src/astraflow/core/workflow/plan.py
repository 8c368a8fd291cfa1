"""The plan: what a run executes. Immutable, compact, and independent of the definition's bytes.

Rules:
1. Nodes are in topological order and are known by their index. `parents` and `children` are
   distinct indexes, whatever the number of edges between two nodes.
2. Packages are pinned: every node names one version (WORKFLOWS: "pinned when the run is
   accepted"), so that a run does not change when a newer version is published.
3. Equal parts are one object: policies, parameters, tuples. 50,000 nodes differ in little.
4. `features` names all that the plan needs beyond a plain graph: what it does not name costs a run nothing.
5. A plan is stored with the run that executes it: every type in it has one encoding (`encode_plan`).
6. `bind` makes the parameters of a task. Without data inputs and expressions these are the authored bytes, the same
   object. Else expressions are replaced with their values first, and then the results of the sources are written over
   them in edge order: what comes from a result is never read as an expression.
7. A container, a call of another workflow and a map have a *body*: a plan of its own, whose tasks a run adds when the
   node begins. In a body an input from `OUTER` reads the parameters of the node that has the body.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, Literal

import msgspec
from msgspec import Struct

from astraflow.core.categories import RetryCategory
from astraflow.core.expressions import ExpressionError, compile_expression
from astraflow.core.expressions.stored_value import is_stored_value
from astraflow.core.ids import NodeId
from astraflow.core.workflow.amounts import Amounts
from astraflow.core.workflow.bindings import MISSING, Path, read, write
from astraflow.core.workflow.definition import Join, Signal, WaitSpec
from astraflow.core.workflow.limits import MAX_PARAMETERS_DEPTH, MAX_RESOURCE_REFS


class Feature(enum.Enum):
    """What a plan needs beyond nodes, order and bindings."""

    CONDITION = "condition"
    """`when` on an edge or a node."""
    EXPRESSION = "expression"
    """A string that begins with `=` in parameters or settings."""
    KEY_EXPRESSION = "key_expression"
    """The same in a concurrency key or an affinity key."""
    JOIN_ANY = "join_any"
    JOIN_ALL_DONE = "join_all_done"
    ERROR_PORT = "error_port"
    MAP = "map"
    SUBGRAPH = "subgraph"
    CALL = "call"
    COMPENSATION = "compensation"
    MIDDLEWARE = "middleware"
    WAIT = "wait"
    APPROVAL = "approval"
    SIGNAL = "signal"
    SIGNAL_ADDRESS = "signal_address"
    """A signal can be sent to an address of its own."""
    RUN_INPUT = "run_input"
    """The run takes declared inputs."""
    RUN_OUTPUT = "run_output"
    """The run has declared outputs."""
    RUN_TIMEOUT = "run_timeout"


class RetryPolicy(Struct, frozen=True, gc=False, omit_defaults=True):
    """How often failures may happen and how long to wait after one."""

    max_attempts: int = 1
    initial_s: float = 1.0
    factor: float = 2.0
    max_s: float = 60.0
    jitter: float = 0.2
    """The share of each delay that is drawn at random."""
    categories: frozenset[RetryCategory] | None = None
    """The error categories that are retried; None means the table of PROTOCOL §9."""


DEFAULT_RETRY: Final = RetryPolicy()
"""WORKFLOWS: "No `retry` = `maxAttempts` 1, counting failures, not losses"."""

_BACKSLASH: Final = ord("\\")

UNSTATED: Final = "unstated"
"""The idempotency of a node whose manifest says nothing about it."""


class AffinityHint(Struct, frozen=True, gc=False):
    key: str
    mode: Literal["sticky", "preferred"]


class ResourceRefValue(Struct, frozen=True, gc=False, omit_defaults=True):
    """A reference to what a worker keeps, as authored or as it came with a result."""

    resource_id: str
    worker_id: str | None = None
    type: str | None = None
    scope: str | None = None


class InEdge(Struct, frozen=True, gc=False, omit_defaults=True):
    """An edge into a node, as order and condition; `source` is an index of the plan."""

    source: int
    kind: Literal["data", "control", "error"]
    when: str | None = None
    case: str | None = None
    """Live only if the source chose this case."""

    @property
    def is_conditional(self) -> bool:
        return self.when is not None or self.case is not None


OUTER: Final = -1
"""In place of the source of an input: what was given to the container that the node is inside of."""


class InputEdge(Struct, frozen=True, gc=False, omit_defaults=True):
    """An edge that writes something: `read` from the source's results, `write` into parameters.

    `read` is None for the `done` port, which reads as true. With `multiple` the values of all
    edges with the same `write` become a list in edge order. With `unwrap`, an object that holds
    this key alone is read as the key's value. `of_error`: it reads the source's error instead.
    """

    source: int
    read: Path | None
    write: Path
    multiple: bool = False
    unwrap: str | None = None
    of_error: bool = False
    edge: int | None = None
    """Its number among the edges into the node, if it is conditional: a dead edge writes nothing."""
    each: str | None = None
    """Its source is a map that collects its results under this name: the value is read from each of them."""


class PlanExpression(Struct, frozen=True, gc=False):
    """An expression in authored parameters: what stands at `path` is replaced with its value."""

    path: tuple[str | int, ...]
    text: str


class ApprovalStep(Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True):
    """What a person is asked."""

    message: str = ""
    roles: tuple[str, ...] = ()
    form: bytes | None = None
    """The JSON Schema of what is to be filled in."""
    timeout_s: float | None = None
    default: Literal["approve", "reject"] | None = None


class DeclaredInput(Struct, frozen=True, gc=False):
    """An input that a run takes. `schema` and `default` are JSON, empty where there is none."""

    name: str
    schema: bytes = b""
    default: bytes = b""
    is_required: bool = False


FailurePolicy = Literal["stop", "finish", "collect"]


class MapStep(Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True):
    """How often the body of a map is run, and for what."""

    path: Path | None = None
    """Where the list stands in the parameters."""
    over: str | None = None
    """The expression that gives the list, if no parameter does."""
    target: Path | None = None
    """Where each item is written in the parameters."""
    item: str = "item"
    """What expressions call the item."""
    collect: str = "items"
    concurrency: int = 1_000


class BodyStep(Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True):
    """Tasks that belong to a node: those of a container, of another workflow, or of the items of a map."""

    plan: Plan
    policy: FailurePolicy = "finish"
    map: MapStep | None = None
    inputs: tuple[DeclaredInput, ...] | None = None
    """Those of the workflow that is called. Set: the body is another workflow."""
    timeout_s: float | None = None
    """How long the whole body may take."""

    @property
    def is_call(self) -> bool:
        return self.inputs is not None


class ControlStep(Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True):
    """What the scheduler itself does at a node: one of these."""

    body: BodyStep | None = None
    wait: WaitSpec | None = None
    approval: ApprovalStep | None = None
    signal: Signal | None = None
    choose: Literal["if", "switch"] | None = None


class PlanNode(Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True):
    """One node of the plan, with everything that dispatching its task needs."""

    node_id: NodeId
    type: str
    label: str
    package_name: str
    package_version: str
    runtime: str | None = None
    parameters: bytes = b"{}"
    inputs: tuple[InputEdge, ...] = ()
    edges_in: tuple[InEdge, ...] = ()
    join: Join = "all"
    when: str | None = None
    retry: RetryPolicy = DEFAULT_RETRY
    timeout_s: float | None = None
    concurrency_key: str | None = None
    affinity: AffinityHint | None = None
    resource_refs: tuple[ResourceRefValue, ...] = ()
    """Those of `resourceRefs` and those found in the authored parameters."""
    on_resource_lost: Literal["fail", "rebuild"] | None = None
    middlewares: tuple[int, ...] = ()
    """The nodes that wrap this one, outermost first."""
    host: int | None = None
    """The node that this one wraps, if it is a middleware."""
    on_failure: int | None = None
    on_cancel: int | None = None
    """The first node of the branch that undoes this one."""
    branch: int | None = None
    """The first node of the branch that this one is in: it runs only to undo another."""
    takes_item: bool = False
    """It is the body of a map: its parameters are those of the map, with an item."""
    control: ControlStep | None = None
    """Set: the scheduler itself does this node, no worker."""
    disabled: bool = False
    priority: int = 0
    idempotency: str = UNSTATED
    worker_labels: tuple[tuple[str, str], ...] = ()
    """Labels that a worker must carry, sorted."""
    resources: Amounts | None = None
    """What it takes of its worker's machine; None: nothing that is counted."""
    secrets: tuple[str, ...] = ()
    """The names of the secrets that the authored parameters refer to."""
    expressions: tuple[PlanExpression, ...] = ()
    """Those in the authored parameters."""
    parameters_schema: int | None = None
    """Which of the plan's schemas its parameters must fit. Only where something is bound: what is not was checked."""
    results_schema: int | None = None
    """Which of the plan's schemas its results should fit."""


class PlanOutput(Struct, frozen=True, gc=False, omit_defaults=True):
    """A declared output of the run, or of a container: what `read` finds in the results of `source`."""

    name: str
    source: int
    read: Path | None
    unwrap: str | None = None
    each: str | None = None
    """As in `InputEdge`."""
    write: Path = ()
    """Where a container has it in its results; empty: under its name."""


class Plan(Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True):
    """What one version of a workflow executes. Share it freely: nothing in it changes."""

    workflow_id: str
    nodes: tuple[PlanNode, ...]
    parents: tuple[tuple[int, ...], ...]
    children: tuple[tuple[int, ...], ...]
    features: frozenset[Feature] = frozenset()
    outputs: tuple[PlanOutput, ...] = ()
    timeout_s: float | None = None
    names: dict[str, int] = {}
    """The nodes that expressions refer to, by the label or id they use."""
    schemas: tuple[bytes, ...] = ()
    """JSON Schemas that nodes name, each once: a run needs no catalog to check values."""

    @property
    def index(self) -> dict[NodeId, int]:
        """The place of every node. Made for who asks: a run needs none, and a million nodes may wait."""
        return {node.node_id: here for here, node in enumerate(self.nodes)}

    def find(self, node_id: str) -> int | None:
        """The place of one node."""
        return next((here for here, node in enumerate(self.nodes) if node.node_id == node_id), None)

    def check(self) -> None:
        """Assert what the rules of this module promise."""
        count = len(self.nodes)
        assert len(self.parents) == count
        assert len(self.children) == count
        assert len(self.index) == count, "no two nodes have the same id"
        for here, node in enumerate(self.nodes):
            parents = self.parents[here]
            assert len(set(parents)) == len(parents)
            assert all(parent < here for parent in parents)
            assert set(parents) == {edge.source for edge in node.edges_in}
            assert {edge.source for edge in node.inputs} <= {OUTER, *parents}
            assert node.parameters_schema is None or node.parameters_schema < len(self.schemas)
            assert node.results_schema is None or node.results_schema < len(self.schemas)
            assert all(here in self.children[parent] for parent in parents)
            if node.control is not None and node.control.body is not None:
                node.control.body.plan.check()
        assert sum(map(len, self.parents)) == sum(map(len, self.children))


def walk_nodes(plan: Plan) -> Iterator[PlanNode]:
    """The nodes of a plan and of all bodies in it."""
    for node, _ in walk_places(plan):
        yield node


def walk_places(plan: Plan) -> Iterator[tuple[PlanNode, NodeId]]:
    """The same, each with the node of the definition that it stands for: of a called workflow, the one that calls."""
    pending: list[tuple[Plan, NodeId | None]] = [(plan, None)]
    while pending:
        level, caller = pending.pop()
        for node in level.nodes:
            place = node.node_id if caller is None else caller
            yield node, place
            body = None if node.control is None else node.control.body
            if body is not None:
                pending.append((body.plan, place if body.is_call else caller))


def _nothing(source: int) -> None:
    return None


def _no_names() -> Mapping[str, Any]:
    return {}


def bind(
    node: PlanNode,
    results: Callable[[int], Mapping[str, Any] | None],
    errors: Callable[[int], Mapping[str, Any] | None] = _nothing,
    names: Callable[[], Mapping[str, Any]] = _no_names,
    dead: Callable[[int], bool] = lambda edge: False,
) -> bytes:
    """The parameters of a task of this node, as JSON.

    `results` gives the committed results of a node by index, or None when it has none; `errors`
    the error of a failed one; `names` what expressions are evaluated over; `dead` whether the condition of an edge, by
    number, did not hold. A missing output leaves the target parameter as authored.

    Raises:
        ExpressionError: with the parameter that has no value.
    """
    if not node.inputs and not node.expressions:
        return node.parameters
    parameters = msgspec.json.decode(node.parameters)
    if node.expressions:
        evaluate(node.expressions, parameters, names())
    lists: dict[Path, list[Any]] = {}
    for edge in node.inputs:
        if edge.edge is not None and dead(edge.edge):
            continue
        document = (errors if edge.of_error else results)(edge.source)
        value = _value(edge, document)
        if value is MISSING:
            _check_not_inside(edge, document)
            continue
        if edge.multiple:
            lists.setdefault(edge.write, []).append(value)
        else:
            parameters = write(edge.write, parameters, value)
    for path, values in lists.items():
        parameters = write(path, parameters, values)
    return msgspec.json.encode(parameters)


def evaluate(
    expressions: tuple[PlanExpression, ...], parameters: Any, names: Mapping[str, Any]
) -> None:
    """Put the values of the expressions in their places; the parameters are a document of our own.

    Raises: ExpressionError.
    """
    for expression in expressions:
        try:
            value = compile_expression(expression.text).evaluate(names)
        except ExpressionError as error:
            parameter = "".join(f"/{key}" for key in expression.path)
            raise ExpressionError(f"parameters{parameter}: {error.message}") from None
        put(parameters, expression.path, value)


def _check_not_inside(edge: InputEdge, document: Any) -> None:
    """Raises: ExpressionError, if an edge reads a part of a value that is stored by reference."""
    path = edge.read or ()
    places = [path[:length] for length in range(len(path))]
    if edge.each is not None:
        places = [(edge.each,)]  # what the map has collected
    if any(is_stored_value(read(place, document)) for place in places):
        source, target = ".".join(path), "/".join(edge.write)
        message = "a large value, which is stored by reference and which only a node can read"
        raise ExpressionError(f"parameters/{target}: results.{source} is inside {message}")


def put(document: Any, path: tuple[str | int, ...], value: Any) -> None:
    """Write into a document that nobody else holds."""
    holder = document
    for key in path[:-1]:
        holder = holder[key]
    holder[path[-1]] = value


def _value(edge: InputEdge, document: Mapping[str, Any] | None) -> Any:
    return MISSING if document is None else read_port(edge, document)


def read_port(port: InputEdge | PlanOutput, document: Mapping[str, Any]) -> Any:
    """What an output port reads from the results of its node; of a map, from each of them."""
    if port.each is None:
        return _read_one(port, document)
    results = document.get(port.each)
    if not isinstance(results, list):
        return MISSING
    values = [MISSING if one is None else _read_one(port, one) for one in results]
    return [None if value is MISSING else value for value in values]


def _read_one(port: InputEdge | PlanOutput, document: Any) -> Any:
    if port.read is None:
        return True
    value = read(port.read, document)
    if port.unwrap is not None and isinstance(value, dict) and len(value) == 1:
        return value.get(port.unwrap, value)
    return value


def find_resource_refs(parameters: bytes | Mapping[str, Any]) -> list[ResourceRefValue]:
    """Every `{"resourceRef": {…}}` in the parameters, each once, in the order they stand.

    PROTOCOL §4: "After binding, every {"resourceRef": {…}} found in the parameters joins
    `resource_refs`". Depth and number are bounded by the limits of parameters.
    """
    if isinstance(parameters, bytes):
        # A key can be spelt with escapes, so either the word or an escape is worth a look.
        has_escapes = _BACKSLASH in parameters and b"\\u" in parameters
        if b"resourceRef" not in parameters and not has_escapes:
            return []
        parameters = msgspec.json.decode(parameters)
    found: dict[ResourceRefValue, None] = {}
    pending: list[tuple[Any, int]] = [(parameters, 0)]
    while pending and len(found) < MAX_RESOURCE_REFS:
        value, depth = pending.pop()
        if isinstance(value, Mapping):
            ref = _resource_ref(value.get("resourceRef"))
            if ref is not None:
                found[ref] = None
            inner = list(value.values())
        elif isinstance(value, list):
            inner = value
        else:
            continue
        if depth < MAX_PARAMETERS_DEPTH:
            pending.extend((item, depth + 1) for item in reversed(inner))
    return list(found)


def _resource_ref(value: Any) -> ResourceRefValue | None:
    if not isinstance(value, Mapping) or not isinstance(value.get("resourceId"), str):
        return None
    texts = [value.get(key) for key in ("workerId", "type", "scope")]
    worker_id, kind, scope = (text if isinstance(text, str) else None for text in texts)
    return ResourceRefValue(value["resourceId"], worker_id, kind, scope)

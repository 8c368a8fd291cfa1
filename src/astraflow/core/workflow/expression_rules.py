"""What the expressions of a definition must keep: they compile, and what they name exists and is upstream.

Names in an expression:
- `inputs.NAME`: a declared input of the run.
- `nodes.LABEL` or `nodes["LABEL"]`: a node upstream, by its label or its id; it has `results`, `error` and `state`.
- `run.id`, `run.workflowId`, `run.createdAt`.
- In the condition of an edge also `results` and `error`: those of the node that the edge comes from.
- Inside a container also `container`: what the container was given. In a map also the item under its name (`item` where
  the map gives none) and `index`, its place in the list.
- `secrets.NAME`, only as a whole parameter: it becomes a reference, and no value passes through the scheduler.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from astraflow.core.errors import WORKFLOW_EXPRESSION, WORKFLOW_LIMIT
from astraflow.core.expressions import Expression, ExpressionError, compile_expression
from astraflow.core.workflow.definition import is_expression
from astraflow.core.workflow.limits import MAX_EXPRESSION_CHARS
from astraflow.core.workflow.maps import INDEX, item_name
from astraflow.core.workflow.plan import PlanExpression, put
from astraflow.core.workflow.problems import pointer_token
from astraflow.core.workflow.secret_refs import KEY, secret_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from astraflow.core.workflow.compensation import CompensationRules
    from astraflow.core.workflow.definition import WorkflowSpec
    from astraflow.core.workflow.edge_rules import PlannedEdge
    from astraflow.core.workflow.family import Family
    from astraflow.core.workflow.problems import Problems

RUN_FIELDS: Final = ("id", "workflowId", "createdAt", "signals")
NODE_FIELDS: Final = ("results", "error", "state")
_OF_NODE: Final = frozenset({"inputs", "nodes", "run"})
_OF_EDGE: Final = _OF_NODE | {"results", "error"}
MAX_EXPRESSIONS: Final = 200
"""Of one node."""
_MAX_WALK: Final = 2_000_000
"""Edges looked at to find out what is upstream; beyond it, a missing node shows when the task runs."""


class BoundParameters(NamedTuple):
    """Parameters whose secrets are references, and the expressions that are left in them."""

    parameters: bytes
    expressions: tuple[PlanExpression, ...]
    of_item: tuple[PlanExpression, ...] = ()
    """Those that read the item of the node's own map."""


class _Use(NamedTuple):
    place: int
    pointer: str
    name: str
    or_itself: bool


class ExpressionRules:
    """Checks the expressions of one definition; afterwards `names` says which node each name is."""

    def __init__(self, workflow: WorkflowSpec, family: Family, problems: Problems) -> None:
        self._workflow = workflow
        self._family = family
        self._problems = problems
        self._uses: list[_Use] = []
        self._left = _MAX_WALK
        self.names: dict[str, int] = {}
        """The places of the nodes that expressions refer to, by label or id."""

    def take_parameters(self, text: bytes, place: int) -> BoundParameters:
        """The parameters of a node that hold an expression."""
        document = msgspec.json.decode(text)
        found: list[PlanExpression] = []
        of_item: list[PlanExpression] = []
        own = self._own_names(place)
        names = _OF_NODE | self._names_around(place) | own
        has_secrets = False
        for path, written in _expressions_in(document):
            pointer = "".join(f"/{pointer_token(str(key))}" for key in path)
            here = f"/nodes/{place}/parameters{pointer}"
            secret = secret_of(written)
            if secret is not None:
                put(document, path, {KEY: {"name": secret}})
                has_secrets = True
                continue
            expression = self._take(written[1:], here, place, names)
            if expression is not None:
                reads_item = any(name in own for name, _ in expression.references)
                (of_item if reads_item else found).append(PlanExpression(path, written[1:]))
        count = len(found) + len(of_item)
        if count > MAX_EXPRESSIONS:
            message = f"the node has more than {MAX_EXPRESSIONS} expressions: {count}"
            self._problems.add(f"/nodes/{place}/parameters", WORKFLOW_LIMIT, message)
        bound = msgspec.json.encode(document) if has_secrets else text
        return BoundParameters(bound, tuple(found), tuple(of_item))

    def _names_around(self, place: int) -> frozenset[str]:
        """What is known inside of the containers that a node is in."""
        containers = self._family.enclosing(place)
        if not containers:
            return frozenset()
        return frozenset({"container"}).union(*map(self._own_names, containers))

    def _own_names(self, place: int) -> frozenset[str]:
        """What is known for each item of a node that is mapped, and of its middlewares."""
        over = self._workflow.nodes[self._family.hosts.get(place, place)].map
        return frozenset() if over is None else frozenset({item_name(over), INDEX})

    def take_condition(self, text: str, pointer: str, place: int, *, of_edge: bool = False) -> None:
        """The `when` of a node, or of an edge that comes from the node. One that is empty or too long was reported."""
        if not text or len(text) > MAX_EXPRESSION_CHARS:
            return
        names = (_OF_EDGE if of_edge else _OF_NODE) | self._names_around(place)
        self._take(condition_text(text), pointer, place, names, or_itself=of_edge)

    def take_setting(self, text: str, pointer: str, place: int) -> None:
        """A setting of a node that may be an expression: in a map it is evaluated for each item."""
        if len(text) <= MAX_EXPRESSION_CHARS:
            names = _OF_NODE | self._names_around(place) | self._own_names(place)
            self._take(condition_text(text), pointer, place, names)

    def _take(
        self,
        text: str,
        pointer: str,
        place: int,
        names: frozenset[str],
        *,
        or_itself: bool = False,
    ) -> Expression | None:
        try:
            expression = compile_expression(text)
        except ExpressionError as error:
            self._problems.add(pointer, WORKFLOW_EXPRESSION, error.message)
            return None
        for name, path in expression.references:
            problem = self._problem_of(name, path, names)
            if problem is not None:
                self._problems.add(pointer, WORKFLOW_EXPRESSION, problem)
                return None
            if name == "nodes":
                self._uses.append(_Use(place, pointer, path[0], or_itself))
        return expression

    def _problem_of(self, name: str, path: tuple[str, ...], names: frozenset[str]) -> str | None:
        near = self._problems.did_you_mean
        if name == "secrets":
            return "a secret is a whole parameter: write =secrets.NAME and nothing else"
        if name not in names:
            return f"unknown name: {name[:80]}{near(name, sorted(names))}"
        if name == "inputs" and path and path[0] not in self._workflow.inputs:
            hint = near(path[0], self._workflow.inputs)
            return f"the workflow declares no input {path[0][:80]!r}{hint}"
        if name == "run" and path and path[0] not in RUN_FIELDS:
            return f"a run has {', '.join(RUN_FIELDS)}, no {path[0][:80]!r}"
        if name == "run" and path[:1] == ("signals",) and len(path) > 1:
            return self._problem_of_signal(path[1])
        if name == "nodes" and not path:
            return 'name the node: nodes.Label or nodes["Label"]'
        if name == "nodes" and len(path) > 1 and path[1] not in NODE_FIELDS:
            return f"a node has {', '.join(NODE_FIELDS)}, no {path[1][:80]!r}{near(path[1], NODE_FIELDS)}"
        return None

    def _problem_of_signal(self, name: str) -> str | None:
        signals = [node.signal for node in self._workflow.nodes if node.signal is not None]
        known = [one.name for one in signals if one.webhook]
        if name in known:
            return None
        hint = self._problems.did_you_mean(name, known)
        return f"no node waits with webhook for a signal of this name: {name[:80]!r}{hint}"

    def check_upstream(
        self,
        index: Mapping[str, int],
        links: Sequence[Sequence[PlannedEdge]],
        compensation: CompensationRules,
    ) -> None:
        """Find the nodes that expressions name; each must have ended when the expression is evaluated. What is
        upstream of a host is upstream of its middlewares."""
        if not self._uses:
            return
        labels = self._labels()
        for use in self._uses:
            place = index.get(use.name, labels.get(use.name))
            if place is None:
                hint = self._problems.did_you_mean(use.name, labels)
                message = f"there is no node with this label or id: {use.name[:80]!r}{hint}"
            elif place == _AMBIGUOUS:
                message = f"several nodes have the label {use.name[:80]!r}: write the id"
            elif not self._is_upstream(place, use, links, compensation):
                message = f"the node {use.name[:80]!r} is not upstream: add an edge that leads from it to this one"
            else:
                self.names[use.name] = place
                continue
            self._problems.add(use.pointer, WORKFLOW_EXPRESSION, message)

    def _labels(self) -> dict[str, int]:
        labels: dict[str, int] = {}
        for place, node in enumerate(self._workflow.nodes):
            if node.label is not None:
                labels[node.label] = _AMBIGUOUS if node.label in labels else place
        return labels

    def _is_upstream(
        self,
        wanted: int,
        use: _Use,
        links: Sequence[Sequence[PlannedEdge]],
        compensation: CompensationRules,
    ) -> bool:
        place = self._family.hosts.get(use.place, use.place)
        if wanted == place:
            return use.or_itself
        # What has ended before a container began has ended before everything inside.
        pending = [place, *self._family.enclosing(place)]
        undone = compensation.undone_by(pending[-1])
        if wanted == undone:
            return True
        if undone is not None:
            pending.append(undone)
        seen = set(pending)
        while pending:
            for link in links[pending.pop()]:
                if link.source == wanted and not link.is_outer:
                    return True
                self._left -= 1
                if link.source not in seen:
                    seen.add(link.source)
                    pending.append(link.source)
            if self._left < 0:
                return True
        return False


_AMBIGUOUS: Final = -1


def condition_text(text: str) -> str:
    """A condition is an expression, with or without a leading `=`."""
    return text[1:] if is_expression(text) else text


def _expressions_in(document: Any) -> Iterable[tuple[tuple[str | int, ...], str]]:
    """The strings that are expressions, in the order in which they stand."""
    pending: list[tuple[tuple[str | int, ...], Any]] = [((), document)]
    while pending:
        path, value = pending.pop()
        if isinstance(value, str):
            if is_expression(value):
                yield path, value
        elif isinstance(value, dict):
            pending.extend(((*path, key), one) for key, one in reversed(value.items()))
        elif isinstance(value, list):
            pending.extend(((*path, key), value[key]) for key in reversed(range(len(value))))

"""One pass over a definition that serves both validation and planning.

The rules of nodes, containers, edges and the whole are in their own modules. They report into one
list of problems and note the features that the definition needs; what they find out on the way
(node types, ports, links) is what the planner builds from, so nothing is looked at twice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from astraflow.core.errors import (
    WORKFLOW_CALL,
    WORKFLOW_CYCLE,
    WORKFLOW_INVALID,
    WORKFLOW_LIMIT,
    WORKFLOW_PARAMETER,
    WORKFLOW_UNKNOWN_NODE,
)
from astraflow.core.workflow.callees import MISSING_CALLEE, Called
from astraflow.core.workflow.compensation import CompensationRules
from astraflow.core.workflow.definition import is_expression
from astraflow.core.workflow.edge_rules import EdgeRules
from astraflow.core.workflow.expression_rules import BoundParameters, ExpressionRules
from astraflow.core.workflow.family import Family
from astraflow.core.workflow.graph import find_cycles, topological_order
from astraflow.core.workflow.limits import MAX_EDGES, MAX_MEMBERS_NAMED, MAX_NODES
from astraflow.core.workflow.node_rules import NodeRules
from astraflow.core.workflow.plan import Feature
from astraflow.core.workflow.problems import Problems
from astraflow.core.workflow.run_inputs import check_constants
from astraflow.core.workflow.schema_rules import SchemaRules, wired_paths
from astraflow.core.workflow.secret_refs import find_secret_refs
from astraflow.core.workflow.settings_rules import SettingsRules
from astraflow.core.workflow.workflow_rules import check_workflow

if TYPE_CHECKING:
    from astraflow.core.workflow.callees import Callees
    from astraflow.core.workflow.catalog import Catalog
    from astraflow.core.workflow.definition import NodeSpec, WorkflowSpec
    from astraflow.core.workflow.ports import PortSpec

_WITH_SETTINGS: Final = frozenset(
    {Feature.WAIT, Feature.APPROVAL, Feature.SIGNAL, Feature.MAP, Feature.KEY_EXPRESSION}
)


class Analysis:
    """What is known of a definition. Where `problems.count` is not 0, it cannot be planned."""

    def __init__(
        self, workflow: WorkflowSpec, catalog: Catalog, callees: Callees | None = None
    ) -> None:
        self.workflow = workflow
        self._callees = callees
        self.called: dict[int, Called] = {}
        """The workflows that nodes call, by place."""
        self.problems = Problems()
        self.features: set[Feature] = set()
        self._settings = SettingsRules(self.problems, self.features)
        self.nodes = NodeRules(workflow, catalog, self._settings, self.problems)
        self.family = Family(workflow.nodes, self.nodes.index, self.nodes.types, self.problems)
        self.compensation = CompensationRules(
            workflow.nodes, self.nodes.index, self.family, self.problems
        )
        self.expressions = ExpressionRules(workflow, self.family, self.problems)
        self.bound: dict[int, BoundParameters] = {}
        """The parameters of the nodes that have expressions in them, by place."""
        self.outputs: list[tuple[str, int, PortSpec]] = []
        self.order: list[int] = []
        if self._is_within_limits():
            self._run()

    def _is_within_limits(self) -> bool:
        """What is far too large is refused without a closer look."""
        for name, count, limit in (
            ("nodes", len(self.workflow.nodes), MAX_NODES),
            ("edges", len(self.workflow.edges), MAX_EDGES),
        ):
            if count > limit:
                message = f"there are more than {limit} {name}: {count}"
                self.problems.add(f"/{name}", WORKFLOW_LIMIT, message)
        if not self.workflow.nodes:
            self.problems.add("/nodes", WORKFLOW_INVALID, "there is no node to run")
        return self.problems.count == 0

    def _run(self) -> None:
        check_workflow(self.workflow, self._settings, self.problems, self.features)
        self.nodes.check_all()
        self.family.check_all(self.features)
        self._take_expressions()
        self._check_secrets()
        schemas = SchemaRules(self.workflow, self.nodes, self.problems)
        self.edges = EdgeRules(
            self.workflow,
            self.nodes,
            self.family,
            self._settings,
            self.problems,
            self.features,
            schemas,
        )
        self.edges.check_all()
        schemas.check_parameters(self.edges.links)
        self.compensation.check_all(self.edges.links, self.features)
        self._take_outputs()
        self._take_order()
        if Feature.CONDITION in self.features:
            self._take_conditions()
        if not _WITH_SETTINGS.isdisjoint(self.features):
            self._take_settings()
        if Feature.CALL in self.features:
            self._take_calls()
        self.expressions.check_upstream(self.nodes.index, self.edges.links, self.compensation)

    def _take_expressions(self) -> None:
        parameters, texts = self.nodes.parameters, self.nodes.texts
        if not parameters.with_expression:
            return
        for place, text in enumerate(texts):
            if text in parameters.with_expression:
                self.features.add(Feature.EXPRESSION)
                self.bound[place] = self.expressions.take_parameters(text, place)
                texts[place] = parameters.take_bound(self.bound[place].parameters, place)

    def _check_secrets(self) -> None:
        """Report secrets of nodes that no worker executes: the scheduler puts no secret into anything."""
        with_secrets = self.nodes.parameters.secrets
        for place, found in enumerate(self.nodes.types) if with_secrets else ():
            text = self.nodes.texts[place]
            if found is None or not found.executed_by_scheduler or text not in with_secrets:
                continue
            for pointer in find_secret_refs(text).places.values():
                message = (
                    f"{found.type} cannot be given a secret: refer to it in the node that uses it"
                )
                where = f"/nodes/{place}/parameters{pointer}"
                self.problems.add(where, WORKFLOW_PARAMETER, message)

    def _take_conditions(self) -> None:
        for place, node in enumerate(self.workflow.nodes):
            if node.when is not None:
                self.expressions.take_condition(node.when, f"/nodes/{place}/when", place)
        index = self.nodes.index
        for number, edge in enumerate(self.workflow.edges):
            source = index.get(edge.source.node)
            if edge.when is not None and source is not None:
                pointer = f"/edges/{number}/when"
                self.expressions.take_condition(edge.when, pointer, source, of_edge=True)

    def _take_settings(self) -> None:
        """The settings that may be expressions."""
        for place, node in enumerate(self.workflow.nodes):
            settings = (
                ("wait/until", node.wait and node.wait.until),
                ("approval/message", node.approval and node.approval.message),
                ("signal/name", node.signal and node.signal.name),
                ("concurrencyKey", node.concurrency_key),
                ("affinity/key", node.affinity and node.affinity.key),
            )
            for name, text in settings:
                if text and is_expression(text):
                    self.expressions.take_setting(text, f"/nodes/{place}/{name}", place)
            if node.map is not None and is_expression(node.map.over):
                self.expressions.take_condition(node.map.over, f"/nodes/{place}/map/over", place)

    def _take_calls(self) -> None:
        for place, node in enumerate(self.workflow.nodes):
            if node.call is None or not node.call.workflow_id:
                continue  # an empty id was reported
            pointer = f"/nodes/{place}/call"
            found = MISSING_CALLEE if self._callees is None else self._callees.find(node.call)
            if isinstance(found, Called):
                if Feature.COMPENSATION in found.plan.features:
                    message = "a workflow that undoes what it did cannot be called"
                    self.problems.add(pointer, WORKFLOW_CALL, message)
                self.called[place] = found
                self._check_inputs(node, place, found)
                for feature in found.plan.features:
                    self.features.add(feature)
            else:
                self.problems.add(pointer, WORKFLOW_CALL, found)

    def _check_inputs(self, node: NodeSpec, place: int, called: Called) -> None:
        """Hold what a call is given, as far as it is known, against what the other workflow declares."""
        if place in self.nodes.unsound:
            return
        wired = wired_paths(node, self.edges.links[place])
        pointer = f"/nodes/{place}/parameters"
        check_constants(called.inputs, self.nodes.texts[place], wired, pointer, self.problems)

    def _take_order(self) -> None:
        """The authored order where it is topological, which it mostly is; else a computed one."""
        count = len(self.workflow.nodes)
        if self.edges.is_ordered:
            self.order = list(range(count))
        else:
            successors = self.edges.successors()
            self.order = topological_order(successors)
            if len(self.order) < count:
                self._report_cycles(successors)
        self.family.take_members(self.order)

    def _take_outputs(self) -> None:
        for name, output in self.workflow.outputs.items():
            pointer = f"/outputs/{name}/source"
            source = self.nodes.index.get(output.source.node)
            if source is None:
                message = f"there is no node with this id: {output.source.node[:80]!r}"
                self.problems.add(f"{pointer}/node", WORKFLOW_UNKNOWN_NODE, message)
                continue
            if source in self.family.parents:
                message = "the node is inside a container: make it an output of the container first"
                self.problems.add(f"{pointer}/node", WORKFLOW_INVALID, message)
                continue
            port = self.edges.output_port(source, output.source.port, f"{pointer}/port")
            if port is not None:
                self.outputs.append((name, source, port))

    def _report_cycles(self, successors: list[list[int]]) -> None:
        nodes = self.workflow.nodes
        ordered = set(self.order)
        rest = [place for place in range(len(nodes)) if place not in ordered]
        for cycle in find_cycles(successors, rest):
            members = tuple(nodes[place].id for place in cycle[:MAX_MEMBERS_NAMED])
            more = len(cycle) - len(members)
            labels = [_named(nodes[place], place) for place in cycle[:MAX_MEMBERS_NAMED]]
            named = " → ".join([*labels, f"{more} more" if more else labels[0]])
            message = f"the edges go round in a circle: {named}"
            self.problems.add(f"/nodes/{cycle[0]}", WORKFLOW_CYCLE, message, members)


def _named(node: NodeSpec, place: int) -> str:
    """A node as a person knows it."""
    return node.label[:80] if node.label else f"{node.type[:80]} at /nodes/{place}"

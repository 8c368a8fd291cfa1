"""What the edges of a definition must keep, and what they mean.

An edge always means order. Beyond that, the ports decide: into a data port it writes what the
source port reads; from the `error` port it is followed when the source fails; between control
ports (or without ports) it is order and nothing else.

Containers and middlewares are nodes in the same list. An edge stays within one container, or it leads from an input of
the container to a node inside, or from a node inside to an output of the container: such an edge brings a value and is
no order. A middleware has no edges: it runs when its host does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from astraflow.core.errors import (
    WORKFLOW_DOUBLE_INPUT,
    WORKFLOW_DUPLICATE_ID,
    WORKFLOW_INVALID,
    WORKFLOW_SELF_EDGE,
    WORKFLOW_UNKNOWN_NODE,
    WORKFLOW_UNKNOWN_PORT,
)
from astraflow.core.workflow.choices import case_port
from astraflow.core.workflow.limits import MAX_KEY_CHARS
from astraflow.core.workflow.maps import ERRORS
from astraflow.core.workflow.plan import Feature
from astraflow.core.workflow.ports import DONE, ERROR, TRIGGER, PortSpec

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from astraflow.core.workflow.definition import Edge, WorkflowSpec
    from astraflow.core.workflow.family import Family
    from astraflow.core.workflow.node_rules import NodeRules
    from astraflow.core.workflow.problems import Problems
    from astraflow.core.workflow.schema_rules import SchemaRules
    from astraflow.core.workflow.settings_rules import SettingsRules


class PlannedEdge(Struct, frozen=True, gc=False):
    """A sound edge between places of the definition's list of nodes."""

    source: int
    kind: Literal["data", "control", "error"]
    when: str | None
    read: PortSpec
    write: PortSpec
    """`TRIGGER` where nothing is written."""
    is_outer: bool = False
    """Whether it reads what was given to the container that the node is inside of."""


class EdgeRules:
    """Checks all edges; afterwards `links` holds, for each node, the sound edges into it."""

    def __init__(
        self,
        workflow: WorkflowSpec,
        nodes: NodeRules,
        family: Family,
        settings: SettingsRules,
        problems: Problems,
        features: set[Feature],
        schemas: SchemaRules,
    ) -> None:
        self._workflow = workflow
        self._nodes = nodes
        self._family = family
        self._settings = settings
        self._problems = problems
        self._features = features
        self._schemas = schemas
        self._taken: set[tuple[int, str]] = set()
        count = len(workflow.nodes)
        # Most edges are plain order; one link for each source serves all of those.
        self._plain: list[PlannedEdge | None] = [None] * count
        self.links: list[Sequence[PlannedEdge]] = [()] * count
        self.is_ordered = True
        """Whether every edge leads from an earlier node of the list to a later one."""
        self.outputs: dict[int, list[PlannedEdge]] = {}
        """What the outputs of each container read from the nodes inside."""

    def check_all(self) -> None:
        index, links = self._nodes.index, self.links
        has_family = bool(self._family.parents or self._family.hosts)
        seen: set[str] = set()
        for place, edge in enumerate(self._workflow.edges):
            if edge.id is not None:
                self._check_id(edge.id, place, seen)
            source, target = index.get(edge.source.node), index.get(edge.target.node)
            if source is None or target is None:
                self._report_unknown(edge, place)
                continue
            if source == target:
                message = f"the edge leads from a node to itself: {edge.source.node}"
                self._problems.add(f"/edges/{place}", WORKFLOW_SELF_EDGE, message)
                continue
            if has_family and not self._is_within(edge, source, target, place):
                continue
            link = self._link(edge, source, target, place)
            if link is None:
                continue
            if source > target:
                self.is_ordered = False
            row = links[target]
            if isinstance(row, list):
                row.append(link)
            else:
                # Most nodes have one edge into them, and a list for each would be mostly air.
                links[target] = [*row, link] if row else (link,)

    def plain_link(self, source: int) -> PlannedEdge | None:
        """The edge of pure order that comes from a node, if there is one."""
        return self._plain[source]

    def successors(self) -> list[list[int]]:
        """For each node the nodes that its edges lead to."""
        rows: list[list[int]] = [[] for _ in self.links]
        for target, links in enumerate(self.links):
            for link in links:
                if not link.is_outer:
                    rows[link.source].append(target)
        return rows

    def _check_id(self, edge_id: str, place: int, seen: set[str]) -> None:
        self._problems.check_key(f"/edges/{place}/id", edge_id, MAX_KEY_CHARS)
        if edge_id in seen:
            message = f"two edges have the same id: {edge_id[:80]}"
            self._problems.add(f"/edges/{place}/id", WORKFLOW_DUPLICATE_ID, message)
        seen.add(edge_id)

    def _report_unknown(self, edge: Edge, place: int) -> None:
        for name, end in (("source", edge.source), ("target", edge.target)):
            if end.node not in self._nodes.index:
                message = f"there is no node with this id: {end.node[:80]!r}"
                pointer = f"/edges/{place}/{name}/node"
                self._problems.add(pointer, WORKFLOW_UNKNOWN_NODE, message)

    def _is_within(self, edge: Edge, source: int, target: int, place: int) -> bool:
        """Whether an edge is one between two nodes of the same container; what it is otherwise is dealt with here."""
        for name, end in (("source", source), ("target", target)):
            if end in self._family.hosts:
                message = "a middleware runs when its host does and has no edges"
                self._problems.add(f"/edges/{place}/{name}/node", WORKFLOW_INVALID, message)
        parents = self._family.parents
        if parents.get(source) == parents.get(target):
            return True
        if parents.get(target) == source or parents.get(source) == target:
            self._take_border(edge, source, target, place)
        else:
            message = "the edge crosses the border of a container"
            self._problems.add(f"/edges/{place}", WORKFLOW_INVALID, message)
        return False

    def _take_border(self, edge: Edge, source: int, target: int, place: int) -> None:
        """An edge between a container and a node inside."""
        if edge.when is not None:
            message = "an edge at the border of its container has no condition"
            self._problems.add(f"/edges/{place}/when", WORKFLOW_INVALID, message)
            return
        out, into = edge.source.port, edge.target.port
        from_outside = self._family.parents.get(target) == source
        sides = self._nodes.ports[source if from_outside else target]
        if from_outside:
            if out in (None, "trigger") or into in (None, "trigger"):
                return  # the nodes inside begin with their container anyway
            read = self._declared(sides.inputs, source, out, f"/edges/{place}/source/port")
            write = self._input_port(target, into, f"/edges/{place}/target/port")
            if read is not None and write is not None and write.kind == "data":
                link = PlannedEdge(source, "data", None, read, write, is_outer=True)
                self.links[target] = [*self.links[target], link]
            return
        if into in (None, "done"):
            return  # a container has ended when all inside have
        found = self.output_port(source, out, f"/edges/{place}/source/port")
        port = self._declared(sides.outputs, target, into, f"/edges/{place}/target/port")
        if found is None or port is None:
            return
        if found.kind == "error" or found.case is not None or port.kind != "data":
            message = "only a value can be an output of the container"
            self._problems.add(f"/edges/{place}", WORKFLOW_INVALID, message)
        elif any(known.write.key == port.key for known in self.outputs.get(target, ())):
            message = f"two edges lead to one output of the container: {port.key}"
            self._problems.add(f"/edges/{place}/target/port", WORKFLOW_DOUBLE_INPUT, message)
        else:
            link = PlannedEdge(source, "data", None, found, port)
            self.outputs.setdefault(target, []).append(link)

    def _link(self, edge: Edge, source: int, target: int, place: int) -> PlannedEdge | None:
        if edge.when is not None:
            self._settings.check_condition(edge.when, f"/edges/{place}/when")
        out, into = edge.source.port, edge.target.port
        read: PortSpec | None = DONE
        if out is not None and out != "done":
            read = self.output_port(source, out, f"/edges/{place}/source/port")
        write: PortSpec | None = TRIGGER
        if into is not None and into != "trigger":
            write = self._input_port(target, into, f"/edges/{place}/target/port")
        if read is None or write is None:
            return None
        if write.kind == "control":
            write = TRIGGER
        if read.case is not None:
            self._features.add(Feature.CONDITION)
        if read.kind == "error":
            self._features.add(Feature.ERROR_PORT)
            return PlannedEdge(source, "error", edge.when, read, write)
        if write is not TRIGGER:
            if (
                self._workflow.nodes[source].map is None
                and self._workflow.nodes[target].map is None
            ):
                self._schemas.check_edge(source, read, target, write, f"/edges/{place}")
            return PlannedEdge(source, "data", edge.when, read, write)
        if edge.when is not None or read.case is not None:
            return PlannedEdge(source, "control", edge.when, read, TRIGGER)
        link = self._plain[source]
        if link is None:
            link = self._plain[source] = PlannedEdge(source, "control", None, DONE, TRIGGER)
        return link

    def output_port(self, node: int, port: str | None, pointer: str) -> PortSpec | None:
        """The output port of a node; an unknown one is reported, unless the node itself was."""
        if port is None or port == "done":
            return DONE
        cases = self._nodes.cases
        if node in cases and port in cases[node]:
            if self._workflow.nodes[node].map is not None:
                message = "a map chooses for each item: map a container with this node and what follows it"
                self._problems.add(pointer, WORKFLOW_INVALID, message)
            return case_port(port)
        outputs = self._nodes.ports[node].outputs
        if port == "error" and outputs is None:
            return ERROR
        over = self._workflow.nodes[node].map
        if over is not None and port in (over.collect, ERRORS):
            return PortSpec(port, "data", (port,), is_collected=True)
        return self._declared(outputs, node, port, pointer)

    def _input_port(self, node: int, port: str, pointer: str) -> PortSpec | None:
        spec = self._declared(self._nodes.ports[node].inputs, node, port, pointer)
        if spec is None or spec.kind != "data" or spec.multiple:
            return spec
        if (node, port) in self._taken:
            message = f"two edges lead into a port that takes one: {port}"
            self._problems.add(pointer, WORKFLOW_DOUBLE_INPUT, message)
            return None
        self._taken.add((node, port))
        return spec

    def _declared(
        self, ports: Mapping[str, PortSpec] | None, node: int, port: str, pointer: str
    ) -> PortSpec | None:
        spec = ports.get(port) if ports is not None else None
        if spec is not None:
            return spec
        if self._nodes.types[node] is not None or ports is not None:
            near = self._problems.did_you_mean(port, ports or ())
            message = f"the node has no such port: {port[:80]!r}{near}"
            self._problems.add(pointer, WORKFLOW_UNKNOWN_PORT, message)
        return None

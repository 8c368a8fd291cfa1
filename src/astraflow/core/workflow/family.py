"""Which node is inside which container, and which wraps which: relations that are not edges."""

from __future__ import annotations

from typing import TYPE_CHECKING

from astraflow.core.errors import (
    WORKFLOW_CYCLE,
    WORKFLOW_INVALID,
    WORKFLOW_LIMIT,
    WORKFLOW_UNKNOWN_NODE,
)
from astraflow.core.workflow.core_manifest import CONTAINER_TYPE
from astraflow.core.workflow.limits import MAX_CONTAINER_DEPTH
from astraflow.core.workflow.plan import Feature

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from astraflow.core.workflow.catalog import CatalogEntry
    from astraflow.core.workflow.definition import NodeSpec
    from astraflow.core.workflow.problems import Problems


class Family:
    """Containers and middlewares of a definition, by place.

    Rules: a parent is a container and no node is inside itself; a middleware wraps one host, in
    the same container, and is not wrapped itself. It runs on a worker, so no node of the scheduler is one. A type that
    is made to wrap others wraps one.
    """

    def __init__(
        self,
        nodes: Sequence[NodeSpec],
        index: Mapping[str, int],
        types: Sequence[CatalogEntry | None],
        problems: Problems,
    ) -> None:
        self._nodes = nodes
        self._index = index
        self._types = types
        self._problems = problems
        self.parents: dict[int, int] = {}
        self.hosts: dict[int, int] = {}
        """The host of each middleware."""
        self.members: dict[int | None, list[int]] = {}
        """The nodes of each container, middlewares of mapped nodes left out; None: those of the workflow itself."""

    def check_all(self, features: set[Feature]) -> None:
        for place, node in enumerate(self._nodes):
            if node.parent is not None:
                features.add(Feature.SUBGRAPH)
                self._take_parent(node.parent, place)
        if self.parents:
            self._check_depth()
        for place, node in enumerate(self._nodes):
            if node.middlewares:
                self._take_middlewares(node, place)
        self._check_wrappers()

    def _check_wrappers(self) -> None:
        for place, found in enumerate(self._types):
            if found is not None and found.is_middleware and place not in self.hosts:
                message = f"{found.type} wraps another node: name this one in its `middlewares`"
                self._problems.add(f"/nodes/{place}", WORKFLOW_INVALID, message)

    @property
    def has_bodies(self) -> bool:
        """Whether the plan has more than one level."""
        return bool(self.parents) or any(self._has_body(node) for node in self._nodes)

    def take_members(self, order: Sequence[int]) -> None:
        """Say which nodes make a plan of their own together, in the given order."""
        for place in order:
            host = self.hosts.get(place)
            if host is None or self._nodes[host].map is None:
                self.members.setdefault(self.parents.get(place), []).append(place)

    def enclosing(self, place: int) -> list[int]:
        """The containers that a node is inside of, innermost first."""
        found: list[int] = []
        here = self.parents.get(place)
        while here is not None and here not in found:
            found.append(here)
            here = self.parents.get(here)
        return found

    @staticmethod
    def _has_body(node: NodeSpec) -> bool:
        return node.map is not None or node.call is not None or node.type == CONTAINER_TYPE

    def _take_parent(self, parent_id: str, place: int) -> None:
        pointer = f"/nodes/{place}/parent"
        parent = self._index.get(parent_id)
        if parent is None:
            message = f"there is no node with this id: {parent_id[:80]!r}"
            self._problems.add(pointer, WORKFLOW_UNKNOWN_NODE, message)
        elif self._nodes[parent].type != CONTAINER_TYPE:
            message = f"only a node of type {CONTAINER_TYPE} can hold others"
            self._problems.add(pointer, WORKFLOW_INVALID, message)
        else:
            self.parents[place] = parent

    def _check_depth(self) -> None:
        """Report nodes that are inside themselves, or of too many others. A place is walked once: this is linear."""
        depths: dict[int, int] = {}
        for start in self.parents:
            walked: dict[int, None] = {}
            here: int | None = start
            while here is not None and here not in depths and here not in walked:
                walked[here] = None
                here = self.parents.get(here)
            if here is not None and here in walked:
                message = f"the container is inside itself: {self._nodes[here].id}"
                self._problems.add(f"/nodes/{here}/parent", WORKFLOW_CYCLE, message)
            depth = -1 if here is None else depths.get(here, -1)
            for place in reversed(walked):
                depth += 1
                depths[place] = depth
                if depth == MAX_CONTAINER_DEPTH + 1:
                    message = f"the node is inside of more than {MAX_CONTAINER_DEPTH} containers"
                    self._problems.add(f"/nodes/{place}/parent", WORKFLOW_LIMIT, message)

    def _take_middlewares(self, host: NodeSpec, place: int) -> None:
        for number, middleware_id in enumerate(host.middlewares):
            pointer = f"/nodes/{place}/middlewares/{number}"
            middleware = self._index.get(middleware_id)
            if middleware is None:
                message = f"there is no node with this id: {middleware_id[:80]!r}"
                self._problems.add(pointer, WORKFLOW_UNKNOWN_NODE, message)
                continue
            found = self._types[middleware]
            if found is not None and found.executed_by_scheduler:
                message = f"a node that the scheduler carries out wraps none: {found.type}"
                self._problems.add(pointer, WORKFLOW_INVALID, message)
            elif middleware == place or self._nodes[middleware].middlewares:
                message = "a middleware cannot have middlewares of its own"
                self._problems.add(pointer, WORKFLOW_INVALID, message)
            elif middleware in self.hosts:
                message = "a middleware wraps one host only"
                self._problems.add(pointer, WORKFLOW_INVALID, message)
            elif self.parents.get(middleware) != self.parents.get(place):
                message = "a middleware is in the same container as its host"
                self._problems.add(pointer, WORKFLOW_INVALID, message)
            elif self._nodes[middleware].map is not None:
                message = "a middleware runs when its host does and has no map"
                self._problems.add(pointer, WORKFLOW_INVALID, message)
            if self._nodes[middleware].resources is not None:
                message = "a middleware asks for no resources: the node that it wraps does"
                self._problems.add(f"/nodes/{middleware}/resources", WORKFLOW_INVALID, message)
            self.hosts.setdefault(middleware, place)

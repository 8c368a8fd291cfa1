"""Compensation: the branches that undo what nodes have done, when their run fails or is cancelled.

Rules:
1. `onFailure` and `onCancel` of a node name the first node of a branch: that node and all that follows it.
2. A branch is apart from the rest: no edge leads into it, and none leads out of it.
3. A branch undoes one node, a node of the workflow itself. Nothing undoes a branch.
4. Its expressions may read the node that it undoes, and what is upstream of that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from astraflow.core.errors import WORKFLOW_INVALID, WORKFLOW_UNKNOWN_NODE
from astraflow.core.workflow.plan import Feature

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from astraflow.core.workflow.definition import NodeSpec
    from astraflow.core.workflow.edge_rules import PlannedEdge
    from astraflow.core.workflow.family import Family
    from astraflow.core.workflow.problems import Problems

_SETTINGS = (("onFailure", "on_failure"), ("onCancel", "on_cancel"))


class CompensationRules:
    """The branches of a definition, by place."""

    def __init__(
        self,
        nodes: Sequence[NodeSpec],
        index: Mapping[str, int],
        family: Family,
        problems: Problems,
    ) -> None:
        self._nodes = nodes
        self._index = index
        self._family = family
        self._problems = problems
        self.owners: dict[int, int] = {}
        """By the first node of each branch: the node that it undoes."""
        self.branches: dict[int, int] = {}
        """By each node of a branch: the first one."""

    def check_all(self, links: Sequence[Sequence[PlannedEdge]], features: set[Feature]) -> None:
        for place, node in enumerate(self._nodes):
            for name, field in _SETTINGS:
                target = getattr(node, field)
                if target is not None:
                    pointer = f"/nodes/{place}/{name}"
                    features.add(Feature.COMPENSATION)
                    self._take(place, target, pointer)
        if self.owners:
            self._take_branches(links)

    def _take(self, owner: int, target: str, pointer: str) -> None:
        root = self._index.get(target)
        if root is None:
            message = f"there is no node with this id: {target[:80]!r}"
            self._problems.add(pointer, WORKFLOW_UNKNOWN_NODE, message)
            return
        problem = self._problem_of(owner, root)
        if problem is not None:
            self._problems.add(pointer, WORKFLOW_INVALID, problem)
        else:
            self.owners[root] = owner

    def _problem_of(self, owner: int, root: int) -> str | None:
        family = self._family
        if root == owner:
            return "a node cannot undo itself"
        if owner in family.parents or root in family.parents:
            return "only nodes of the workflow itself are undone, not those inside of a container"
        if owner in family.hosts or root in family.hosts:
            return "a middleware is neither undone nor undoes anything"
        if self.owners.get(root, owner) != owner:
            return "a branch undoes one node only"
        return None

    def _take_branches(self, links: Sequence[Sequence[PlannedEdge]]) -> None:
        successors: dict[int, list[int]] = {}
        for target, row in enumerate(links):
            for link in row:
                successors.setdefault(link.source, []).append(target)
        for root in self.owners:
            pending = [root]
            while pending:
                here = pending.pop()
                self.branches.setdefault(here, root)
                pending += [one for one in successors.get(here, ()) if one not in self.branches]
        for place, root in self.branches.items():
            if any(self.branches.get(link.source) != root for link in links[place]):
                self._report(place, "an edge leads into a branch that undoes a node")
            if self._nodes[place].on_failure or self._nodes[place].on_cancel:
                self._report(place, "the node undoes another, and is not undone itself")

    def _report(self, place: int, message: str) -> None:
        self._problems.add(f"/nodes/{place}", WORKFLOW_INVALID, message)

    def undone_by(self, place: int) -> int | None:
        """The node that the branch of a node undoes."""
        root = self.branches.get(place)
        return None if root is None else self.owners[root]

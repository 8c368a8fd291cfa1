"""The branches of a run that undo what nodes have done, as the run holds them."""

from __future__ import annotations

from astraflow.core.contract.words import CompensationKind
from astraflow.core.workflow.plan import Plan


class Branches:
    """Only `transitions.fold` changes it."""

    __slots__ = ("branches", "current", "done", "kind", "left", "open", "queue")

    def __init__(self, plan: Plan) -> None:
        self.branches: dict[int, list[int]] = {}  # by the first task of each: all of its tasks
        for index, node in enumerate(plan.nodes):
            if node.branch is not None and node.host is None:
                self.branches.setdefault(node.branch, []).append(index)
        self.open = sum(map(len, self.branches.values()))  # tasks that have not ended
        self.done: list[int] = []  # what succeeded and can be undone, in this order
        self.queue: list[int] = []  # branches that are to run
        self.current: int | None = None
        self.left = 0  # open tasks of the one that runs
        self.kind: CompensationKind | None = None  # set: it has begun

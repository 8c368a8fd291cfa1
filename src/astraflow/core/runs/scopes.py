"""Scopes: the tasks that belong to a node with a body, as a run holds them.

A container or a call has its body once; a map has it once for each item. The tasks of all items stand one after the
other in the run, `width` of them for each item, so that the place of a task follows from its number.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Final

import msgspec

from astraflow.core.workflow.plan import BodyStep, Plan

if TYPE_CHECKING:
    from astraflow.core.runs.facts import ScopeClosing, ScopeOpened

NO_ITEMS: Final[list[msgspec.Raw]] = []
read_items: Final = msgspec.json.Decoder(list[msgspec.Raw]).decode
"""The items of a list, each as it is written."""


class Scope:
    """What became of the body of one node. Only `transitions.fold` changes it."""

    __slots__ = (
        "closing",
        "count",
        "ended",
        "failed",
        "first",
        "items",
        "left",
        "owner",
        "parameters",
        "roots",
        "started",
        "step",
        "width",
    )

    def __init__(self, fact: ScopeOpened, step: BodyStep) -> None:
        plan = step.plan
        self.owner = fact.task
        self.step = step
        self.first = fact.first
        self.count = fact.count
        self.width = len(plan.nodes)
        self.parameters = fact.parameters
        self.items = NO_ITEMS if step.map is None else read_items(fact.items)
        self.roots = [
            place
            for place, node in enumerate(plan.nodes)
            if not plan.parents[place] and node.host is None
        ]
        inside = sum(node.host is None for node in plan.nodes)
        self.left = array("L", [inside]) * fact.count  # tasks that have not ended, by item
        self.started = fact.count if step.map is None else min(step.map.concurrency, fact.count)
        self.ended = 0  # items
        self.failed: list[int] = []  # tasks, in this order
        self.closing: ScopeClosing | None = None

    @property
    def plan(self) -> Plan:
        return self.step.plan

    @property
    def is_over(self) -> bool:
        return self.ended == self.count

    def item_of(self, task: int) -> int:
        """The item that a task belongs to."""
        return (task - self.first) // self.width

    def base_of(self, task: int) -> int:
        """The number of the first task of the same item."""
        return task - (task - self.first) % self.width

    def first_of(self, item: int) -> int:
        return self.first + item * self.width

"""Which node each task of a run is, found from its facts alone: what an event is about.

A reader of events follows a run from any point on and keeps no tasks. Tasks beyond those of the plan were added by
facts, calls of middlewares and bodies of nodes, and these are few.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from astraflow.core.runs.facts import CallOpened, Fact, ScopeOpened, TaskFact
from astraflow.core.workflow.plan import Plan, PlanNode

if TYPE_CHECKING:
    from astraflow.core.runs.run import RunRecord

_Fields = dict[str, Any]
"""What an event is about: the fields of `NodeBody`."""


class _Opened(NamedTuple):
    """The tasks of one body."""

    first: int
    last: int
    plan: Plan
    above: str
    """The path of the node that has the body, ready for the number of an item."""


class TaskPlaces:
    """The places of the tasks of one run; `note` takes each fact before its events are made."""

    def __init__(self, plan: Plan, facts: Iterable[Fact] = ()) -> None:
        self._plan = plan
        self._calls: dict[int, CallOpened] = {}
        self._bodies: list[_Opened] = []
        self._firsts: list[int] = []
        self._plain: dict[int, bytes | None] = {}
        for fact in facts:
            self.note(fact)

    @classmethod
    def of_run(cls, run: RunRecord) -> TaskPlaces:
        """The places of all tasks that a run has by now."""
        places = cls(run.plan)
        number = len(run.plan.nodes)
        while number < len(run.tasks):
            task = run.tasks[number]
            if task.call is not None:
                places._calls[number] = task.call
                number += 1
            else:
                assert task.scope is not None, f"nothing has added task {number}"
                places._open(task.scope.owner, task.scope.first, task.scope.count)
                number = task.scope.first + task.scope.count * task.scope.width
        return places

    def note(self, fact: Fact) -> None:
        if isinstance(fact, CallOpened):
            self._calls[fact.task] = fact
        elif isinstance(fact, ScopeOpened) and fact.first > (self._firsts or [-1])[-1]:
            # One that is not beyond the last is known: numbers of tasks only grow.
            self._open(fact.task, fact.first, fact.count)

    def _open(self, task: int, first: int, count: int) -> None:
        node, path = self._find(task)
        assert node.control is not None
        assert node.control.body is not None
        plan = node.control.body.plan
        above = f"{path}/{node.node_id}:" if path else f"{node.node_id}:"
        self._bodies.append(_Opened(first, first + count * len(plan.nodes) - 1, plan, above))
        self._firsts.append(first)

    def node_of(self, task: int) -> PlanNode:
        """The node of a task that is no call."""
        return self._find(task)[0]

    def plain_id(self, task: int) -> bytes | None:
        """The id of the node of a task as JSON, if its events are about nothing but this node."""
        try:
            return self._plain[task]
        except KeyError:
            pass
        plan = self._plan
        is_plain = task < len(plan.nodes) and not plan.nodes[task].middlewares
        known = msgspec.json.encode(plan.nodes[task].node_id) if is_plain else None
        self._plain[task] = known
        return known

    def fields_of(self, fact: TaskFact) -> _Fields:
        """What the events of a fact are about: a node, or a call within the chain around one."""
        call = fact if isinstance(fact, CallOpened) else self._calls.get(fact.task)
        if call is None:
            path, fields = self._own_fields(fact.task)
        else:
            home = call.parent
            while (parent := self._calls.get(home)) is not None:
                home = parent.parent
            host, path = self._find(home)
            node = host
            if call.chain_index is not None:
                node = self._level(home).nodes[host.middlewares[call.chain_index]]
            fields = {
                "node_id": node.node_id,
                "host_node_id": host.node_id,
                "chain_index": call.chain_index,
                "call_id": call.call_id,
            }
        if path:
            fields["scope_path"] = path
        return fields

    def fields_at(self, task: int) -> _Fields:
        """What an event about a task is about that is no call."""
        path, fields = self._own_fields(task)
        return {**fields, "scope_path": path} if path else fields

    def _own_fields(self, task: int) -> tuple[str, _Fields]:
        """A node; of a wrapped one also the middleware that its task runs."""
        node, path = self._find(task)
        if not node.middlewares:
            return path, {"node_id": node.node_id}
        return path, {
            "node_id": node.node_id,
            "host_node_id": node.node_id,
            "chain_index": 0,
            "middleware_node_id": self._level(task).nodes[node.middlewares[0]].node_id,
        }

    def _find(self, task: int) -> tuple[PlanNode, str]:
        """The node of a task, and the path of the items that it is in."""
        body = self._body(task)
        if body is None:
            return self._plan.nodes[task], ""
        item, place = divmod(task - body.first, len(body.plan.nodes))
        return body.plan.nodes[place], f"{body.above}{item}"

    def _level(self, task: int) -> Plan:
        body = self._body(task)
        return self._plan if body is None else body.plan

    def _body(self, task: int) -> _Opened | None:
        if task < len(self._plan.nodes):
            return None
        body = self._bodies[bisect_right(self._firsts, task) - 1]
        assert task <= body.last, f"no fact has added task {task}"
        return body

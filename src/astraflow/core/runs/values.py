"""What the parameters of a task are made of: committed results, errors, and the names that expressions read.

Everything here follows from the facts of the run: it is the same whenever it is asked for again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final

import msgspec

from astraflow.core.expressions import ExpressionError, compile_expression
from astraflow.core.expressions.stored_value import VALUE_MARK, with_stored_values
from astraflow.core.runs.projections import node_status
from astraflow.core.runs.run import RunRecord
from astraflow.core.runs.scopes import Scope
from astraflow.core.runs.signal_addresses import SignalAddresses
from astraflow.core.runs.states import Failed
from astraflow.core.timestamps import iso
from astraflow.core.workflow.bindings import write
from astraflow.core.workflow.maps import INDEX
from astraflow.core.workflow.plan import OUTER, Plan, PlanNode, bind, evaluate


class NodeValues(Mapping[str, Any]):
    """`nodes` in an expression: what has become of the nodes that expressions name, read when it is asked for. Inside a
    container or a map, the nodes beside it are known too, but a called workflow knows only its own."""

    def __init__(self, run: RunRecord, task: int) -> None:
        self._run = run
        self._task = run.host_of(task)

    def _levels(self) -> Iterator[tuple[Mapping[str, int], int]]:
        """The names of each level, innermost first, and the number of its first task."""
        here = self._task
        for scope, _ in self._run.scopes_of(here):
            yield self._names_in(scope.plan), scope.base_of(here)
            if scope.step.is_call:
                return
            here = scope.owner
        yield self._names_in(self._run.plan), 0

    def _names_in(self, plan: Plan) -> Mapping[str, int]:
        return plan.names

    def __getitem__(self, name: str) -> dict[str, Any]:
        for names, base in self._levels():
            place = names.get(name)
            if place is not None:
                index = base + place
                return {
                    "results": _read_results(self._run, index),
                    "error": error_of(self._run, index),
                    "state": node_status(self._run.tasks[index]),
                }
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        return iter({name: None for names, _ in self._levels() for name in names})

    def __len__(self) -> int:
        return sum(1 for _ in self)


class Names(Mapping[str, Any]):
    """What the expressions of a task read. Each name is looked for when it is asked for: there is one of these for each
    item of a map, which may be many and need one name."""

    __slots__ = ("_more", "_run", "_task")

    def __init__(
        self, run: RunRecord, task: int, more: Mapping[str, Any] = MappingProxyType({})
    ) -> None:
        self._run = run
        self._task = task
        self._more = more

    def __getitem__(self, name: str) -> Any:
        run = self._run
        if name in self._more:
            return self._more[name]
        if run.scopes:  # what is further in comes first
            for scope, item in run.scopes_of(self._task):
                if name in _names_in(scope):
                    return _value_in(scope, item, name)
                if scope.step.is_call:
                    break
        if name == "inputs":
            return msgspec.json.decode(run.accepted.inputs)
        if name == "nodes":
            return NodeValues(run, self._task)
        if name == "run":
            return self._run_fields()
        raise KeyError(name)

    def _run_fields(self) -> dict[str, Any]:
        accepted = self._run.accepted
        return {
            "id": self._run.run_id,
            "workflowId": accepted.workflow_id,
            "createdAt": iso(accepted.at),
            "signals": SignalAddresses(self._run),
        }

    def __iter__(self) -> Iterator[str]:
        known = dict.fromkeys(("inputs", "nodes", "run"))
        for scope, _ in self._run.scopes_of(self._task):
            known.update(dict.fromkeys(_names_in(scope)))
            if scope.step.is_call:
                break
        return iter({**known, **self._more})

    def __len__(self) -> int:
        return sum(1 for _ in self)


def _names_in(scope: Scope) -> tuple[str, ...]:
    """What is known inside a scope."""
    step = scope.step
    if step.map is not None:
        return (step.map.item, INDEX)
    return ("inputs",) if step.is_call else ("container",)


def _value_in(scope: Scope, item: int, name: str) -> Any:
    if scope.step.map is None:
        return msgspec.json.decode(scope.parameters)
    return item if name == INDEX else msgspec.json.decode(scope.items[item])


LARGE_BYTES: Final = 16 * 1024
"""A result of so many bytes is decoded once for all tasks that read it one after the other."""
LARGEST_BYTES: Final = 1024**2
"""One that is larger is decoded for each: decoded, it may take thirty times as much, and it is kept until the next."""


class _LastRead:
    """The large result that was decoded last. A task reads it when it is queued and when it is leased, and ten thousand
    may read the same one. Nobody changes what was decoded: binding copies what it writes into."""

    __slots__ = ("_decode", "_last")

    def __init__(self, decode: Callable[[msgspec.Raw], Any]) -> None:
        self._decode = decode
        self._last: tuple[msgspec.Raw | None, Any] = (None, None)

    def read(self, raw: msgspec.Raw) -> Any:
        if not LARGE_BYTES <= len(raw) <= LARGEST_BYTES:
            return self._decode(raw)
        known, value = self._last
        if known is not raw:
            value = self._decode(raw)
            self._last = (raw, value)
        return value


def _decode_readable(raw: msgspec.Raw) -> Any:
    """What is stored by reference cannot be looked into."""
    results = msgspec.json.decode(raw)
    return with_stored_values(results) if VALUE_MARK in bytes(raw) else results


_plain: Final = _LastRead(msgspec.json.decode)
_readable: Final = _LastRead(_decode_readable)


def _raw_results(run: RunRecord, index: int, is_under_way: bool = False) -> msgspec.Raw | None:
    """The committed results of a task; while it runs anew, those that were taken back. A chain that is under way has
    them also if the task did not succeed again: it goes on with what it was given."""
    task = run.tasks[index]
    if task.result is None and (is_under_way or not task.is_terminal):
        return task.former
    return task.result


def results_of(run: RunRecord, index: int, is_under_way: bool = False) -> dict[str, Any] | None:
    """The same, decoded."""
    raw = _raw_results(run, index, is_under_way)
    if raw is None:
        return None
    results: dict[str, Any] = _plain.read(raw)
    return results


def _read_results(run: RunRecord, index: int) -> Any:
    """The results as expressions read them."""
    raw = _raw_results(run, index)
    return None if raw is None else _readable.read(raw)


def error_of(run: RunRecord, index: int) -> dict[str, Any] | None:
    """What the error port of a failed task carries: `{code, category, message, stack}`."""
    state = run.tasks[index].state
    if not isinstance(state, Failed):
        return None
    error = state.error
    return {
        "code": error.code,
        "category": error.category,
        "message": error.message,
        "stack": error.stack,
    }


def names_of(run: RunRecord, task: int) -> Mapping[str, Any]:
    """What the expressions of a task read."""
    return Names(run, task)


def bind_parameters(run: RunRecord, index: int, node: PlanNode) -> bytes:
    """The parameters of a task as its node authored them, with what its edges bring.

    Raises: ExpressionError.
    """
    scope = run.tasks[index].scope
    if node.takes_item:
        assert scope is not None, "an item is in the scope of its map"
        return _bind_item(run, index, node, scope)
    base = 0 if scope is None else scope.base_of(index)
    is_under_way = run.tasks[index].is_held

    def results(source: int) -> dict[str, Any] | None:
        if source == OUTER:
            assert scope is not None, "only a node inside of a container is given something by it"
            outer: dict[str, Any] = msgspec.json.decode(scope.parameters)
            return outer
        return results_of(run, base + source, is_under_way)

    return bind(
        node,
        results,
        lambda source: error_of(run, base + source),
        lambda: names_of(run, index),
        lambda edge: (index, edge) in run.dead_edges,
    )


def _bind_item(run: RunRecord, index: int, node: PlanNode, scope: Scope) -> bytes:
    """The parameters of one item: those of its map, with the item in its place."""
    step = scope.step.map
    assert step is not None
    if step.target is None and not node.expressions:
        return bytes(scope.parameters)
    parameters = msgspec.json.decode(scope.parameters)
    if node.expressions:
        evaluate(node.expressions, parameters, names_of(run, index))
    if step.target is not None:
        item = msgspec.json.decode(scope.items[scope.item_of(index)])
        parameters = write(step.target, parameters, item)
    return msgspec.json.encode(parameters)


def holds(run: RunRecord, task: int, condition: str) -> bool:
    """Whether the condition of a node holds. Raises: ExpressionError."""
    return _is_true(condition, names_of(run, task))


def edge_holds(run: RunRecord, source: int, condition: str) -> bool:
    """Whether the condition of an edge holds, now that its source has ended. Raises: ExpressionError."""
    more = {"results": _read_results(run, source), "error": error_of(run, source)}
    return _is_true(condition, Names(run, source, more))


def _is_true(condition: str, names: Mapping[str, Any]) -> bool:
    try:
        return bool(compile_expression(condition).evaluate(names))
    except ExpressionError as error:
        raise ExpressionError(f"condition {condition[:80]}: {error.message}") from None

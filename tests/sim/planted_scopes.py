"""Planted bugs of maps and containers."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any
from unittest.mock import patch

import msgspec

from astraflow.core.engine import map_values, recovery
from astraflow.core.engine.commands import NoteValue
from astraflow.core.engine.view import View
from astraflow.core.runs import scope_rules, values
from astraflow.core.runs.facts import ScopeClosing
from astraflow.core.runs.scopes import Scope

__all__ = ["itemshift", "leakyscope", "lostlist", "mapdisorder", "mapunbounded", "samevalue"]


def mapunbounded() -> AbstractContextManager[Any]:
    """All items begin at once."""
    init = Scope.__init__

    def broken(scope: Scope, *given: Any) -> None:
        init(scope, *given)
        scope.started = scope.count

    return patch.object(Scope, "__init__", broken)


def mapdisorder() -> AbstractContextManager[Any]:
    """The results of a map stand in the order in which its items ended."""
    results = scope_rules._results

    def broken(run: Any, scope: Scope) -> bytes:
        raw = results(run, scope)
        if scope.step.map is None:
            return raw
        found = msgspec.json.decode(raw)
        ends = [run.tasks[scope.first_of(item)].finished_at for item in range(scope.count)]
        order = sorted(range(scope.count), key=lambda item: ends[item] or 0)
        found["v"] = [found["v"][item] for item in order]
        return msgspec.json.encode(found)

    return patch.object(scope_rules, "_results", broken)


def itemshift() -> AbstractContextManager[Any]:
    """An item is given to the task of the next one."""
    bind_item = values._bind_item

    def broken(run: Any, index: int, node: Any, scope: Scope) -> bytes:
        document = msgspec.json.decode(bind_item(run, index, node, scope))
        item = (scope.item_of(index) + 1) % scope.count
        document["item"] = msgspec.json.decode(scope.items[item])
        return msgspec.json.encode(document)

    return patch.object(values, "_bind_item", broken)


def leakyscope() -> AbstractContextManager[Any]:
    """A scope that is closing lets go on what waits for a place."""

    def broken(decision: Any, owner: int, error: Any) -> None:
        decision.record(ScopeClosing(decision.at, owner, error))

    return patch.object(scope_rules, "close_scope", broken)


def lostlist() -> AbstractContextManager[Any]:
    """A scheduler that restarts does not read the list again that a map waits for."""
    restore, enqueue = recovery.restore_run, View.enqueue

    def broken(view: View, *given: Any) -> Any:
        def forgetful(self: View, run: Any, task: int, delay_s: float) -> None:
            if run.tasks[task].node.control is None:
                enqueue(self, run, task, delay_s)

        with patch.object(View, "enqueue", forgetful):
            return restore(view, *given)

    return patch("astraflow.core.engine.engine.restore_run", broken)


def samevalue() -> AbstractContextManager[Any]:
    """A map that is made again has the stored value of the first time."""
    note_value = map_values.note_value

    def broken(view: View, command: Any) -> None:
        class First(int):
            """The number of a task that reads as the same for every body."""

            def __format__(self, spec: str) -> str:
                return "0"

        if command.run_id not in view.runs:
            note_value(view, command)
            return
        scope = view.runs[command.run_id].scopes[command.task]
        first, scope.first = scope.first, First(scope.first)
        try:
            note_value(view, command)
        finally:
            scope.first = first

    return patch.dict("astraflow.core.engine.command_table.COMMANDS", {NoteValue: broken})

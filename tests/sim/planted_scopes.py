"""Planted bugs of maps and containers."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any
from unittest.mock import patch

import msgspec

from astraflow.core.runs import scope_rules, values
from astraflow.core.runs.facts import ScopeClosing
from astraflow.core.runs.scopes import Scope

__all__ = ["itemshift", "leakyscope", "mapdisorder", "mapunbounded"]


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

"""Planted bugs of calls of middlewares."""

from __future__ import annotations

from contextlib import AbstractContextManager, ExitStack, contextmanager
from itertools import count
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from astraflow.core.engine import calls as engine_calls
from astraflow.core.ids import uuid5
from astraflow.core.runs import calls

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["calltwice", "otheranswer"]


@contextmanager
def calltwice() -> Iterator[None]:
    """A request that comes again after a new session is taken for a new one: its host runs once more."""
    open_call = calls.open_call
    numbers = count()

    def broken(decision: Any, command: Any) -> None:
        known = decision.run.calls
        key = (command.task, command.attempt, command.request_id)
        if key in known:
            known[*key[:2], f"{command.request_id} before {next(numbers)}"] = known.pop(key)
        open_call(decision, command)

    with ExitStack() as stack:
        stack.enter_context(patch("astraflow.core.runs.decisions.open_call", broken))
        stack.enter_context(
            patch.object(calls, "uuid5", lambda *parts: uuid5(*parts, str(next(numbers))))
        )
        yield


def otheranswer() -> AbstractContextManager[Any]:
    """A caller is given the result of its first call as the answer to all of them."""
    answer = engine_calls._answer

    def broken(view: Any, run: Any, parent: int, request_id: str, result: Any, error: Any) -> None:
        of_parent = [task for (caller, _, _), task in run.calls.items() if caller == parent]
        first = run.tasks[of_parent[0]].result if of_parent else None
        answer(view, run, parent, request_id, first or result, None if first else error)

    return patch.object(engine_calls, "_answer", broken)

"""I37: a middleware's host runs exactly as often as `next` was called by the accepted attempt.

The world knows which calls each attempt made, by the ids of their requests. Each has one task in the store, of that
attempt, that has ended before it is answered, and the answer is what that task came to. An attempt that is accepted
has as many ended calls below it as it was given answers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from astraflow.core import errors
from astraflow.core.protocol import business
from astraflow.core.runs.facts import CallOpened, TaskFact, TaskFailed, TaskSucceeded
from tests.sim.world import Violation

if TYPE_CHECKING:
    from astraflow.core.engine.batch import Batch
    from tests.sim.checkers.state import StateChecker
    from tests.sim.store import Store
    from tests.sim.world import World

__all__ = ["CallChecker"]

_REFUSED = frozenset(
    one.code for one in (errors.NEXT_CANCELLED, errors.NEXT_INVALID, errors.NEXT_LIMIT)
)

_Attempt = tuple[str, int]  # the id of a task, and the number


class CallChecker:
    """What middlewares called, beside what the store says that they called."""

    def __init__(self, world: World, store: Store, state: StateChecker) -> None:
        self._world = world
        self._state = state
        self._made: dict[_Attempt, set[str]] = {}
        self._answered: dict[_Attempt, set[str]] = {}
        self._opened: dict[_Attempt, dict[str, tuple[str, int]]] = {}
        store.on_commit.append(self.on_commit)

    def on_call(self, request: business.NextRequest) -> None:
        """An attempt calls the rest of its chain."""
        attempt = (request.task_id, request.attempt)
        self._made.setdefault(attempt, set()).add(request.request_id)

    def on_answer(self, response: business.NextResponse) -> None:
        """An attempt is told what a call of it came to."""
        attempt = (response.task_id, response.attempt)
        opened = self._opened.get(attempt, {}).get(response.request_id)
        if opened is None:
            if response.error is None or response.error.code not in _REFUSED:
                raise Violation("I37", f"an answer to a call that is not stored: {response!r}")
            return
        ended = self._state.tasks[opened]
        if not ended.is_terminal:
            raise Violation("I37", f"an answer to a call that is open: {response!r}")
        is_success = isinstance(ended.result, TaskSucceeded)
        if is_success != (response.error is None):
            raise Violation("I37", f"the answer is not what the call came to: {response!r}")
        if isinstance(ended.result, TaskSucceeded) and bytes(ended.result.result) != bytes(
            response.result
        ):
            raise Violation("I37", f"the answer is the result of another call: {response!r}")
        self._answered.setdefault(attempt, set()).add(response.request_id)

    def on_commit(self, batch: Batch) -> None:
        for one in batch.facts:
            fact = one.fact
            if isinstance(fact, CallOpened):
                self._open(one.run_id, fact)
            elif isinstance(fact, TaskSucceeded | TaskFailed):
                self._accept(one.run_id, fact)

    def _open(self, run_id: str, fact: CallOpened) -> None:
        attempt = (self._state.task_id(run_id, fact.parent), fact.parent_attempt)
        opened = self._opened.setdefault(attempt, {})
        if fact.request_id in opened:
            raise Violation("I37", f"one call of next runs the host twice: {fact!r}")
        if attempt in self._made and fact.request_id not in self._made[attempt]:
            raise Violation("I37", f"nobody made this call: {fact!r}")
        opened[fact.request_id] = (run_id, fact.task)

    def _accept(self, run_id: str, fact: TaskFact) -> None:
        """The outcome of a task. Those that called nothing are no middlewares, or called nothing."""
        number = getattr(fact, "attempt", 0)
        attempt = (self._state.task_id(run_id, fact.task), number)
        answered = self._answered.get(attempt)
        if not answered or not isinstance(fact, TaskSucceeded):
            return
        ended = {
            request
            for request, place in self._opened[attempt].items()
            if self._state.tasks[place].is_terminal
        }
        if ended != answered or len(ended) != len(self._opened[attempt]):
            raise Violation(
                "I37", f"{attempt} was answered {len(answered)} times and called {len(ended)}"
            )
        self._world.sometimes("accepted with its calls")
        if len(ended) > 1:
            self._world.sometimes("accepted with several calls")

"""The callbacks of HTTP workers, from a verified token to the answer.

An active run is decided by the engine. One that has ended is read from the store and judged in the same way, so that a
report that comes again after the end of its run gets the same answer as before.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec

from astraflow.clock import Clock
from astraflow.core import errors
from astraflow.core.contract.tasks import (
    MAX_STACK_BYTES,
    STACK_CUT,
    CallbackAccepted,
    CallbackError,
    CompletionAccepted,
    HeartbeatAccepted,
    TaskCompleted,
    TaskHeartbeat,
    TaskStarted,
    is_absent,
)
from astraflow.core.engine.active_runs import split_task_id
from astraflow.core.ids import RunId, TaskId
from astraflow.core.runs.callbacks import (
    Beat,
    Callback,
    CallbackAnswer,
    Completed,
    Started,
    judge,
)
from astraflow.core.runs.facts import TaskFailure
from astraflow.core.runs.run import RunRecord
from astraflow.core.security.tokens import TaskClaims
from astraflow.core.timestamps import iso
from astraflow.scheduler.task_tokens import PoolTokens

if TYPE_CHECKING:
    from astraflow.scheduler.current import Current
    from astraflow.scheduler.ended_runs import EndedRuns
    from astraflow.scheduler.pushes import TaskPushes
    from astraflow.store.store import Store

EMPTY = msgspec.Raw(b"{}")


class TaskCallbacks:
    """Use from the scheduler's loop."""

    def __init__(
        self,
        store: Store,
        current: Current,
        ended: EndedRuns,
        tokens: PoolTokens,
        pushes: TaskPushes,
        clock: Clock,
    ) -> None:
        self._store = store
        self._current = current
        self._ended = ended
        self._tokens = tokens
        self._pushes = pushes
        self._clock = clock

    def verify(self, token: str, task_id: str) -> TaskClaims:
        """What a token allows. PROTOCOL §9: one refusal for a token that is none, and for one "for another tenant,
        workspace, run or task than the path".

        Raises: Refused, 401.
        """
        claims = self._tokens.verify(token, task_id, self._clock.wall_ms() / 1000)
        place = split_task_id(TaskId(task_id))
        is_of_run = place is None or place[0] == claims.run
        if not is_of_run or (self._current.is_serving and self._is_elsewhere(claims)):
            raise errors.Refused(errors.INVALID_TOKEN, errors.INVALID_TOKEN.says)
        return claims

    def _is_elsewhere(self, claims: TaskClaims) -> bool:
        """Whether the active task that a token names is of another tenant or workspace."""
        ask = self._current.engine.ask
        run = ask.run(RunId(claims.run))
        if run is None:
            return False
        pool = ask.pool_of(run.tenant, TaskId(claims.task), claims.attempt)
        is_other_workspace = pool is not None and pool.workspace != claims.workspace
        return run.tenant != claims.tenant or is_other_workspace

    async def started(self, claims: TaskClaims, body: TaskStarted) -> CallbackAccepted:
        """Raises: Conflict, NotFound, Unavailable."""
        await self._report(lambda token: Started(**_common(token, claims, body)))
        self._pushes.note_started(TaskId(claims.task), claims.attempt)
        return CallbackAccepted(acknowledged=True, server_time=self._time())

    async def heartbeat(self, claims: TaskClaims, body: TaskHeartbeat) -> HeartbeatAccepted:
        """Raises: Conflict, NotFound, Unavailable."""
        progress = None if body.progress_pct is None else body.progress_pct / 100

        def make(token: object) -> Beat:
            return Beat(**_common(token, claims, body), progress=progress, message=body.message)

        answer = await self._report(make)
        renewed = self._renewed(claims)
        return HeartbeatAccepted(
            acknowledged=True,
            server_time=self._time(),
            should_cancel=answer.should_cancel,
            cancel_reason=answer.cancel_reason,
            task_token=None if renewed is None else renewed[0],
            token_expires_at=None if renewed is None else iso(renewed[1] * 1000),
        )

    async def completed(self, claims: TaskClaims, body: TaskCompleted) -> CompletionAccepted:
        """Raises: Conflict, NotFound, Unavailable."""

        def make(token: object) -> Completed:
            return Completed(
                **_common(token, claims, body),
                outcome=body.outcome,
                output=EMPTY if is_absent(body.returned) else body.returned,
                error=None if body.error is None else _failure(body.error),
                metrics=body.metrics or {},
                phase=body.cancelled_during_phase,
                partial=body.partial_progress,
            )

        answer = await self._report(make)
        assert answer.final_state is not None
        self._pushes.note_started(TaskId(claims.task), claims.attempt)
        return CompletionAccepted(
            acknowledged=True, server_time=self._time(), final_state=answer.final_state
        )

    async def _report(self, make: Callable[[object], Callback]) -> CallbackAnswer:
        answer = await self._current.writer.callback(make)
        return await self._judge_ended(make(None)) if answer is None else answer

    async def _judge_ended(self, callback: Callback) -> CallbackAnswer:
        """The run is not active: it has ended, or was removed."""
        row = await self._store.find_run(callback.tenant, callback.run_id)
        run = None if row is None else await self._ended.run(row)
        task = None if run is None else _task_of(run, callback.task_id)
        if run is None or task is None:
            raise errors.NotFound(errors.TASK_NOT_FOUND, errors.TASK_NOT_FOUND.says)
        answer = judge(run, task, callback)
        assert answer is not None, "nothing of an ended run is to be decided"
        return answer

    def _renewed(self, claims: TaskClaims) -> tuple[str, int] | None:
        """A new token, if the old one expires soon and its pool is still there."""
        engine = self._current.engine
        pool = engine.ask.pool_of(claims.tenant, TaskId(claims.task), claims.attempt)
        wall = self._clock.wall_ms() / 1000
        return None if pool is None else self._tokens.renew(pool, claims, wall)

    def _time(self) -> str:
        return iso(self._clock.wall_ms())


def _common(
    token: object, claims: TaskClaims, body: TaskStarted | TaskHeartbeat | TaskCompleted
) -> dict[str, Any]:
    return {
        "token": token,
        "tenant": claims.tenant,
        "run_id": RunId(claims.run),
        "task_id": TaskId(claims.task),
        "token_attempt": claims.attempt,
        "attempt": body.attempt,
        "attempt_id": body.attempt_id,
        "worker_id": body.worker_id,
    }


def _task_of(run: RunRecord, task_id: TaskId) -> int | None:
    for index, task in enumerate(run.tasks):
        if task.call is not None and task.call.call_id == task_id:
            return index
    place = split_task_id(task_id)
    if place is None or place[0] != run.run_id or place[1] >= len(run.tasks):
        return None
    return place[1]


def _failure(error: CallbackError) -> TaskFailure:
    code = error.code or errors.RUNNER_FAILURE.code
    return TaskFailure(
        code, error.category, error.message, error.retryable, _cut(error.stack_trace)
    )


def _cut(stack: str | None) -> str | None:
    if stack is None or len(stack.encode("utf-8", "replace")) <= MAX_STACK_BYTES:
        return stack
    kept = stack.encode("utf-8", "replace")[:MAX_STACK_BYTES].decode("utf-8", "ignore")
    return kept + STACK_CUT

"""One attempt of a pushed task, from its start to its end.

Rule 1: nothing of the handler runs before the scheduler has taken `started`. A second delivery is refused there.
Rule 2: the right to run ends 0.6 × the heartbeat timeout after the *sending* of the last report that was answered. Past
        it the handler is asked to stop; if it does not, the process ends, because the scheduler may have given the task
        to another by then.
Rule 3: 409 and 410 mean that the attempt is over for the scheduler: the handler is stopped and nothing is reported.
"""

from __future__ import annotations

import asyncio
import contextvars
import json
import os
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from astraflow_sdk.context import Context
from astraflow_sdk.current import CURRENT
from astraflow_sdk.errors import Cancelled, ConfigurationError
from astraflow_sdk.host.handlers import Handler
from astraflow_sdk.host.outcome import encode_failure, encode_value
from astraflow_sdk.secret_mask import SecretMask
from astraflow_sdk.serverless.callbacks import Answer, Callbacks, Unreachable
from astraflow_sdk.serverless.envelope import PushedTask
from astraflow_sdk.serverless.report import MESSAGE_CHARS, TIMED_OUT, report_of

FENCE_RATIO = 0.6
OUTPUT_BYTES = 256 * 1024
STOP_S = 2.0
"""How long a handler has to stop at its fence before the process ends."""
NUDGE_S = 1.0
"""Progress is reported at once, but not more often."""
EXIT_FENCED = 70

FENCED = "fenced"


def end_process() -> None:
    """The handler cannot be stopped in any other way."""
    os._exit(EXIT_FENCED)


class ServerlessAttempt:
    """Runs in the thread that calls `run`, and has one more for heartbeats."""

    def __init__(
        self,
        envelope: PushedTask,
        handler: Handler | None,
        worker_id: str,
        exit_process: Callable[[], None] = end_process,
    ) -> None:
        self.worker_id = worker_id
        self.tenant = envelope.tenant
        self._envelope = envelope
        self._handler = handler
        self._exit_process = exit_process
        self._callbacks = Callbacks(envelope, worker_id)
        self._mask = SecretMask(envelope.secrets.values())
        self._fence_at = 0.0
        self._ended = threading.Event()
        self._has_news = threading.Event()
        self._is_over = False  # for the scheduler
        self._progress: float | None = None
        self._message: str | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[Any] | None = None
        self._ctx: Context | None = None

    def run(self) -> str:
        """Run it; `completed`, `ignored` (it was not ours to run, or not any more) or `unreachable`."""
        envelope = self._envelope
        begun = time.monotonic()
        try:
            until = begun + FENCE_RATIO * envelope.heartbeat_timeout_s
            answer = self._callbacks.post("started", {"startedAt": _now()}, until)
        except Unreachable:
            return "unreachable"
        if answer.status != 200:
            return "ignored"
        self._extend(answer)
        with tempfile.TemporaryDirectory(prefix="astraflow-") as folder:
            self._ctx = Context(self._frame(folder), self)
            beats = threading.Thread(target=self._beat, name="astraflow-heartbeat", daemon=True)
            beats.start()
            try:
                report = self._execute(self._ctx)
            finally:
                self._ended.set()
                self._has_news.set()
                beats.join()
        if self._is_over:
            return "ignored"
        if report["outcome"] == "CANCELLED" and self._ctx.cancel_reason == FENCED:
            return "unreachable"  # nobody has cancelled it: the scheduler will count it as silent
        return self._complete(report)

    # -- the handler ------------------------------------------------------------------------

    def _frame(self, folder: str) -> dict[str, Any]:
        envelope = self._envelope
        timeout_ms = None if envelope.timeout_s is None else int(envelope.timeout_s * 1000)
        return {
            "run_id": envelope.run_id,
            "task_id": envelope.task_id,
            "node_id": envelope.node_id,
            "attempt": envelope.attempt,
            "failures": envelope.failures,
            "node_type": envelope.node_type,
            "parameters": envelope.parameters,
            "secrets": dict(envelope.secrets),
            "data_dir": str(Path(folder) / "attempt"),
            "timeout_ms": timeout_ms,
            "traceparent": envelope.traceparent,
        }

    def _execute(self, ctx: Context) -> dict[str, Any]:
        token = CURRENT.set(ctx)
        try:
            if self._handler is None:
                message = f"this worker has no such node type: {ctx.node_type}"
                raise ConfigurationError(message, code="E.CMD.UNKNOWN")
            ctx.raise_if_cancelled()
            value = self._run_async(ctx) if self._handler.is_async else self._handler.call(ctx)
            text = encode_value(ctx, value, OUTPUT_BYTES)
        except BaseException as problem:  # the end of an attempt, whatever it is
            text = encode_failure(ctx, problem)
        finally:
            CURRENT.reset(token)
        frame: dict[str, Any] = json.loads(text)
        return report_of(frame, ctx.cancel_reason, self._mask)

    def _run_async(self, ctx: Context) -> Any:
        handler = self._handler
        assert handler is not None

        async def main() -> Any:
            self._task = asyncio.current_task()
            self._loop = asyncio.get_running_loop()
            CURRENT.set(ctx)
            ctx.raise_if_cancelled()
            return await handler.call(ctx)

        # A loop of its own in a thread of its own: the caller may be inside of one.
        result: list[Any] = []
        raised: list[BaseException] = []

        def run() -> None:
            try:
                result.append(asyncio.run(main()))
            except BaseException as problem:  # it is raised again where it is waited for
                raised.append(problem)

        thread = threading.Thread(target=contextvars.copy_context().run, args=(run,))
        thread.start()
        thread.join()
        if raised:
            if isinstance(raised[0], asyncio.CancelledError) and ctx.cancelled:
                raise Cancelled(ctx.cancel_reason or "") from raised[0]
            raise raised[0]
        return result[0]

    def _stop(self, reason: str) -> None:
        ctx = self._ctx
        assert ctx is not None
        if ctx.cancel_reason is None:
            ctx.cancel_reason = reason
        task, loop = self._task, self._loop
        if task is not None and loop is not None and not loop.is_closed():
            loop.call_soon_threadsafe(task.cancel)

    # -- heartbeats -------------------------------------------------------------------------

    def _beat(self) -> None:
        envelope = self._envelope
        started_at = time.monotonic()
        stops_at = None if envelope.timeout_s is None else started_at + envelope.timeout_s
        last = started_at
        while not self._ended.is_set():
            due = min(
                last + envelope.heartbeat_interval_s * 0.9,
                self._fence_at,
                *([] if stops_at is None else [stops_at]),
            )
            if self._has_news.wait(max(0.0, due - time.monotonic())):
                self._has_news.clear()
                if self._ended.wait(max(0.0, last + NUDGE_S - time.monotonic())):
                    return
            if stops_at is not None and time.monotonic() >= stops_at:
                stops_at = None
                self._stop(TIMED_OUT)
            last = time.monotonic()
            if not self._send_beat():
                return

    def _send_beat(self) -> bool:
        """Whether the attempt may go on."""
        body: dict[str, Any] = {"heartbeatAt": _now()}
        progress, message = self._progress, self._message
        if progress is not None:
            body["progressPct"] = int(progress * 100)
        if message is not None:
            body["message"] = self._mask.text(message)[:MESSAGE_CHARS]
        try:
            answer = self._callbacks.post(
                "heartbeat", body, self._fence_at, is_over=self._ended.is_set
            )
        except Unreachable:
            if not self._ended.is_set():
                self._fence()
            return False
        if answer.status != 200:
            self._is_over = True
            self._fence()
            return False
        self._extend(answer)
        if answer.body.get("shouldCancel"):
            self._stop(str(answer.body.get("cancelReason") or "cancelled"))
        return True

    def _extend(self, answer: Answer) -> None:
        timeout_s = self._envelope.heartbeat_timeout_s
        self._fence_at = max(self._fence_at, answer.sent_at + FENCE_RATIO * timeout_s)

    def _fence(self) -> None:
        self._stop(FENCED)
        if not self._ended.wait(STOP_S):
            self._exit_process()

    # -- the end ----------------------------------------------------------------------------

    def _complete(self, report: dict[str, Any]) -> str:
        # A late report is judged by the scheduler, so that it is worth sending past the fence.
        until = time.monotonic() + self._envelope.heartbeat_timeout_s
        try:
            answer = self._callbacks.post("completed", {"completedAt": _now(), **report}, until)
        except Unreachable:
            return "unreachable"
        return "completed" if answer.status == 200 else "ignored"

    # -- what a context asks of its host ----------------------------------------------------

    def registry_of(self, ctx: Context) -> None:
        """A worker without a session keeps nothing between attempts."""
        return None

    def told(self, ctx: Context) -> None:
        while (feedback := ctx.take_feedback()) is not None:
            if "progress" in feedback:
                self._progress = feedback["progress"]
            for chunk in feedback.get("chunks", ()):
                if chunk["channel"] == "log" and "text" in chunk:
                    # As in a worker with a session: what may be the beginning of a secret waits for the next piece.
                    self._message = self._mask.piece("log", chunk["text"])
            if "message" in feedback:
                self._message = feedback["message"]
        self._has_news.set()

    def next_of(self, ctx: Context, payload: object, timeout_s: float | None) -> Any:
        raise ConfigurationError(
            "next() needs a worker with a session: a middleware cannot run in an HTTP pool",
            code="E.NEXT.INVALID",
        )


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())

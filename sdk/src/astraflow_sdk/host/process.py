"""The host process: receives attempts from the worker, runs their handlers, and reports their outcomes.

`async` handlers are tasks of one loop; plain functions run in threads, or at once if they are marked `inline`. Nothing
a handler returns, raises or prints ends the process; what does end it is judged by the worker.
"""

from __future__ import annotations

import asyncio
import faulthandler
import itertools
import os
import sys
import threading
from collections import deque
from pathlib import Path
from typing import Any, NoReturn

from astraflow_sdk.context import Context
from astraflow_sdk.current import CURRENT
from astraflow_sdk.errors import CallFailed, ConfigurationError, UserCodeError
from astraflow_sdk.file_store import FileStore
from astraflow_sdk.host.channel import Channel, encode_json
from astraflow_sdk.host.children import end_children, watch_children
from astraflow_sdk.host.handlers import Handler, load_handlers, read_manifest
from astraflow_sdk.host.large_results import allows_large, has_values, read_values
from astraflow_sdk.host.objects import Objects
from astraflow_sdk.host.outcome import encode_failure, encode_value, failure_of
from astraflow_sdk.host.output import AttemptOutput, finish_lines
from astraflow_sdk.host.registry import HostRegistry
from astraflow_sdk.host.settings import HostSettings
from astraflow_sdk.host.threads import Threads
from astraflow_sdk.resources import Defaults

EXIT_BROKEN = 3
"""The package could not be loaded; a `broken` frame has said why."""
CANCEL_POLL_S = 0.2
"""How soon a thread that waits for an answer notices that it was cancelled."""
FEEDBACK_BACKLOG_BYTES = 1024 * 1024
"""While the worker has that much to read, feedback is dropped and counted; results are never dropped."""


def run_host(settings: HostSettings) -> NoReturn:
    """Run until the worker says `stop` or is gone."""
    watch_children()
    faulthandler.enable()  # a crash leaves its stack on stderr, which the worker keeps
    for channel in ("stdout", "stderr"):
        plain = getattr(sys, channel)
        limits = settings.output_bytes, settings.output_bytes_per_s
        setattr(sys, channel, AttemptOutput(channel, plain, *limits))
    asyncio.run(_serve(settings))
    sys.exit(
        0
    )  # what packages have registered for the end of the process is done; the worker bounds it


async def _serve(settings: HostSettings) -> None:
    host = NodeHost(settings)
    await host.stopped.wait()


class _Running:
    """A running attempt. It alone reports the outcome, so that it is reported once."""

    __slots__ = ("is_begun", "task")

    def __init__(self) -> None:
        self.task: asyncio.Task[None] | None = None
        self.is_begun = False


class _Call:
    """A request to the worker that waits for its response: a `next` or a `lease`."""

    __slots__ = ("answer", "future", "is_there")

    def __init__(self, future: asyncio.Future[dict[str, Any]] | None) -> None:
        self.future = future
        self.is_there = threading.Event()
        self.answer: dict[str, Any] = {}


class NodeHost:
    """The host: what runs the attempts of one package."""

    def __init__(self, settings: HostSettings) -> None:
        self.worker_id = settings.worker_id
        self.tenant = settings.tenant
        self._resources_dir = settings.resources_dir
        self.defaults = Defaults()
        self.stopped = asyncio.Event()
        self._limit_bytes = settings.result_bytes
        self._stores_large: frozenset[str] = frozenset()
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._threads = Threads(settings.max_threads)
        self._attempts: dict[tuple[str, int], Context] = {}
        self._calls: dict[tuple[str, int, str], _Call] = {}
        self._call_count = itertools.count(1)
        self._with_feedback: list[Context] = []
        self._posts: deque[str] = deque()  # by threads; in the order in which they are told
        self.objects = Objects(settings.keeps_objects, self._threads, self._tell_closed)
        self._ended: list[tuple[Context, str]] = []  # by threads; list operations are atomic
        self._channel = Channel(settings.read_fd, settings.write_fd, self._on_frame, self._on_turn)
        self._handlers = self._load(settings)

    def _load(self, settings: HostSettings) -> dict[str, Handler]:
        try:
            manifest = read_manifest(settings.folder)
            self.defaults = Defaults.of(manifest)
            self._stores_large = allows_large(manifest)
            handlers = load_handlers(settings.folder, manifest)
        except BaseException as problem:  # whatever a package raises when it is imported
            error = failure_of(problem)
            self._channel.send(encode_json({"type": "broken", "error": error}))
            self._channel.flush()
            os._exit(EXIT_BROKEN)
        hello = {"type": "hello", "pid": os.getpid(), "node_types": sorted(handlers)}
        self._channel.send(encode_json(hello))
        return handlers

    # -- frames from the worker -------------------------------------------------------------

    def _on_frame(self, frame: dict[str, Any]) -> None:
        kind = frame["type"]
        if kind == "start":
            self._start(frame)
        elif kind == "cancel":
            self._cancel(frame)
        elif kind in ("answer", "leased"):
            self._answer(frame)
        elif kind == "close":
            self.objects.close(frame["token"])
        elif kind == "stop":
            self.stopped.set()

    def _start(self, frame: dict[str, Any]) -> None:
        ctx = Context(frame, self)
        handler = self._handlers.get(ctx.node_type)
        if handler is None:
            problem = ConfigurationError(
                f"the package has no such node type: {ctx.node_type}", code="E.CMD.UNKNOWN"
            )
            self._channel.send(encode_failure(ctx, problem))
            return
        running = ctx.state = _Running()
        if handler.is_inline and not has_values(ctx):
            self._tell_end(ctx, self._run_here(ctx, handler))
            return
        self._attempts[ctx.task_id, ctx.attempt] = ctx
        if handler.is_async:
            running.task = self._loop.create_task(self._run_async(ctx, handler))
        else:
            self._threads.run(lambda: self._run_in_thread(ctx, handler))

    def _cancel(self, frame: dict[str, Any]) -> None:
        ctx = self._attempts.get((frame["task_id"], frame["attempt"]))
        if ctx is None or ctx.cancelled:
            return
        ctx.cancel_reason = frame.get("reason") or "cancelled"
        running = ctx.state
        if running.task is not None and running.is_begun:
            running.task.cancel()

    # -- the three ways to run --------------------------------------------------------------

    def _run_here(self, ctx: Context, handler: Handler) -> str:
        """Run a plain function in this thread; the text of the frame that tells its end."""
        token = CURRENT.set(ctx)
        try:
            if has_values(ctx):
                read_values(ctx)
            return self._encode(ctx, handler.call(ctx))
        except BaseException as problem:  # the end of an attempt, whatever it is
            return encode_failure(ctx, problem)
        finally:
            CURRENT.reset(token)

    async def _run_async(self, ctx: Context, handler: Handler) -> None:
        CURRENT.set(ctx)
        ctx.state.is_begun = True
        try:
            ctx.raise_if_cancelled()
            if has_values(ctx):
                await asyncio.to_thread(read_values, ctx)
            text = self._encode(ctx, await handler.call(ctx))
        except BaseException as problem:  # the end of an attempt, whatever it is
            text = encode_failure(ctx, problem)
        self._tell_end(ctx, text)

    def _encode(self, ctx: Context, value: object) -> str:
        stores_large = ctx.node_type in self._stores_large
        return encode_value(ctx, value, self._limit_bytes, stores_large=stores_large)

    def _run_in_thread(self, ctx: Context, handler: Handler) -> None:
        text = self._run_here(ctx, handler)
        self._ended.append((ctx, text))
        self._channel.wake()

    # -- feedback ---------------------------------------------------------------------------

    def told(self, ctx: Context) -> None:
        self._with_feedback.append(ctx)
        self._channel.wake()

    def _on_turn(self) -> None:
        self._send_posts()
        while self._ended:
            self._tell_end(*self._ended.pop(0))
        while self._with_feedback:
            self._tell_feedback(self._with_feedback.pop())

    def _tell_end(self, ctx: Context, text: str) -> None:
        if ctx.has_failed and ctx.children is not None:
            end_children(ctx)
        self._send_posts()  # what the attempt has registered is known before its result names it
        if ctx.partial_lines is not None:
            finish_lines(ctx)
        if ctx.is_told or ctx.dropped:
            self._tell_feedback(ctx, is_last=True)
        self._attempts.pop((ctx.task_id, ctx.attempt), None)
        ctx.state = None
        self._channel.send(text)

    def _tell_feedback(self, ctx: Context, *, is_last: bool = False) -> None:
        """Hand on what the attempt has said, or count it as dropped while the worker has too much to read.

        At the end of the attempt (`is_last`) nobody will come back for the count, so it goes out whatever waits.
        """
        head = {"type": "feedback", "task_id": ctx.task_id, "attempt": ctx.attempt}
        dropped = 0
        while (feedback := ctx.take_feedback()) is not None:
            if ctx.state is None:
                continue  # a thread that outlived its handler speaks for nobody
            if self._channel.blocked_bytes <= FEEDBACK_BACKLOG_BYTES:
                self._channel.send(_encode_feedback({**head, **feedback}))
                continue
            dropped += feedback.get("dropped", 0) + len(feedback.get("chunks", ()))
            if not is_last:
                break
        if is_last and dropped:
            self._channel.send(_encode_feedback({**head, "dropped": dropped}))
        else:
            ctx.dropped += dropped

    # -- resources --------------------------------------------------------------------------

    def registry_of(self, ctx: Context) -> HostRegistry | None:
        if self._resources_dir is None:
            return None
        # Its own folder is all that an attempt may take files from: others write into theirs meanwhile.
        return HostRegistry(ctx, self, FileStore(Path(self._resources_dir), ctx.told_data_dir))

    def post(self, text: str) -> None:
        """Tell the worker something, from any thread, before anything that is told later."""
        self._posts.append(text)
        self._channel.wake()

    def _send_posts(self) -> None:
        while self._posts:
            self._channel.send(self._posts.popleft())

    def _tell_closed(self, token: str, error: str | None) -> None:
        told = {"type": "closed", "token": token}
        self.post(encode_json(told if error is None else {**told, "error": error}))

    def ask(self, ctx: Context, request: dict[str, Any]) -> dict[str, Any]:
        """Ask the worker and wait, in a thread.

        Raises:
            ConfigurationError: this is the loop, which must not wait.
        """
        if threading.get_ident() == self._thread:
            raise ConfigurationError("the loop of the host cannot wait for an answer")
        call, request_id = self._new_call(ctx, None)
        head = {"task_id": ctx.task_id, "attempt": ctx.attempt, "request_id": request_id}
        self.post(encode_json({**request, **head}))
        return self._wait_for(ctx, call)

    def _new_call(
        self, ctx: Context, future: asyncio.Future[dict[str, Any]] | None
    ) -> tuple[_Call, str]:
        request_id = f"{ctx.attempt}.{next(self._call_count)}"
        call = self._calls[ctx.task_id, ctx.attempt, request_id] = _Call(future)
        return call, request_id

    def _wait_for(self, ctx: Context, call: _Call) -> dict[str, Any]:
        while not call.is_there.wait(CANCEL_POLL_S):
            ctx.raise_if_cancelled()
            if ctx.state is None:
                raise UserCodeError("the attempt has ended while a thread of it still asks")
        return call.answer

    # -- the rest of a chain ----------------------------------------------------------------

    def next_of(self, ctx: Context, payload: object, timeout_s: float | None) -> Any:
        if ctx.chain_index is None:
            raise ConfigurationError(
                "next() was called in a node that is no middleware", code="E.NEXT.INVALID"
            )
        encoded = encode_json(payload)
        is_here = threading.get_ident() == self._thread
        call, request_id = self._new_call(ctx, self._loop.create_future() if is_here else None)
        request: dict[str, Any] = {
            "type": "next",
            "task_id": ctx.task_id,
            "attempt": ctx.attempt,
            "request_id": request_id,
            "chain_index": ctx.chain_index,
        }
        if timeout_s is not None:
            request["timeout_ms"] = int(timeout_s * 1000)
        text = f'{encode_json(request)[:-1]},"payload":{encoded}}}'
        if is_here:
            self._channel.send(text)
            return self._await_answer(call)
        self._loop.call_soon_threadsafe(self._channel.send, text)
        return _result_of(self._wait_for(ctx, call))

    async def _await_answer(self, call: _Call) -> Any:
        assert call.future is not None
        return _result_of(await call.future)

    def _answer(self, frame: dict[str, Any]) -> None:
        call = self._calls.pop((frame["task_id"], frame["attempt"], frame["request_id"]), None)
        if call is None:
            return
        call.answer = frame
        call.is_there.set()
        if call.future is not None and not call.future.done():
            call.future.set_result(frame)


def _result_of(answer: dict[str, Any]) -> Any:
    error = answer.get("error")
    if error is None:
        return answer.get("result")
    raise CallFailed(
        error.get("message", ""),
        category=error["category"],
        retryable=error.get("retryable"),
        code=error["code"],
        context=error.get("context"),
    )


def _encode_feedback(feedback: dict[str, Any]) -> str:
    try:
        return encode_json(feedback)
    except (TypeError, ValueError, RecursionError):
        # Metadata of a chunk that is no JSON: the chunk is told without it.
        for chunk in feedback.get("chunks", ()):
            chunk.pop("metadata", None)
        return encode_json(feedback)

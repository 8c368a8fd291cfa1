"""Runs a node in this process, without a server or a worker, as a host does: for tests.

Everything that a handler may do works: its output is collected, resources are kept in this process and below a folder,
and its result is encoded and decoded as JSON. Its exceptions are raised.
"""

from __future__ import annotations

import asyncio
import inspect
import itertools
import json
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

from astraflow_sdk.context import Context
from astraflow_sdk.current import CURRENT
from astraflow_sdk.errors import Cancelled, ConfigurationError, NodeError
from astraflow_sdk.handles import ResourceHandle
from astraflow_sdk.host.handlers import Handler, load_handlers, marked_functions, read_manifest
from astraflow_sdk.host.outcome import encode_value
from astraflow_sdk.nodes import info_of
from astraflow_sdk.resources import Defaults, LocalRegistry, Registration

RESULT_BYTES = 2 * 1024 * 1024
"""What a worker takes as a result if nothing else is configured."""
RUN_ID = "run"


@dataclass
class Outcome:
    """The outcome of one attempt."""

    status: str = "running"
    """`succeeded`, `skipped` or `cancelled`. One that fails raises."""
    result: dict[str, Any] = field(default_factory=dict)
    artifacts: list[dict[str, Any]] = field(default_factory=list)
    chunks: list[dict[str, Any]] = field(default_factory=list)
    """What it streamed with `ctx.emit`, piece by piece."""
    logs: list[tuple[str, str]] = field(default_factory=list)
    """Level and message."""
    progress: list[tuple[float, str | None]] = field(default_factory=list)
    metrics: dict[str, float] = field(default_factory=dict)
    """The last value of each."""
    calls: list[Any] = field(default_factory=list)
    """What a middleware passed to `ctx.next`."""
    resources: dict[str, ResourceHandle] = field(default_factory=dict)
    """What is kept after it, by id."""

    @property
    def text(self) -> str:
        """The streamed text in one piece."""
        return "".join(chunk.get("text", "") for chunk in self.chunks)


class Trial:
    """Runs nodes of one package, one after the other. Resources of one attempt are available to the next."""

    worker_id = "local"
    tenant = "default"

    def __init__(self, data_dir: Path, package: Path | None = None) -> None:
        self.data_dir = data_dir
        data_dir.mkdir(parents=True, exist_ok=True)
        self._package = package
        self._kept: dict[str, Registration] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._attempts = itertools.count(1)

    def run(
        self,
        function_or_type: Callable[..., Any] | str,
        parameters: Mapping[str, Any] | None = None,
        /,
        *,
        secrets: Mapping[str, str] | None = None,
        failures: int = 0,
        timeout_s: float | None = None,
        cancel: bool | Callable[[Outcome], bool] = False,
        next: Any = None,
        host: Mapping[str, Any] | None = None,
        **more: Any,
    ) -> Outcome:
        """Run a node with parameters, by name or as one mapping.

        `failures`: how often it has failed before. `cancel=True` asks it to end before it begins; a function of the
        outcome so far is asked each time that the node says something. `next` makes it a middleware: what the rest of
        its chain returns, or a function of the payload that returns it; `host` is what the host of the chain is given.

        Raises:
            NodeError: what the node raised, or its result is none.
        """
        handler = self._handler(function_or_type)
        attempt = _Attempt(self, handler, cancel, next)
        frame: dict[str, Any] = {
            "run_id": RUN_ID,
            "task_id": "task",
            "node_id": "node",
            "attempt": failures + 1,
            "failures": failures,
            "node_type": _type_of(function_or_type),
            "data_dir": self._new_folder(),
            # As they arrive at a host: what JSON has no form for is a mistake of the test.
            "parameters": json.loads(json.dumps({**(parameters or {}), **more}, allow_nan=False)),
            "secrets": dict(secrets or {}),
            "timeout_ms": None if timeout_s is None else int(timeout_s * 1000),
            **({} if next is None else _chain(host or {})),
        }
        return attempt.run(Context(frame, attempt))

    def _new_folder(self) -> str:
        return str(self.data_dir / "attempts" / str(next(self._attempts)))

    def close(self) -> None:
        """Let go of all resources, on the loop that they were made on."""
        while self._kept:
            _, making = self._kept.popitem()
            closed = making.close() if making.close is not None else None
            if inspect.isawaitable(closed):
                self.complete(closed)
        if self._loop is not None:
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
            self._loop.close()
            self._loop = None

    def complete(self, awaitable: Any) -> Any:
        """Await something on the one loop of this trial: objects that are kept belong to it."""
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
        loop = self._loop

        async def waiting() -> Any:
            return await awaitable

        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return loop.run_until_complete(waiting())
        return _in_thread(lambda: loop.run_until_complete(waiting()))

    def registry(self, parameters: Mapping[str, Any]) -> LocalRegistry:
        """A registry for one attempt, with what its parameters refer to leased."""
        manifest = read_manifest(str(self._package)) if self._package else {}
        defaults = Defaults.of(manifest)
        registry = LocalRegistry(
            self.data_dir, run_id=RUN_ID, worker_id=self.worker_id, defaults=defaults
        )
        registry.kept = self._kept
        for resource_id in _references(parameters):
            registry.leased[resource_id] = registry.lease(resource_id)
        return registry

    @property
    def resources(self) -> dict[str, ResourceHandle]:
        return {key: making.handle for key, making in self._kept.items()}

    def _handler(self, function_or_type: Callable[..., Any] | str) -> Handler:
        if callable(function_or_type):
            return Handler(function_or_type)
        if self._package is None:
            raise ConfigurationError(
                f"there is no manifest.json above the test, so nobody knows the node type {function_or_type}; pass the "
                "function itself"
            )
        folder = str(self._package)
        for _, function in marked_functions(folder):
            info = info_of(function)
            if info is not None and info.type == function_or_type:
                return Handler(function)
        nodes = [
            node
            for node in read_manifest(folder).get("nodes") or ()
            if node.get("type") == function_or_type
        ]
        if not nodes:
            raise ConfigurationError(f"the package has no such node type: {function_or_type}")
        manifest = {**read_manifest(folder), "nodes": nodes}
        return load_handlers(folder, manifest)[function_or_type]


class _Attempt:
    """One attempt, and the host as its context sees it."""

    def __init__(
        self,
        trial: Trial,
        handler: Handler,
        cancel: bool | Callable[[Outcome], bool],
        next: Any,
    ) -> None:
        self.worker_id = trial.worker_id
        self.tenant = trial.tenant
        self._trial = trial
        self._handler = handler
        self._cancel = cancel
        self._next = next
        self._outcome = Outcome()
        self._task: asyncio.Task[Any] | None = None
        self._lock = threading.Lock()

    def run(self, ctx: Context) -> Outcome:
        outcome = self._outcome
        if self._cancel is True:
            ctx.cancel_reason = "cancelled"
        token = CURRENT.set(ctx)
        try:
            value = self._value(ctx)
            self._read(json.loads(encode_value(ctx, value, RESULT_BYTES)))
        except (Cancelled, asyncio.CancelledError):
            if not ctx.cancelled:
                raise
            outcome.status = "cancelled"
        finally:
            CURRENT.reset(token)
        self._take(ctx)
        outcome.resources = self._trial.resources
        return outcome

    def _value(self, ctx: Context) -> Any:
        if self._handler.is_async:
            return self._trial.complete(self._run_async(ctx))
        return self._handler.call(ctx)

    async def _run_async(self, ctx: Context) -> Any:
        CURRENT.set(ctx)
        ctx.raise_if_cancelled()
        self._task = asyncio.current_task()
        return await self._handler.call(ctx)

    def _read(self, frame: dict[str, Any]) -> None:
        error = frame.get("error")
        if error is not None:
            problem = NodeError(error["message"], code=error["code"], retryable=False)
            problem.category = error["category"]
            raise problem
        self._outcome.status = frame["status"].lower()
        self._outcome.result = frame["result"]
        self._outcome.artifacts = frame.get("artifacts", [])

    # -- what a context asks of its host ----------------------------------------------------

    def registry_of(self, ctx: Context) -> LocalRegistry:
        return self._trial.registry(ctx.parameters)

    def told(self, ctx: Context) -> None:
        self._take(ctx)
        if callable(self._cancel) and not ctx.cancelled and self._cancel(self._outcome):
            ctx.cancel_reason = "cancelled"
            if self._task is not None:
                self._task.get_loop().call_soon_threadsafe(self._task.cancel)

    def _take(self, ctx: Context) -> None:
        with self._lock:
            while (feedback := ctx.take_feedback()) is not None:
                if "progress" in feedback:
                    said = feedback["progress"], feedback.get("message")
                    self._outcome.progress.append(said)
                self._outcome.metrics.update(feedback.get("metrics", {}))
                for chunk in feedback.get("chunks", ()):
                    self._hear(chunk)

    def _hear(self, chunk: dict[str, Any]) -> None:
        level = (chunk.get("metadata") or {}).get("level")
        if chunk["channel"] == "log" and level is not None:
            self._outcome.logs.append((level, chunk.get("text", "")))
        else:
            self._outcome.chunks.append(chunk)

    def next_of(self, ctx: Context, payload: object, timeout_s: float | None) -> Any:
        if ctx.chain_index is None:
            raise ConfigurationError(
                "next() was called in a node that is no middleware; pass next= to run_node",
                code="E.NEXT.INVALID",
            )
        self._outcome.calls.append(json.loads(json.dumps(payload, allow_nan=False)))
        answer = self._next(payload) if callable(self._next) else self._next
        return _ready(answer) if self._handler.is_async else answer


def _chain(host: Mapping[str, Any]) -> dict[str, Any]:
    """What a dispatch says of the chain of a middleware."""
    given = json.loads(json.dumps(host, allow_nan=False))
    digest = sha256(json.dumps(given, sort_keys=True).encode()).hexdigest()
    return {
        "host_node_id": "host",
        "middleware_chain": ["node"],
        "chain_index": 0,
        "host": {
            "node_type": "host",
            "package": {"name": "host", "version": "1.0.0"},
            "parameters": given,
            "input_sha256": digest,
        },
    }


async def _ready(answer: Any) -> Any:
    return await answer if inspect.isawaitable(answer) else answer


def _type_of(function_or_type: Callable[..., Any] | str) -> str:
    if isinstance(function_or_type, str):
        return function_or_type
    info = info_of(function_or_type)
    return info.type if info is not None else getattr(function_or_type, "__name__", "node")


def _references(value: Any) -> Iterator[str]:
    """The ids of the resources that parameters refer to."""
    if isinstance(value, Mapping):
        ref = value.get("resourceRef")
        if isinstance(ref, Mapping) and isinstance(ref.get("resourceId"), str):
            yield ref["resourceId"]
            return
        value = list(value.values())
    if isinstance(value, list):
        for one in value:
            yield from _references(one)


def _in_thread(call: Callable[[], Any]) -> Any:
    """Call it where no loop runs: a test that is a coroutine has one already."""
    ended: list[Any] = []
    raised: list[BaseException] = []

    def run() -> None:
        try:
            ended.append(call())
        except BaseException as problem:  # it is raised again where it is waited for
            raised.append(problem)

    thread = threading.Thread(target=run, name="astraflow-trial")
    thread.start()
    thread.join()
    if raised:
        raise raised[0]
    return ended[0]

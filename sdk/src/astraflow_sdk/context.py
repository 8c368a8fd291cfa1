"""`Context`: the data of an attempt, and the methods by which its handler reports progress and output.

All of it may be used from the handler's own thread or loop, and from threads that the handler starts.
"""

from __future__ import annotations

import base64
import itertools
import math
import threading
from collections import deque
from collections.abc import Awaitable, Mapping
from pathlib import Path
from typing import Any, Protocol

from astraflow_sdk.errors import Cancelled, ConfigurationError
from astraflow_sdk.handles import ResourceHandle
from astraflow_sdk.resources import ResourceRegistry
from astraflow_sdk.secret_refs import with_secrets
from astraflow_sdk.wrapped import WrappedNode

CHUNK_CHARS = 16 * 1024
"""A longer piece of output is cut into several, so that none fills a frame."""
CHUNK_BYTES = 48 * 1024
"""The same for bytes, which grow by a third as base64."""
PENDING_CHUNKS = 10_000
"""Pieces that wait to be told. A handler that never lets the loop run loses what is beyond, and it is counted."""
FRAME_CHUNKS = 64
"""Pieces in one frame to the worker: with the largest pieces it still is below the limit of a frame."""
MESSAGE_CHARS = 4096
"""Of a progress message; more is cut."""

METRICS = 256
"""Names in one frame."""
METRIC_NAME_CHARS = 256

_FIRST_USE = threading.Lock()


class Port(Protocol):
    """The host, as a context sees it."""

    worker_id: str
    tenant: str

    def registry_of(self, ctx: Context) -> ResourceRegistry | None:
        """A new registry for the attempt; none if resources cannot be kept here."""

    def told(self, ctx: Context) -> None:
        """The context has something to tell: take it soon with `take_feedback`."""

    def next_of(self, ctx: Context, payload: object, timeout_s: float | None) -> Any:
        """Call the rest of the chain: a result in a thread, an awaitable on the loop."""


class Context:
    """One attempt, as its handler sees it."""

    __slots__ = (
        "_artifacts",
        "_chunks",
        "_counts",
        "_frame",
        "_port",
        "_registry",
        "_said",
        "attempt",
        "cancel_reason",
        "children",
        "dropped",
        "has_failed",
        "has_folder",
        "is_told",
        "node_type",
        "parameters",
        "partial_lines",
        "state",
        "task_id",
    )

    def __init__(self, frame: Mapping[str, Any], port: Port) -> None:
        self._frame = frame
        self._port = port
        self.task_id: str = frame["task_id"]
        self.attempt: int = frame["attempt"]
        self.node_type: str = frame["node_type"]
        secrets = frame.get("secrets")
        given = frame["parameters"]
        self.parameters: dict[str, Any] = with_secrets(given, secrets) if secrets else given
        self.cancel_reason: str | None = None
        # What follows belongs to the host.
        self.state: Any = None
        self.partial_lines: dict[str, Any] | None = None
        self.children: list[tuple[int, str | None]] | None = None
        self.has_failed = False
        self.has_folder = False  # whether anybody asked for its folder
        self.dropped = 0
        self.is_told = False
        self._chunks: deque[dict[str, Any]] = deque()
        self._said: dict[str, Any] | None = None
        self._counts: dict[str, itertools.count[int]] | None = None
        self._artifacts: list[dict[str, Any]] | None = None
        self._registry: ResourceRegistry | None = None

    # -- who and where ----------------------------------------------------------------------

    @property
    def run_id(self) -> str:
        return str(self._frame["run_id"])

    @property
    def node_id(self) -> str:
        return str(self._frame["node_id"])

    @property
    def inputs(self) -> dict[str, Any]:
        """The parameters, with what came over the edges bound into them."""
        return self.parameters

    @property
    def params(self) -> dict[str, Any]:
        """The same as `parameters`."""
        return self.parameters

    @property
    def failures(self) -> int:
        """How often the task has failed before; losses do not count."""
        return int(self._frame.get("failures", 0))

    @property
    def idempotency_key(self) -> str:
        """The same for all attempts of the task: give it to services that must not act twice."""
        return f"{self.run_id}/{self.task_id}"

    @property
    def timeout_s(self) -> float | None:
        """How long the attempt may run in all, if its node says so."""
        timeout_ms = self._frame.get("timeout_ms")
        return None if timeout_ms is None else timeout_ms / 1000

    @property
    def worker_id(self) -> str:
        return self._port.worker_id

    @property
    def tenant(self) -> str:
        return self._port.tenant

    @property
    def data_dir(self) -> Path:
        """A folder of this attempt alone. It goes with the attempt: register or store what is to stay."""
        folder = self.told_data_dir
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return folder

    @property
    def told_data_dir(self) -> Path:
        """The same, whether it has been made or not."""
        self.has_folder = True
        return Path(self._frame["data_dir"])

    @property
    def secrets(self) -> Mapping[str, str]:
        """The secrets that the parameters of the node refer to, by name."""
        return self._frame.get("secrets") or {}

    def secret(self, name: str) -> str:
        """The value of a secret. Raises: ConfigurationError, if the parameters do not refer to it."""
        try:
            return self.secrets[name]
        except KeyError:
            raise ConfigurationError(
                f"the parameters of the node do not refer to the secret {name}"
            ) from None

    @property
    def resource_refs(self) -> list[dict[str, Any]]:
        return list(self._frame.get("resource_refs") or ())

    @property
    def traceparent(self) -> str | None:
        return self._frame.get("traceparent")

    @property
    def chain_index(self) -> int | None:
        """The place of a middleware in its chain; None in all other nodes."""
        return self._frame.get("chain_index")

    @property
    def host_node_id(self) -> str | None:
        """The node that the chain is around; None in a node without middlewares that is none itself."""
        return self._frame.get("host_node_id")

    @property
    def middleware_chain(self) -> list[str]:
        """The ids of the middlewares around that node, the outermost first."""
        return list(self._frame.get("middleware_chain") or ())

    @property
    def host(self) -> WrappedNode | None:
        """In a middleware: the node that its chain ends in, and what that would be given now."""
        told = self._frame.get("host")
        return None if told is None else WrappedNode.from_frame(told)

    # -- resources --------------------------------------------------------------------------

    @property
    def resource_registry(self) -> ResourceRegistry | None:
        """What keeps files and objects between attempts. None where there is nothing that could: guard for it."""
        if self._registry is None:
            made = self._port.registry_of(self)
            with _FIRST_USE:
                self._registry = self._registry or made
        return self._registry

    def needed_registry(self) -> ResourceRegistry:
        """Raises ConfigurationError where there is none."""
        registry = self.resource_registry
        if registry is None:
            raise ConfigurationError("there is no registry of resources here")
        return registry

    @property
    def leased_resources(self) -> dict[str, ResourceHandle]:
        """What the dispatch refers to, by resource id: leased before the handler began, until it ends."""
        registry = self.resource_registry
        return {} if registry is None else dict(registry.leased)

    @property
    def told_leases(self) -> list[dict[str, Any]]:
        """For the registry: what the worker has leased for the attempt."""
        return list(self._frame.get("leased") or ())

    # -- being stopped ----------------------------------------------------------------------

    @property
    def cancelled(self) -> bool:
        """Whether the attempt was asked to end. One that does not end is killed after its grace."""
        return self.cancel_reason is not None

    def raise_if_cancelled(self) -> None:
        """End the handler if it was asked to.

        Raises:
            Cancelled: it was.
        """
        if self.cancel_reason is not None:
            raise Cancelled(self.cancel_reason)

    # -- feedback ---------------------------------------------------------------------------

    def progress(self, fraction: float, message: str | None = None) -> None:
        """How far it is, from 0 to 1. Of several in a short time only the last is told."""
        said: dict[str, Any] = {"progress": min(max(float(fraction), 0.0), 1.0)}
        if message is not None:
            said["message"] = str(message)[:MESSAGE_CHARS]
        self._said = {**(self._said or {}), **said}
        self._tell()

    def log(self, level: str, message: str) -> None:
        """A line for the log of the run. `level`: debug, info, warning or error."""
        self.emit(str(message), channel="log", metadata={"level": str(level)})

    def metrics(self, values: Mapping[str, float] | None = None, /, **named: float) -> None:
        """Numbers about the work, as a loss or a rate. Of several of one name in a short time only the last is told.

        Raises:
            ValueError: a value is no finite number, a name is empty or too long, or there are too many names.
        """
        given = {**(values or {}), **named}
        told = {_metric_name(name): _metric_value(name, value) for name, value in given.items()}
        known = (self._said or {}).get("metrics", {})
        merged = {**known, **told}
        if len(merged) > METRICS:
            raise ValueError(f"an attempt reports at most {METRICS} metrics at once")
        if told:
            self._said = {**(self._said or {}), "metrics": merged}
            self._tell()

    def emit(
        self,
        output: str | bytes,
        *,
        channel: str = "output",
        mime_type: str | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> None:
        """Stream a piece of output to whoever watches the run."""
        if isinstance(output, str):
            pieces: list[tuple[str, str]] = [
                ("text", output[at : at + CHUNK_CHARS])
                for at in range(0, len(output) or 1, CHUNK_CHARS)
            ]
        else:
            pieces = [
                ("data_base64", base64.b64encode(output[at : at + CHUNK_BYTES]).decode())
                for at in range(0, len(output) or 1, CHUNK_BYTES)
            ]
        if self._counts is None:
            self._counts = {}
        count = self._counts.setdefault(channel, itertools.count())
        for field, piece in pieces:
            if len(self._chunks) >= PENDING_CHUNKS:
                self.dropped += 1
                continue
            chunk: dict[str, Any] = {"channel": channel, "index": next(count), field: piece}
            if mime_type is not None:
                chunk["mime_type"] = mime_type
            if metadata:
                chunk["metadata"] = dict(metadata)
            self._chunks.append(chunk)
        self._tell()

    def add_artifact(
        self,
        resource_id: str,
        type: str,
        *,
        size_bytes: int | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> None:
        """Return a resource of this worker beside the result."""
        artifact: dict[str, Any] = {
            "resource_id": resource_id,
            "worker_id": self.worker_id,
            "type": type,
        }
        if size_bytes is not None:
            artifact["size_bytes"] = size_bytes
        if metadata:
            artifact["metadata"] = dict(metadata)
        self.list_artifact(artifact)

    def list_artifact(self, artifact: dict[str, Any]) -> None:
        """Return what a registry has described (`to_artifact_descriptor`) beside the result."""
        if self._artifacts is None:
            self._artifacts = []
        self._artifacts.append(artifact)

    def next(self, payload: object = None, timeout_s: float | None = None) -> Awaitable[Any] | Any:
        """In a middleware: run the rest of the chain, as often as wanted.

        An `async` handler awaits what this returns; a plain one gets the result itself.

        Raises:
            CallFailed: the rest of the chain did not succeed.
        """
        return self._port.next_of(self, payload, timeout_s)

    def _tell(self) -> None:
        if not self.is_told:
            self.is_told = True
            self._port.told(self)

    # -- for the host -----------------------------------------------------------------------

    def take_feedback(self) -> dict[str, Any] | None:
        """Some of what was said since the last time, if anything. Ask until there is nothing."""
        self.is_told = False
        said, self._said = self._said, None
        chunks: list[dict[str, Any]] = []
        while self._chunks and len(chunks) < FRAME_CHUNKS:
            chunks.append(self._chunks.popleft())
        dropped, self.dropped = self.dropped, 0
        if not (said or chunks or dropped):
            return None
        feedback: dict[str, Any] = dict(said or {})
        if chunks:
            feedback["chunks"] = chunks
        if dropped:
            feedback["dropped"] = dropped
        return feedback

    def take_artifacts(self) -> list[dict[str, Any]]:
        return self._artifacts or []


def _metric_name(name: object) -> str:
    if not isinstance(name, str) or not 0 < len(name) <= METRIC_NAME_CHARS:
        raise ValueError(f"the name of a metric has 1 to {METRIC_NAME_CHARS} characters: {name!r}")
    return name


def _metric_value(name: str, value: object) -> float:
    """Also of what can be made a float, as the numbers of numpy."""
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise ValueError(f"the metric {name} is not a finite number: {value!r}")
    return number

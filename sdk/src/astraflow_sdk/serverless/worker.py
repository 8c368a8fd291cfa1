"""A worker without a session: it takes pushed tasks and runs the handlers of a package."""

from __future__ import annotations

import hmac
import json
import os
import socket
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from astraflow_sdk.errors import ConfigurationError
from astraflow_sdk.host.handlers import Handler, load_handlers, marked_functions
from astraflow_sdk.nodes import info_of
from astraflow_sdk.serverless.attempt import ServerlessAttempt, end_process
from astraflow_sdk.serverless.envelope import BadEnvelope, PushedTask, origin_of, read_envelope

if TYPE_CHECKING:
    from astraflow_sdk.serverless.asgi import AsgiWorker

SECRET_HEADER = "x-astraflow-pool-secret"  # noqa: S105 - the name of a header
STATUSES = {"completed": 200, "ignored": 200, "unreachable": 503}
"""A queue delivers again what is not answered with 2xx: only what nobody could report is worth that."""


@dataclass(frozen=True)
class PushReply:
    """The answer to a push."""

    status: int
    body: bytes
    content_type: str = "application/json"


class ServerlessWorker:
    """Use from any number of threads: each call of `handle` is one attempt."""

    def __init__(
        self,
        handlers: Mapping[str, Handler] | Iterable[Callable[..., Any]],
        *,
        schedulers: Iterable[str],
        tenants: Iterable[str] = ("default",),
        secret: str = "",
        exit_process: Callable[[], None] = end_process,
    ) -> None:
        """`handlers`: functions with `@node`. `schedulers`: the addresses that it reports to; pushes that name another
        are refused. `secret`: the shared secret of the pool.

        Raises: ConfigurationError.
        """
        self._handlers = _by_type(handlers)
        self._schedulers = tuple(schedulers)
        self._tenants = frozenset(tenants)
        self._secret = secret
        self._exit_process = exit_process
        if not self._schedulers or None in map(origin_of, self._schedulers):
            raise ConfigurationError("schedulers: name at least one http:// or https:// address")

    @classmethod
    def of_package(cls, folder: str, **settings: Any) -> ServerlessWorker:
        """All node types of the package in a folder: those of its manifest, and its functions with `@node`."""
        place = os.path.abspath(folder)
        handlers = load_handlers(place)
        for _, function in marked_functions(place):
            info = info_of(function)
            assert info is not None
            handlers.setdefault(info.type, Handler(function))
        return cls(handlers, **settings)

    @property
    def node_types(self) -> list[str]:
        return sorted(self._handlers)

    def handle(self, body: bytes, headers: Mapping[str, str]) -> PushReply:
        """Run one pushed attempt to its end, in this thread."""
        try:
            envelope = self.accept(body, headers)
        except BadEnvelope as refused:
            return reply_of(refused)
        return self.run(envelope)

    def accept(self, body: bytes, headers: Mapping[str, str]) -> PushedTask:
        """Check a push. Raises: BadEnvelope."""
        if self._secret:
            given = {name.lower(): value for name, value in headers.items()}
            told = given.get(SECRET_HEADER, "")
            if not hmac.compare_digest(told.encode(), self._secret.encode()):
                raise BadEnvelope(401, "the secret of the pool is missing or wrong")
        return read_envelope(body, self._tenants, self._schedulers)

    def run(self, envelope: PushedTask) -> PushReply:
        """Run an attempt that was accepted."""
        worker_id = f"{socket.gethostname()[:64]}-{os.getpid()}-{uuid.uuid4().hex}"
        handler = self._handlers.get(envelope.node_type)
        attempt = ServerlessAttempt(envelope, handler, worker_id, self._exit_process)
        ended = attempt.run()
        return PushReply(STATUSES[ended], json.dumps({"status": ended}).encode())

    def asgi(self, *, max_parallel: int = 32, background: bool = False) -> AsgiWorker:
        """An ASGI application. `background`: answer 202 at once and run afterwards, where the platform lets a process
        work between requests; else the answer comes when the attempt has ended."""
        from astraflow_sdk.serverless.asgi import AsgiWorker

        return AsgiWorker(self, max_parallel=max_parallel, background=background)


def reply_of(refused: BadEnvelope) -> PushReply:
    return PushReply(refused.status, json.dumps({"error": str(refused)}).encode())


def _by_type(
    handlers: Mapping[str, Handler] | Iterable[Callable[..., Any]],
) -> dict[str, Handler]:
    if isinstance(handlers, Mapping):
        return dict(handlers)
    found: dict[str, Handler] = {}
    for function in handlers:
        info = info_of(function)
        if info is None:
            name = getattr(function, "__name__", str(function))
            raise ConfigurationError(f"not a node: {name}; mark it with @node")
        found[info.type] = Handler(function)
    return found

"""The scheduler process, from its start to its end: one port for people, programs and workers.

It responds from the start, with 503 until it is ready: a probe must tell a scheduler that waits from one that hangs. It
ends when it is stopped, or when its store cannot be used, and then with an exit status other than 0.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import logging
import os
import signal
import socket
from collections.abc import Callable, Coroutine, Iterator
from typing import Final

import uvicorn

from astraflow.api.served import Deployment, Origins, Served, open_served
from astraflow.api.server import server_config
from astraflow.api.worker_socket import socket_class
from astraflow.clock import Clock, SystemClock
from astraflow.config import SchedulerSettings, Secret
from astraflow.observe.loop_watchdog import watched_loop
from astraflow.observe.metrics import Metrics
from astraflow.observe.service_notification import ServiceManager, reporting
from astraflow.observe.spans import open_span_export
from astraflow.scheduler.writer import Reached, pass_by
from astraflow.store import is_shared, open_store
from astraflow.tls.contexts import ServerTls

_log: Final = logging.getLogger(__name__)


class _Server(uvicorn.Server):
    """uvicorn without its own signal handlers: signals belong to the process."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


async def serve(
    settings: SchedulerSettings,
    sock: socket.socket,
    *,
    token: Secret | None,
    secret: Secret,
    on_ready: Callable[[str], None],
    worker_token: Secret | None = None,
    stop: asyncio.Event | None = None,
    clock: Clock | None = None,
    reached: Reached = pass_by,
) -> None:
    """Serve until SIGTERM or SIGINT; with a `stop` until that, and signals are the caller's.

    Raises:
        StoreError: the store cannot be used.
    """
    clock = clock or SystemClock()
    manager = ServiceManager.take_from(os.environ)
    tls = _tls_of(settings)
    spans = open_span_export(
        "astraflow-scheduler", f"{socket.gethostname()}-{os.getpid()}", settings.otlp_endpoint
    )
    store = open_store(settings.store_url, ttl_s=settings.shard_lease_ms / 1000)
    origins = Origins(_url_origin(sock, tls), _node_origin(sock, tls))
    deployment = Deployment(
        settings, secret, token, worker_token, clock, Metrics(), spans, origins, reached
    )
    served = open_served(deployment, store)
    host, port = sock.getsockname()[:2]
    context = None if tls is None else tls.context
    sockets = socket_class(served.places)
    config = server_config(served.app, host, port, sockets=sockets, tls=context)
    server = _Server(config)
    watchdog_s = settings.node_watchdog_seconds if is_shared(settings.store_url) else 0
    watching = None if tls is None else asyncio.create_task(tls.watch())
    try:
        async with (
            reporting(manager, served.status),
            watched_loop(watchdog_s, served.is_serving, served.blame),
        ):
            if stop is not None:
                await _run(served, server, sock, stop, lambda: on_ready(_origin(sock, tls)))
                return
            stop = asyncio.Event()
            with _stopping(stop, manager):
                await _run(served, server, sock, stop, lambda: on_ready(_origin(sock, tls)))
    finally:
        if watching is not None:
            watching.cancel()
        if spans is not None:
            await asyncio.to_thread(spans.close)


def _tls_of(settings: SchedulerSettings) -> ServerTls | None:
    """Raises: Refused, when a file cannot be used."""
    certificate, key = settings.tls_cert_file, settings.tls_key_file
    if certificate is None or key is None:
        return None
    return ServerTls(certificate, key, settings.tls_client_ca_file)


def _url_origin(sock: socket.socket, tls: ServerTls | None) -> str:
    """What signed URLs begin with. A server that is bound to every address does not know its own: then they are
    relative, and the client knows the address that it uses."""
    address = ipaddress.ip_address(sock.getsockname()[0].partition("%")[0])
    return "" if address.is_unspecified else _origin(sock, tls)


def _node_origin(sock: socket.socket, tls: ServerTls | None) -> str:
    """Where other schedulers of the same store reach this one: a server that is bound to every address is reached by
    the name of its machine."""
    address = ipaddress.ip_address(sock.getsockname()[0].partition("%")[0])
    if not address.is_unspecified:
        return _origin(sock, tls)
    scheme = "http" if tls is None else "https"
    return f"{scheme}://{socket.gethostname()}:{sock.getsockname()[1]}"


def _origin(sock: socket.socket, tls: ServerTls | None) -> str:
    """Where we listen."""
    scheme = "http" if tls is None else "https"
    host, port = sock.getsockname()[:2]
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"


async def _run(
    served: Served,
    server: uvicorn.Server,
    sock: socket.socket,
    stop: asyncio.Event,
    on_ready: Callable[[], None],
) -> None:
    serving = asyncio.create_task(served.run())
    listening = asyncio.create_task(server.serve(sockets=[sock]))
    try:
        if await _comes_first(served.ready.wait(), serving, stop):
            on_ready()
            await _comes_first(stop.wait(), serving, stop)
    finally:
        if not serving.done():
            await served.leave()
        server.should_exit = True
        served.end_streams()
        await listening
        serving.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await serving


async def _comes_first(
    wanted: Coroutine[None, None, bool], serving: asyncio.Task[None], stop: asyncio.Event
) -> bool:
    """Wait for something, the end of serving, or the stop event; True if it was the first."""
    waiting = asyncio.create_task(wanted)
    stopping = asyncio.create_task(stop.wait())
    try:
        await asyncio.wait((waiting, stopping, serving), return_when=asyncio.FIRST_COMPLETED)
        return waiting.done() and not stop.is_set()
    finally:
        waiting.cancel()
        stopping.cancel()


@contextlib.contextmanager
def _stopping(stop: asyncio.Event, manager: ServiceManager) -> Iterator[None]:
    loop = asyncio.get_running_loop()

    def on_signal() -> None:
        manager.stopping()
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, on_signal)
    try:
        yield
    finally:
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(number)

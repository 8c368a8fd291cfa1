"""The metrics of a worker, served on a port of its own if one is configured.

The page needs no token, so it listens on the loopback interface by default; it contains node types and counts, never
parameters, results or secrets.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Final

from astraflow.core import errors
from astraflow.core.protocol import control, limits
from astraflow.observe.metrics import WorkerMetrics
from astraflow.worker.hosts import HostPool

READ_TIMEOUT_S: Final = 5.0
MAX_HEAD_BYTES: Final = 8 * 1024
CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"


def watch_attempts(metrics: WorkerMetrics, working: Callable[[], int], pool: HostPool) -> None:
    """Show how many attempts are held, and how many hosts there are."""
    metrics.inflight.follow(lambda: {(): float(working())})
    metrics.hosts.follow(lambda: {(): float(pool.stats().hosts)})


def count_heartbeat(metrics: WorkerMetrics, told: control.HeartbeatMetrics) -> None:
    """Count a heartbeat, and whether it makes the scheduler send nothing new."""
    metrics.heartbeats_sent.add()
    if told.mem_pct >= limits.PRESSED_MEM_PCT or told.disk_pct >= limits.PRESSED_DISK_PCT:
        metrics.heartbeats_degraded.add()


def watch_resources(metrics: WorkerMetrics, read: Callable[[], control.ResourceMetrics]) -> None:
    """Show what heartbeats tell of resources."""
    metrics.resource_bytes.follow(
        lambda: {
            ("disk",): float(read().disk_bytes_in_use),
            ("memory",): float(read().mem_bytes_in_use),
        }
    )
    metrics.resource_sessions.follow(lambda: {(): float(read().sessions_active)})
    metrics.resource_candidates.follow(lambda: {(): float(read().eviction_candidates)})
    metrics.resource_gc_seconds.follow(lambda: {(): read().last_gc_seconds})


@asynccontextmanager
async def serve_metrics(
    metrics: WorkerMetrics, host: str, port: int | None
) -> AsyncIterator[int | None]:
    """Answer `GET /metrics` until the block ends; gives the port. Without a port, nothing is served.

    Raises:
        Refused: the port is taken.
    """
    if port is None:
        yield None
        return

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(READ_TIMEOUT_S):
                head = await reader.readuntil(b"\r\n\r\n")
            status, body = _page(head, metrics)
            lines = (
                f"HTTP/1.1 {status}",
                f"content-type: {CONTENT_TYPE}",
                f"content-length: {len(body)}",
                "connection: close",
            )
            writer.write("\r\n".join((*lines, "", "")).encode() + body)
            async with asyncio.timeout(READ_TIMEOUT_S):
                await writer.drain()
        except (TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, OSError):
            pass  # whoever asked did not ask properly, or has gone away
        finally:
            writer.close()

    try:
        server = await asyncio.start_server(answer, host, port, limit=MAX_HEAD_BYTES)
    except OSError as error:
        raise errors.Refused(
            errors.CONFIG_INVALID, f"Cannot listen on {host}:{port}: {error.strerror}",
            detail={"hint": "choose another port for metrics: ASTRA_WORKER_METRICS_PORT"},
            pointer="/metrics_port",
        ) from error  # fmt: skip
    async with server:
        yield server.sockets[0].getsockname()[1]


def _page(head: bytes, metrics: WorkerMetrics) -> tuple[str, bytes]:
    method, _, rest = head.partition(b" ")
    path = rest.partition(b" ")[0].partition(b"?")[0]
    if path not in (b"/metrics", b"/healthz"):
        return "404 Not Found", b"not found; use /metrics or /healthz\n"
    if method != b"GET":
        return "405 Method Not Allowed", b"method not allowed; use GET\n"
    return "200 OK", metrics.text() if path == b"/metrics" else b"ok\n"

from __future__ import annotations

import asyncio
import socket

import msgspec
import pytest

from astraflow.core import errors
from astraflow.core.agent.held_attempts import HeldAttempts
from astraflow.core.ids import RunId, TaskId
from astraflow.core.protocol import business, control, limits
from astraflow.observe.metrics import WorkerMetrics
from astraflow.worker.hosts import HostStats
from astraflow.worker.metrics import count_heartbeat, serve_metrics, watch_attempts

DISPATCH = business.Dispatch(
    RunId("run"), TaskId("run.0"), 1, 0, "node", "core.noop", business.PackageId("core", "1.0.0"),
    msgspec.Raw(b"{}"), business.LeaseGrant(30_000, "since"),
)  # fmt: skip


async def asked(request: bytes) -> bytes:
    """What the page answers to this request."""
    metrics = WorkerMetrics()
    metrics.heartbeats_sent.add()
    async with serve_metrics(metrics, "127.0.0.1", 0) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(request)
        answer = await asyncio.wait_for(reader.read(), 20)
        writer.close()
        return answer


class Pool:
    """A pool with three hosts."""

    def stats(self) -> HostStats:
        return HostStats(3, 0, 0, 0, 3, 0, {})


def test_attempts_and_hosts_are_shown() -> None:
    attempts, metrics = HeldAttempts(4), WorkerMetrics()
    watch_attempts(metrics, lambda: len(attempts.working()), Pool())  # type: ignore[arg-type]
    attempts.offer(DISPATCH, 0.0, 0.0)
    assert metrics.inflight.value() == 1
    assert metrics.hosts.value() == 3


async def test_the_page_shows_the_numbers() -> None:
    answer = await asked(b"GET /metrics HTTP/1.1\r\nhost: x\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 200 OK\r\n")
    assert b"heartbeat_sent_total 1.0" in answer


async def test_the_page_says_that_the_worker_is_there() -> None:
    assert (await asked(b"GET /healthz HTTP/1.1\r\n\r\n")).endswith(b"ok\n")


async def test_there_is_no_other_page_and_none_can_be_written() -> None:
    assert (await asked(b"GET / HTTP/1.1\r\n\r\n")).startswith(b"HTTP/1.1 404 ")
    assert (await asked(b"POST /metrics HTTP/1.1\r\n\r\n")).startswith(b"HTTP/1.1 405 ")


async def test_what_does_not_ask_properly_is_hung_up_on() -> None:
    assert await asked(b"x" * 20_000) == b""


async def test_without_a_port_nothing_listens() -> None:
    async with serve_metrics(WorkerMetrics(), "127.0.0.1", None) as port:
        assert port is None


async def test_a_port_that_is_taken_is_a_wrong_setting() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(errors.Refused) as refused:
        async with serve_metrics(WorkerMetrics(), "127.0.0.1", taken.getsockname()[1]):
            raise AssertionError("it was taken")
    assert refused.value.pointer == "/metrics_port"


@pytest.mark.parametrize(
    ("told", "is_degraded"),
    [
        (control.HeartbeatMetrics(), False),
        (control.HeartbeatMetrics(mem_pct=limits.PRESSED_MEM_PCT - 1), False),
        (control.HeartbeatMetrics(mem_pct=limits.PRESSED_MEM_PCT), True),
        (control.HeartbeatMetrics(disk_pct=limits.PRESSED_DISK_PCT), True),
    ],
)
def test_a_heartbeat_that_stops_new_work_is_counted(
    told: control.HeartbeatMetrics, is_degraded: bool
) -> None:
    metrics = WorkerMetrics()
    count_heartbeat(metrics, told)
    assert metrics.heartbeats_sent.value() == 1
    assert metrics.heartbeats_degraded.value() == is_degraded

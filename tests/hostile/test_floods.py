"""Peers that send and never read, or send without end: memory stays bounded, and others are served meanwhile."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.hostile.foreign import Flood, Foreign, echo, working
from tests.processes.system import System, running
from tests.rawsocket import PING, frame, masked

MIB = 1024**2
GROWTH_MIB = 48.0
"""More than the bounds of the connections of a test together, and far less than what is sent."""
RUNS = 10


@pytest.fixture
def server(tmp_path: Path) -> Iterator[System]:
    with running(tmp_path, heartbeat_ms=1000) as server:
        yield server


async def serve_runs(server: System, worker: Foreign) -> None:
    """Some runs end, and their worker is online all the while."""

    def has_ended(run_id: str) -> bool:
        assert server.rest.worker(worker.name)["status"] == "online"
        return server.rest.run_status(run_id) == "succeeded"

    for _ in range(RUNS):
        run_id = await asyncio.to_thread(server.rest.submit, echo())
        await asyncio.to_thread(server.until, partial(has_ended, run_id))
        assert await asyncio.to_thread(server.rest.status, "/healthz") == 200
    assert len(worker.accepts) == 1, "it never had to come back"


def test_pings_of_a_stranger_that_never_reads_cost_no_memory(server: System) -> None:
    before = server.scheduler.rss_mib
    floods = [Flood(server.port) for _ in range(4)]
    ping = masked(b"x" * 125, PING) * 1000
    try:
        threads = [threading.Thread(target=flood.pour, args=(ping, 32 * MIB)) for flood in floods]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sum(flood.sent for flood in floods) > 16 * MIB
        assert server.scheduler.rss_mib - before < GROWTH_MIB
    finally:
        for flood in floods:
            flood.close()


async def test_answers_that_are_never_read_stop_the_reading_and_end_the_connection(
    server: System,
) -> None:
    """Each frame asks for an answer several times its size, on a connection that takes none."""

    before = server.scheduler.rss_mib
    flood = Flood(server.port, "deaf")
    try:
        asking = masked(frame("deaf", "control.unknown", {}, ack={"request": True})) * 200
        assert not flood.pour(asking, 200 * MIB), "the scheduler read on without an end"
        assert server.scheduler.rss_mib - before < GROWTH_MIB
        async with working(server.port, "innocent") as innocent:
            await serve_runs(server, innocent)
            await asyncio.to_thread(server.until, flood.is_closed)
            assert len(innocent.accepts) == 1
        assert server.scheduler.rss_mib - before < GROWTH_MIB
    finally:
        flood.close()


async def test_a_worker_that_floods_delays_nobody(server: System) -> None:
    """Cheap frames as fast as they are taken, of several workers: another's runs end, and it is never missed."""
    kinds = {
        "acks": ("control.ack", {"ack_seq": 2**40, "ack_bitmap": "0", "recv_window": 256}),
        "unknown": ("control.unknown", {}),
        "errors": ("control.error", {"for": "x", "code": "E"}),
    }
    floods = {name: Flood(server.port, name) for name in kinds}
    threads = [
        threading.Thread(target=flood.pour, args=(masked(frame(name, *kinds[name])) * 500, 1 << 40))
        for name, flood in floods.items()
    ]
    before = server.scheduler.rss_mib

    try:
        async with working(server.port, "innocent") as innocent:
            for thread in threads:
                thread.start()
            await serve_runs(server, innocent)
            assert all(thread.is_alive() for thread in threads), "the flood was on to the end"
    finally:
        for flood in floods.values():
            flood.end()
        for thread in threads:
            if thread.ident is not None:
                thread.join()
        for flood in floods.values():
            flood.close()
    assert all(flood.sent > MIB for flood in floods.values())
    assert server.scheduler.rss_mib - before < GROWTH_MIB


async def test_what_was_sent_while_the_scheduler_stood_still_is_read_before_anything_expires(
    server: System,
) -> None:
    """Frozen for longer than three heartbeats take: its workers beat all the while, and none is lost."""

    async with (
        working(server.port, "one", beat_s=0.2) as one,
        working(server.port, "two", beat_s=0.2) as two,
    ):
        await serve_runs(server, one)
        with server.scheduler.frozen():
            await asyncio.sleep(4.0)  # of which three heartbeats are three
        await serve_runs(server, one)
        assert (len(one.accepts), len(two.accepts)) == (1, 1)
        assert (await asyncio.to_thread(server.rest.worker, "two"))["status"] == "online"
    assert "is lost" not in server.scheduler.said()

"""Peers that send and never read, or send without end: memory stays bounded, and others are served meanwhile."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.hostile.foreign import Flood, Foreign, frame, masked, working
from tests.hostile.server import Server, running
from tests.rawsocket import PING

MIB = 1024**2
GROWTH_MIB = 48.0
"""More than the bounds of the connections of a test together, and far less than what is sent."""
RUNS = 10


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with running(tmp_path) as server:
        yield server


async def serve_runs(server: Server, worker: Foreign) -> None:
    """Some runs end, and their worker is online all the while."""

    def has_ended(run_id: str) -> bool:
        assert server.worker_status(worker.name) == "online"
        return server.run_status(run_id) == "succeeded"

    for _ in range(RUNS):
        run_id = await asyncio.to_thread(server.submit)
        await asyncio.to_thread(server.until, partial(has_ended, run_id))
        assert await asyncio.to_thread(server.status, "/healthz") == 200
    assert len(worker.accepts) == 1, "it never had to come back"


def test_pings_of_a_stranger_that_never_reads_cost_no_memory(server: Server) -> None:
    before = server.rss_mib
    floods = [Flood(server.port) for _ in range(4)]
    ping = masked(b"x" * 125, PING) * 1000
    try:
        threads = [threading.Thread(target=flood.pour, args=(ping, 32 * MIB)) for flood in floods]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sum(flood.sent for flood in floods) > 16 * MIB
        assert server.rss_mib - before < GROWTH_MIB
    finally:
        for flood in floods:
            flood.close()


def test_answers_that_are_never_read_stop_the_reading_and_end_the_connection(
    server: Server,
) -> None:
    """Each frame asks for an answer several times its size, on a connection that takes none."""

    async def scene() -> None:
        async with working(server.port, "innocent") as innocent:
            await serve_runs(server, innocent)
            await asyncio.to_thread(server.until, flood.is_closed)
            assert len(innocent.accepts) == 1

    before = server.rss_mib
    flood = Flood(server.port, "deaf")
    try:
        asking = masked(frame("deaf", "control.unknown", {}, ack={"request": True})) * 200
        assert not flood.pour(asking, 200 * MIB), "the scheduler read on without an end"
        assert server.rss_mib - before < GROWTH_MIB
        asyncio.run(scene())
        assert server.rss_mib - before < GROWTH_MIB
    finally:
        flood.close()


def test_a_worker_that_floods_delays_nobody(server: Server) -> None:
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
    before = server.rss_mib

    async def scene() -> None:
        async with working(server.port, "innocent") as innocent:
            for thread in threads:
                thread.start()
            await serve_runs(server, innocent)
            assert all(thread.is_alive() for thread in threads), "the flood was on to the end"

    try:
        asyncio.run(scene())
    finally:
        for flood in floods.values():
            flood.end()
        for thread in threads:
            if thread.ident is not None:
                thread.join()
        for flood in floods.values():
            flood.close()
    assert all(flood.sent > MIB for flood in floods.values())
    assert server.rss_mib - before < GROWTH_MIB


def test_what_was_sent_while_the_scheduler_stood_still_is_read_before_anything_expires(
    server: Server,
) -> None:
    """Frozen for longer than three heartbeats take: its workers beat all the while, and none is lost."""

    async def scene() -> None:
        async with (
            working(server.port, "one", beat_s=0.2) as one,
            working(server.port, "two", beat_s=0.2) as two,
        ):
            await serve_runs(server, one)
            server.freeze()
            try:
                await asyncio.sleep(4.0)  # of which three heartbeats are three
            finally:
                server.thaw()
            await serve_runs(server, one)
            assert (len(one.accepts), len(two.accepts)) == (1, 1)
            assert await asyncio.to_thread(server.worker_status, "two") == "online"

    asyncio.run(scene())
    assert "is lost" not in server.log

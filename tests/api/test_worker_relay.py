"""Connections of workers that one node passes on to another, on real sockets."""

from __future__ import annotations

import asyncio
import gc
import hashlib
import json
import os
import ssl
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import cast

import pytest

from astraflow.api import worker_relay, worker_socket
from astraflow.api.node_connections import AHEAD_BYTES
from astraflow.api.node_signatures import NodeSignatures
from astraflow.api.relayed_worker import RELAY_PATH, LaneOwner, RelayedWorker, relay_headers
from astraflow.clock import SystemClock
from astraflow.core.protocol.limits import MAX_FRAME_BYTES
from astraflow.core.security.certificates import PeerCertificate
from astraflow.core.security.policy import Role
from tests.api.relay_rig import (
    FIRST,
    MOVED,
    READ_BYTES,
    TRY_LATER,
    Tls,
    Watched,
    echo,
    ended,
    idle,
    node,
    owner,
    pause,
    plain,
    taken,
    worker,
)
from tests.api.rig import serving
from tests.api.scripted import ScriptedWorker, connected, token_of
from tests.e2e.old_worker import OldWorker
from tests.processes.waiting import until_seen
from tests.rawsocket import (
    BINARY,
    CLOSE,
    PING,
    PONG,
    TEXT,
    RawSocket,
    frame,
    hello,
    masked,
    upgrade_request,
)

pytestmark = pytest.mark.usefixtures("each_loop")

SESSIONS = 500

# --- a worker that is passed on is served as any other ---


async def test_a_worker_works_for_the_owner_over_another_node() -> None:
    async with serving() as rig:
        watched = Watched(rig.scheduler)
        async with (
            node(watched) as owns,
            node(LaneOwner(1, owns.url)) as passes,
            connected(passes.port, "w1", "default") as working,
        ):
            assert (passes.relayed(), owns.relayed()) == (1, 0)
            run_id = await rig.submit()
            for task in (await working.task(), await working.task()):
                task.succeed()
            await rig.status(run_id, "succeeded")
            ((address, certificate),) = watched.seen
            local = working._socket._writer.get_extra_info("sockname")
            assert address == f"127.0.0.1:{local[1]}", "where the worker is, and not the node"
            assert certificate is None
        await until_seen(lambda: passes.relayed() == 0)


async def test_a_worker_that_is_refused_is_told_why() -> None:
    wrong = frame("w-1", "control.handshake", hello("w-1", "wrong"))
    async with (
        serving() as rig,
        node(rig.scheduler) as owns,
        node(LaneOwner(1, owns.url)) as passes,
        worker(passes.port, wrong) as refused,
    ):
        frames, code = await refused.until_close()
        assert frames[-1]["payload"]["code"] == "E.AUTH.INVALID_TOKEN"
        assert code == 1008


async def test_a_worker_of_protocol_1_is_passed_on_where_others_are_sent_on() -> None:
    async with (
        serving() as rig,
        node(rig.scheduler) as owns,
        node(LaneOwner(1, owns.url)) as passes,
    ):
        passes.told = MOVED
        for subprotocol in ("astraflow.v1", None):
            async with OldWorker(passes.port, f"old-{subprotocol}", subprotocol) as old:
                await old.connect()
                auth = {"mode": "token", "token": token_of(Role.WORKER)}
                asked = old.say("handshake", {"protocol": 1, "auth": auth}, ack={"request": True})
                await old.until_acked(asked)
                assert passes.relayed() == 1
            await until_seen(lambda: passes.relayed() == 0)
        async with worker(passes.port) as sent_on:
            opcode, payload = await sent_on.receive()
            assert (opcode, payload) == (TEXT, MOVED)
            assert await sent_on.until_close() == ([], 1008)


async def test_a_message_beyond_the_limit_is_refused_by_the_owner() -> None:
    async with (
        serving() as rig,
        node(rig.scheduler) as owns,
        node(LaneOwner(1, owns.url)) as passes,
        connected(passes.port, "w1", "default") as working,
    ):
        working._socket.send(bytes(16 * 1024 * 1024))
        await until_seen(lambda: passes.relayed() == 0)
        items = (await rig.get("/api/v1/workers")).json()["items"]
        assert [one["workerId"] for one in items] == ["w1"]


async def test_many_sessions_open_and_close_and_leave_nothing() -> None:
    async with (
        serving() as rig,
        node(rig.scheduler) as owns,
        node(LaneOwner(1, owns.url)) as passes,
    ):
        for _ in range(SESSIONS // 50):
            async with AsyncExitStack() as stack:
                workers: list[ScriptedWorker] = [
                    await stack.enter_async_context(connected(passes.port, f"w{number}", "default"))
                    for number in range(50)
                ]
                assert passes.relayed() == len(workers)
            await until_seen(lambda: passes.relayed() == 0)
        gc.collect()
        left = [one for one in gc.get_objects() if isinstance(one, worker_relay._RelayEnd)]
        assert left == []
        assert passes.relays._timer is None


# --- nobody else passes workers on ---


async def test_nobody_but_a_node_can_pass_a_worker_on() -> None:
    async with serving() as rig:
        watched = Watched(rig.scheduler)
        stranger = NodeSignatures([b"a secret that nobody shares"], SystemClock())
        who = RelayedWorker("10.0.0.1:1", PeerCertificate("default", "w-1", "ab" * 32, 2e12))
        async with node(watched) as owns:
            for path in (RELAY_PATH.decode(), f"{RELAY_PATH.decode()}?x=1"):
                for headers in ([], relay_headers(stranger, who)):
                    changed = {name.decode(): value.decode() for name, value in headers}
                    reader, writer = await asyncio.open_connection("127.0.0.1", owns.port)
                    writer.write(upgrade_request(owns.port, changed, path))
                    answer = await reader.read()
                    assert answer.startswith((b"HTTP/1.1 403", b"HTTP/1.1 404")), answer
                    writer.close()
            # Beside the path for nodes it says nothing.
            reader, writer = await asyncio.open_connection("127.0.0.1", owns.port)
            said = relay_headers(owns.signatures, who)
            changed = {name.decode(): value.decode() for name, value in said}
            writer.write(upgrade_request(owns.port, changed))
            assert b"101" in await reader.readuntil(b"\r\n\r\n")
            writer.write(masked(FIRST))
            await until_seen(lambda: watched.seen)
            ((address, certificate),) = watched.seen
            assert address != who.address
            assert certificate is None
            writer.close()


async def test_a_scheduler_alone_has_no_path_for_nodes() -> None:
    async with serving() as rig:
        signatures = NodeSignatures([b"a secret for tests only"], SystemClock())
        said = relay_headers(signatures, RelayedWorker("10.0.0.1:1"))
        changed = {name.decode(): value.decode() for name, value in said}
        answer = await rig.raw(upgrade_request(rig.port, changed, RELAY_PATH.decode()))
        assert answer.startswith(b"HTTP/1.1 404")


async def test_what_a_node_passes_on_is_not_passed_on_again() -> None:
    async with (
        serving() as rig,
        node(rig.scheduler) as owns,
        node(LaneOwner(1, owns.url)) as second,
        node(LaneOwner(1, second.url)) as first,
        worker(first.port) as lost,
    ):
        for told in (None, MOVED):
            second.told = told
            async with worker(first.port) as lost:
                assert await lost.until_close() == ([], TRY_LATER)
        assert second.relayed() == owns.relayed() == 0


async def test_the_certificate_that_counts_is_that_of_the_worker(tmp_path: Path) -> None:
    tls = Tls.made_in(tmp_path)
    async with serving() as rig:
        watched = Watched(rig.scheduler)
        async with (
            node(watched, tls) as owns,
            node(LaneOwner(1, owns.url), tls) as passes,
            worker(passes.port, tls=tls) as working,
        ):
            await until_seen(lambda: watched.seen)
            ((address, certificate),) = watched.seen
            raw = (tmp_path / "w-1.pem").read_text()
            fingerprint = hashlib.sha256(ssl.PEM_cert_to_DER_cert(raw)).hexdigest()
            assert isinstance(certificate, PeerCertificate)
            assert (certificate.tenant, certificate.worker_id) == ("default", "w-1")
            assert certificate.fingerprint == fingerprint
            local = working._writer.get_extra_info("sockname")
            assert address == f"127.0.0.1:{local[1]}"


async def test_a_certificate_is_not_passed_on_without_tls() -> None:
    async with node(None) as passes:
        transport = asyncio.Transport()
        certificate = PeerCertificate("default", "w-1", "ab" * 32, 2e12)
        who = RelayedWorker("127.0.0.1:1", certificate)
        unsafe = LaneOwner(1, "http://127.0.0.1:9")
        assert passes.relays.begin(unsafe, transport, who, None, b"") is False


# --- what is passed on ---


async def test_messages_pings_and_codes_pass_both_ways() -> None:
    got: list[tuple[int, bytes]] = []

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for _ in range(4):
            got.append(await taken(reader))
        writer.write(plain(b"beat", PING) + plain(b"hello"))
        got.append(await taken(reader))
        writer.write(plain((4321).to_bytes(2, "big"), CLOSE))
        got.append(await taken(reader))

    async with owner(handler) as there, node(there) as passes, worker(passes.port) as working:
        working.send(b"ping", PING)
        working.send(b"binary", BINARY)
        working.send(b"text")
        assert await working.receive() == (PING, b"beat")
        assert await working.receive() == (TEXT, b"hello")
        working.send(b"beat", PONG)
        assert await working.receive() == (CLOSE, (4321).to_bytes(2, "big"))
        working.send((1000).to_bytes(2, "big"), CLOSE)
        assert await working.receive() == (CLOSE, b"")
        await until_seen(lambda: passes.relayed() == 0)
    assert got == [
        (TEXT, FIRST),
        (PING, b"ping"),
        (BINARY, b"binary"),
        (TEXT, b"text"),
        (PONG, b"beat"),
        (CLOSE, (1000).to_bytes(2, "big")),
    ]


async def test_what_comes_with_the_first_message_follows_it() -> None:
    """In one piece with it, in the middle of a frame, and in fragments."""
    more = masked(b"x" * 1000, mask=b"abcd")
    begun, ended = masked(FIRST[:10], first=TEXT), masked(FIRST[10:], first=0x80)
    rows = [
        [masked(FIRST) + more[:500], more[500:]],
        [masked(FIRST), more],
        [begun + masked(b"p", PING) + ended, more],
        [bytes((one,)) for one in masked(FIRST) + more],
    ]
    async with owner(echo) as there, node(there) as passes:
        for pieces in rows:
            made = await RawSocket.open(passes.port)
            for piece in pieces:
                made._writer.write(piece)
                await asyncio.sleep(0)
            assert [await _text(made), await _text(made)] == [FIRST, b"x" * 1000]
            await made.close()


async def _text(made: RawSocket) -> bytes:
    """The next message; answers to pings before it are taken, too."""
    while (got := await made.receive())[0] != TEXT:
        assert got == (PONG, b"p")
    return got[1]


async def test_the_largest_messages_pass_whole() -> None:
    large = os.urandom(MAX_FRAME_BYTES)
    async with owner(echo) as there, node(there) as passes, worker(passes.port) as working:
        assert await working.receive() == (TEXT, FIRST)
        for payload in (large, bytes(4 * MAX_FRAME_BYTES)):
            sending = asyncio.create_task(_send(working, payload))
            assert await working.receive() == (TEXT, payload)
            await sending


async def _send(working: RawSocket, payload: bytes) -> None:
    working.send(payload)
    await working._writer.drain()


# --- those that do not read ---


@pytest.fixture(params=["plain", "TLS"])
def tls(request: pytest.FixtureRequest, tmp_path: Path) -> Tls | None:
    return None if request.param == "plain" else Tls.made_in(tmp_path)


async def test_a_worker_that_does_not_read_stops_the_owner_and_is_disconnected(
    monkeypatch: pytest.MonkeyPatch, tls: Tls | None
) -> None:
    monkeypatch.setattr(worker_relay, "UNREAD_S", 0.5)
    most: list[int] = []
    wrote = 0

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal wrote
        while True:
            writer.write(bytes(64 * 1024))
            wrote += 64 * 1024
            await writer.drain()

    async with owner(handler, tls=tls) as there, node(there, tls) as passes:
        async with worker(passes.port, tls=tls) as deaf:
            pause(deaf._writer)
            await until_seen(lambda: passes.relayed() == 1)
            await until_seen(partial(ended, passes, most))
        assert max(most) <= AHEAD_BYTES + READ_BYTES
        assert wrote < 64 * 1024**2, "the owner was not read, either"


async def test_an_owner_that_does_not_read_stops_the_worker_and_ends_the_relay(
    monkeypatch: pytest.MonkeyPatch, tls: Tls | None
) -> None:
    monkeypatch.setattr(worker_relay, "UNREAD_S", 0.5)

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        pause(writer)
        await asyncio.Event().wait()

    most: list[int] = []
    async with (
        owner(handler, tls=tls) as there,
        node(there, tls) as passes,
        worker(passes.port, tls=tls) as working,
    ):
        await until_seen(lambda: passes.relayed() == 1)
        pouring = asyncio.create_task(_pour(working))
        await until_seen(partial(ended, passes, most))
        await pouring
    assert max(most) <= AHEAD_BYTES + READ_BYTES


async def _pour(working: RawSocket) -> None:
    try:
        while not working._writer.is_closing():
            await _send(working, bytes(256 * 1024))
    except (ConnectionError, ssl.SSLError):
        return


async def test_a_worker_that_floods_keeps_no_other_from_being_passed_on(tls: Tls | None) -> None:
    async with (
        owner(echo, tls=tls) as there,
        node(there, tls) as passes,
        worker(passes.port, tls=tls) as floods,
        worker(passes.port, tls=tls) as working,
    ):
        pouring = [asyncio.create_task(_pour(floods)), asyncio.create_task(_drain(floods))]
        assert await working.receive() == (TEXT, FIRST)
        for number in range(20):
            working.send(b"%d" % number)
            assert await working.receive() == (TEXT, b"%d" % number)
        assert not any(one.done() for one in pouring), "the flood was on to the end"
        floods._writer.transport.abort()
        await asyncio.gather(*pouring)


async def test_of_one_worker_no_more_than_its_share_is_passed_on_in_a_turn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    passed: list[int] = []  # since the last turn
    write = worker_relay._OwnerEnd.write

    def counted(end: worker_relay._RelayEnd, raw: bytes) -> None:
        passed[-1] += len(raw)
        write(cast("worker_relay._OwnerEnd", end), raw)

    async def watch() -> None:
        while True:
            passed.append(0)
            await asyncio.sleep(0)

    monkeypatch.setattr(worker_relay._OwnerEnd, "write", counted)
    async with owner(_swallow) as there, node(there) as passes, worker(passes.port) as floods:
        passed.append(0)
        watching = asyncio.create_task(watch())
        pouring = asyncio.create_task(_pour(floods))
        await until_seen(lambda: sum(passed) > 64 * 1024**2)
        most = max(passed)
        watching.cancel()
        floods._writer.transport.abort()
        await pouring
    assert most <= worker_relay.TURN_BYTES + READ_BYTES


async def _swallow(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while await reader.read(1024 * 1024):
        pass


async def _drain(working: RawSocket) -> None:
    while (await working.receive())[0] != CLOSE:
        pass


# --- how a relay ends ---


async def test_an_end_that_is_closed_closes_the_other() -> None:
    async def leave(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await taken(reader)
        writer.write(plain(b"the last word"))

    async def die(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await taken(reader)
        writer.transport.abort()

    for handler, wanted in ((leave, [(TEXT, b"the last word")]), (die, [])):
        async with owner(handler) as there, node(there) as passes, worker(passes.port) as working:
            got = [await working.receive() for _ in wanted]
            assert got == wanted
            assert await working.receive() == (CLOSE, b""), "without a code, as a broken connection"
            await until_seen(lambda passes=passes: passes.relayed() == 0)  # type: ignore[misc]


async def test_a_worker_that_closes_its_half_is_gone_for_the_owner() -> None:
    ended = asyncio.Event()

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert await taken(reader) == (TEXT, FIRST)
        assert await taken(reader) == (TEXT, b"the last word")
        assert await reader.read() == b""
        ended.set()

    async with owner(handler) as there, node(there) as passes, worker(passes.port) as working:
        working.send(b"the last word")
        working._writer.write_eof()
        await asyncio.wait_for(ended.wait(), 20)
        assert await working.receive() == (CLOSE, b"")
        await until_seen(lambda: passes.relayed() == 0)


async def test_nobody_waits_for_an_owner_that_is_none_any_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(worker_relay, "WATCH_EVERY_S", 0.02)
    async with owner(idle) as there, node(there) as passes, worker(passes.port) as working:
        await until_seen(lambda: passes.relayed() == 1)
        passes.is_owner = False
        assert await working.receive() == (CLOSE, b"")


async def test_a_node_that_ends_lets_its_workers_go() -> None:
    async with owner(idle) as there, node(there) as passes, worker(passes.port) as working:
        await until_seen(lambda: passes.relayed() == 1)
        passes.relays.close()
        assert await working.receive() == (CLOSE, b"")
        async with worker(passes.port) as late:
            assert await late.until_close() == ([], TRY_LATER)


async def test_an_owner_that_does_not_take_the_worker_makes_it_come_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(worker_relay, "CONNECT_TIMEOUT_S", 0.3)
    answers = [
        b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\n\r\n",
        b"HTTP/1.1 403 Forbidden\r\n\r\n",
        b"HTTP/1.1 404 Not Found\r\n\r\n",
        b"\0" * 20_000,
        b"HTTP/1.1 101",  # and no more
        b"",
    ]

    async def close(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """As the server does after a refusal."""

    for answer in answers:
        for handler in (close, idle):
            async with owner(handler, answer) as there, node(there) as passes:
                async with worker(passes.port) as refused:
                    assert await refused.until_close() == ([], TRY_LATER), answer
                await until_seen(lambda passes=passes: passes.relayed() == 0)  # type: ignore[misc]
    for url in ("http://127.0.0.1:9", "http://127.0.0.1:x", "http://"):
        async with node(LaneOwner(1, url)) as passes, worker(passes.port) as refused:
            assert await refused.until_close() == ([], TRY_LATER), url


async def test_a_worker_that_leaves_while_the_owner_is_asked_leaves_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(worker_relay, "CONNECT_TIMEOUT_S", 0.3)
    async with owner(idle, b"") as there, node(there) as passes:
        async with worker(passes.port):
            await until_seen(lambda: passes.relayed() == 1)
        await until_seen(lambda: passes.relayed() == 0)


async def test_no_more_are_passed_on_than_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_relay, "MAX_RELAYED", 2)
    async with owner(idle) as there, node(there) as passes, worker(passes.port):
        async with worker(passes.port):
            await until_seen(lambda: passes.relayed() == 2)
            async with worker(passes.port) as third:
                assert await third.until_close() == ([], TRY_LATER)
        await until_seen(lambda: passes.relayed() == 1)
        async with worker(passes.port):
            await until_seen(lambda: passes.relayed() == 2)


async def test_a_connection_that_never_says_whose_it_is_is_closed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(worker_socket, "FIRST_MESSAGE_S", 0.1)
    async with node(None) as passes:
        made = await RawSocket.open(passes.port)
        made.send(b"", PING)
        frames, code = await made.until_close()
        assert (frames, code) == ([], 1008)
        await made.close()


async def test_a_first_message_that_is_none_is_passed_to_the_owner_of_the_site() -> None:
    """Whoever serves what belongs to nobody says what is wrong with it."""
    async with (
        serving() as rig,
        node(rig.scheduler) as owns,
        node(LaneOwner(1, owns.url)) as passes,
    ):
        for raw in (b"{}", b"not json", json.dumps({"tenant": 1}).encode()):
            async with worker(passes.port, raw) as wrong:
                frames, code = await wrong.until_close()
                assert [one["payload"]["code"] for one in frames] == ["E.PROTOCOL.BAD_FRAME"]
                assert code in (1002, 1007)

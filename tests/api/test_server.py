"""What arrives at the socket before it is a request of anybody."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress

import pytest

from astraflow.api import requests, responses, server
from tests.api.rig import WAIT_S, definition, problem_of, serving

END = b"host: localhost\r\nconnection: close\r\n\r\n"


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/", 200),
        ("/nothing", 404),
        ("/api/v1", 404),
        ("/api/v1/runs/a/b/c/d", 404),
        ("//healthz", 200),
        ("/healthz/", 200),
        ("/%2e%2e/%2e%2e/etc/passwd", 404),
        ("/../../etc/passwd", 404),
        ("/api/v1/runs/..%2f..%2fx", 404),
        ("/api/v1/runs/%00", 400),
        ("/api/v1/runs/%0a", 400),
        ("/" + "x" * 8_000, 400),
        ("/api/v1/runs/" + "x" * 1_000, 404),
        ("/api/v1/runs/%f0%9f%98%80", 404),
        ("/api/v1/runs/%ff%fe", 404),
    ],
)
async def test_a_path_leads_somewhere_or_is_refused(path: str, status: int) -> None:
    async with serving() as rig:
        request = (
            f"GET {path} HTTP/1.1\r\nauthorization: Bearer token-of-default-admin\r\n".encode()
        )
        answer = await rig.raw(request + END)
        assert answer.startswith(b"HTTP/1.1 %d " % status), answer[:200]
        if status >= 400:
            assert b"content-type: application/problem+json" in answer


@pytest.mark.parametrize("method", ["PATCH", "PUT", "DELETE", "HEAD", "OPTIONS", "TRACE"])
async def test_a_method_that_a_path_does_not_take_is_told_which_it_takes(method: str) -> None:
    async with serving() as rig:
        answer = await rig.client.request(method, "/api/v1/runs")
        assert answer.status_code == 405
        assert answer.headers["allow"] == "GET, POST"
        if method != "HEAD":
            problem_of(answer, 405, "E.REQUEST.METHOD")
        nowhere = await rig.client.request(method, "/nothing")
        assert nowhere.status_code == 404


@pytest.mark.parametrize(
    "request_",
    [
        b"not http at all\r\n\r\n",
        b"GET / HTTP/9.9\r\n" + END,
        b"G\0T / HTTP/1.1\r\n" + END,
        b"GET / HTTP/1.1\r\nbad header\r\n" + END,
        b"GET / HTTP/1.1\r\nx: a\0b\r\n" + END,
        b"POST /api/v1/runs HTTP/1.1\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n" + END,
        b"POST /api/v1/runs HTTP/1.1\r\ncontent-length: 5\r\ncontent-length: 6\r\n" + END,
        b"POST /api/v1/runs HTTP/1.1\r\ncontent-length: -1\r\n" + END,
        b"POST /api/v1/runs HTTP/1.1\r\ntransfer-encoding: chunked\r\n" + END + b"zz\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    ],
)
async def test_what_is_not_http_is_refused_with_a_problem(request_: bytes) -> None:
    async with serving() as rig:
        answer = await rig.raw(request_)
        status = answer.split(b" ", 2)[1]
        assert status in (b"400", b"401"), answer[:200]
        assert b"application/problem+json" in answer
        assert (await rig.get("/healthz")).status_code == 200


async def test_smuggled_requests_are_not_answered() -> None:
    smuggled = (
        b"POST /api/v1/runs HTTP/1.1\r\nhost: localhost\r\ncontent-length: 4\r\n"
        b"transfer-encoding: chunked\r\n\r\n0\r\n\r\nGET /healthz HTTP/1.1\r\n" + END
    )

    async with serving() as rig:
        answer = await rig.raw(smuggled)
        assert answer.count(b"HTTP/1.1 ") == 1
        assert b'"status":"ok"' not in answer


@pytest.mark.parametrize(
    "head",
    [
        b"".join(b"x-%d: y\r\n" % place for place in range(1_000)),
        b"x: " + b"y" * 70_000 + b"\r\n",
        b"x-" + b"y" * 70_000 + b": z\r\n",
    ],
    ids=["many", "long value", "long name"],
)
async def test_a_head_that_is_too_large_is_refused(head: bytes) -> None:
    async with serving() as rig:
        answer = await rig.raw(b"GET /healthz HTTP/1.1\r\n" + head + END)
        assert answer.startswith(b"HTTP/1.1 413 ")
        assert answer.count(b"HTTP/1.1 ") == 1


async def test_a_url_that_does_not_end_is_refused() -> None:
    async with serving() as rig:
        answer = await rig.raw(b"GET /" + b"x" * 100_000 + b" HTTP/1.1\r\n" + END)
        assert answer.startswith(b"HTTP/1.1 413 ")


@pytest.mark.parametrize("begun", [b"", b"GET /healthz HTTP/1.1\r\nhost: loc"])
async def test_a_client_that_does_not_finish_its_head_is_hung_up_on(
    begun: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "HEAD_WAIT_S", 0.05)

    async with serving() as rig:
        reader, writer = await asyncio.open_connection("127.0.0.1", rig.port)
        writer.write(begun)
        with suppress(ConnectionResetError):
            assert await asyncio.wait_for(reader.read(), WAIT_S) == b""
        writer.close()
        assert (await rig.get("/healthz")).status_code == 200


async def test_a_client_that_hangs_up_in_its_body_harms_nobody() -> None:
    async with serving() as rig:
        _, writer = await asyncio.open_connection("127.0.0.1", rig.port)
        writer.write(
            b"POST /api/v1/runs HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
            b"authorization: Bearer token-of-default-admin\r\ncontent-length: 100\r\n\r\n{"
        )
        await writer.drain()
        writer.close()
        await writer.wait_closed()
        assert (await rig.get("/healthz")).status_code == 200
        assert (await rig.get("/api/v1/runs")).json()["items"] == []


async def test_requests_on_one_connection_are_answered_in_order() -> None:
    async with serving() as rig:
        one = b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n"
        two = b"GET /readyz HTTP/1.1\r\n" + END
        answer = await rig.raw(one + two)
        assert answer.index(b'"ok"') < answer.index(b'"ready"')


async def test_more_connections_than_may_be_are_hung_up_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "MAX_CONNECTIONS", 1)

    async with serving() as rig:
        assert (await rig.get("/healthz")).status_code == 200  # its connection stays open
        reader, writer = await asyncio.open_connection("127.0.0.1", rig.port)
        with suppress(ConnectionResetError):
            assert await asyncio.wait_for(reader.read(), WAIT_S) == b""
        writer.close()
        assert (await rig.get("/healthz")).status_code == 200


async def test_a_large_answer_arrives_whole() -> None:
    async with serving() as rig:
        text = "x" * 3_000_000
        body = json.dumps({"workflow": definition(note=text)}).encode()
        headers = {"content-type": "application/json"}
        made = await rig.post("/api/v1/runs", content=body, headers=headers)
        shown = await rig.get(f"/api/v1/runs/{made.json()['runId']}/definition")
        assert shown.json()["note"] == text


async def test_a_large_answer_that_nobody_reads_is_given_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(responses, "STALL_S", 0.1)

    async with serving() as rig:
        text = "x" * 30_000_000
        body = json.dumps({"workflow": definition(note=text)}).encode()
        headers = {"content-type": "application/json"}
        run_id = (await rig.post("/api/v1/runs", content=body, headers=headers)).json()["runId"]
        reader, writer = await asyncio.open_connection("127.0.0.1", rig.port, limit=1024)
        writer.write(
            f"GET /api/v1/runs/{run_id}/definition HTTP/1.1\r\nhost: localhost\r\n"
            "authorization: Bearer token-of-default-admin\r\n\r\n".encode()
        )
        await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), WAIT_S)
        while rig.connections() > 1:
            await rig.get("/healthz")
        writer.close()


async def test_responses_do_not_tell_what_serves_them() -> None:
    async with serving() as rig:
        answer = await rig.get("/healthz")
        assert "server" not in answer.headers
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["cache-control"] == "no-store"


async def test_a_body_that_does_not_arrive_is_not_waited_for_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(requests, "BODY_WAIT_S", 0.05)

    async with serving() as rig:
        reader, writer = await asyncio.open_connection("127.0.0.1", rig.port)
        writer.write(
            b"POST /api/v1/runs HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
            b"authorization: Bearer token-of-default-admin\r\ncontent-length: 100\r\n\r\n{"
        )
        head = await asyncio.wait_for(reader.readuntil(b"\r\n"), WAIT_S)
        assert head.startswith(b"HTTP/1.1 400 ")
        writer.close()


class Wire:
    """A transport that notes what it is told to write."""

    def __init__(self) -> None:
        self.writes: list[bytes] = []
        self.is_closed = False

    def write(self, data: bytes) -> None:
        self.writes.append(data)

    def writelines(self, pieces: tuple[bytes, ...]) -> None:
        self.writes.append(b"|".join(pieces))

    def is_closing(self) -> bool:
        return self.is_closed

    def close(self) -> None:
        self.is_closed = True


class TestFirstWrite:
    def held(self) -> tuple[Wire, server.FirstWrite]:
        wire = Wire()
        return wire, server.FirstWrite(wire, asyncio.get_running_loop())  # type: ignore[arg-type]

    async def test_what_is_written_in_the_first_turn_leaves_together(self) -> None:
        wire, first = self.held()
        for data in (b"HTTP/1.1 200 OK\r\n\r\n", b"first", b"second"):
            first.write(data)
        assert wire.writes == []
        await asyncio.sleep(0)
        assert wire.writes == [b"HTTP/1.1 200 OK\r\n\r\nfirstsecond"]
        first.write(b"late")
        first.write(b"later")
        assert wire.writes[1:] == [b"late", b"later"]

    async def test_a_complete_response_does_not_wait_for_the_end_of_the_turn(self) -> None:
        wire, first = self.held()
        first.write(b"head")
        first.write(b"body")
        first.flush()
        assert wire.writes == [b"headbody"]
        await asyncio.sleep(0)
        assert wire.writes == [b"headbody"]

    async def test_what_was_held_leaves_before_the_connection_is_closed(self) -> None:
        wire, first = self.held()
        first.write(b"HTTP/1.1 200 OK\r\n\r\n")
        first.close()
        assert (wire.writes, wire.is_closed) == ([b"HTTP/1.1 200 OK\r\n\r\n"], True)

    async def test_a_large_body_is_not_copied(self) -> None:
        wire, first = self.held()
        first.write(b"head")
        first.write(bytes(server.JOINED_BYTES + 1))
        assert wire.writes == [b"head|" + bytes(server.JOINED_BYTES + 1)]

    async def test_an_interim_answer_is_no_head(self) -> None:
        wire, first = self.held()
        first.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        assert wire.writes == [b"HTTP/1.1 100 Continue\r\n\r\n"]
        first.write(b"head")
        first.write(b"body")
        first.flush()
        assert wire.writes[1:] == [b"headbody"]

    async def test_nothing_is_written_to_a_connection_that_is_closing(self) -> None:
        wire, first = self.held()
        first.write(b"head")
        wire.is_closed = True
        await asyncio.sleep(0)
        assert wire.writes == []


async def test_responses_to_requests_sent_at_once_keep_their_order() -> None:
    async with serving() as rig:
        reader, writer = await asyncio.open_connection("127.0.0.1", rig.port)
        for path in (b"/healthz", b"/nowhere", b"/healthz"):
            writer.write(b"GET %b HTTP/1.1\r\nhost: localhost\r\n\r\n" % path)
        statuses = []
        for _ in range(3):
            head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), WAIT_S)
            length = int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0])
            await reader.readexactly(length)
            statuses.append(head[9:12])
        assert statuses == [b"200", b"404", b"200"]
        writer.close()


async def test_a_client_that_waits_for_a_continue_is_told_to_go_on() -> None:
    async with serving() as rig:
        body = json.dumps({"workflow": definition()}).encode()
        head = (
            b"POST /api/v1/runs HTTP/1.1\r\nauthorization: Bearer token-of-default-admin\r\n"
            b"content-type: application/json\r\nexpect: 100-continue\r\ncontent-length: %d\r\n"
        )
        answer = await rig.raw(head % len(body) + END + body)
        interim, _, rest = answer.partition(b"\r\n\r\n")
        assert interim == b"HTTP/1.1 100 Continue"
        assert rest.startswith(b"HTTP/1.1 202 "), rest[:200]

"""Requests that two servers could read differently, and paths that lead out: on the socket of a real scheduler.

Behind each request stands another one. Where the first is ambiguous, it is refused and the second is never answered.
What `tests/api/test_server.py` sends to the application is not sent here again.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator

import pytest

from tests.processes.system import System, running

WAIT_S = 20.0
HOST = b"host: localhost\r\n"
SECOND = b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n"
CHUNKED = b"transfer-encoding: chunked\r\n"


def get(more: bytes = b"", target: bytes = b"/nothing", method: bytes = b"GET") -> bytes:
    return method + b" " + target + b" HTTP/1.1\r\n" + HOST + more + b"\r\n"


def post(more: bytes, body: bytes = b"") -> bytes:
    return get(more, b"/api/v1/runs", b"POST") + body


AMBIGUOUS = {
    "length and chunks": post(b"content-length: 4\r\n" + CHUNKED, b"0\r\n\r\n"),
    "chunks and length": post(CHUNKED + b"content-length: 4\r\n", b"0\r\n\r\n"),
    "two lengths": post(b"content-length: 0\r\ncontent-length: 5\r\n"),
    "one length twice": post(b"content-length: 0\r\ncontent-length: 0\r\n"),
    "a list of lengths": post(b"content-length: 0, 5\r\n"),
    "a length with a sign": post(b"content-length: +0\r\n"),
    "a length in hex": post(b"content-length: 0x0\r\n"),
    "a length beyond 64 bits": post(b"content-length: 99999999999999999999999\r\n"),
    "an unknown encoding": post(b"transfer-encoding: xchunked\r\n"),
    "two encodings": post(CHUNKED + b"transfer-encoding: identity\r\n", b"0\r\n\r\n"),
    "chunks are not last": post(b"transfer-encoding: chunked, identity\r\n", b"0\r\n\r\n"),
    "a space before the colon": post(b"transfer-encoding : chunked\r\n", b"0\r\n\r\n"),
    "a folded encoding": post(b"transfer-encoding:\r\n chunked\r\n", b"0\r\n\r\n"),
    "a folded header": get(b"x: a\r\n b\r\n"),
    "a header that begins with a space": get(b" x: a\r\n"),
    "a name with a space": get(b"x y: a\r\n"),
    "only line feeds": b"GET /nothing HTTP/1.1\nhost: localhost\n\n",
    "one line feed": get(b"x: a\ny: b\r\n"),
    "a carriage return alone": get(b"x: a\rb\r\n"),
    "a chunk beyond 64 bits": post(CHUNKED, b"10000000000000000\r\n\r\n"),
    "a chunk with a sign": post(CHUNKED, b"-0\r\n\r\n"),
    "chunks with line feeds": post(CHUNKED, b"0\n\n"),
    "NUL in the target": get(target=b"/a\0b"),
    "another host in the target": get(target=b"http://evil.test/healthz"),
    "no host in the target": get(target=b"http:///healthz"),
    "a tunnel": get(target=b"localhost:80", method=b"CONNECT"),
    "an unknown method": get(method=b"FROB"),
    "a method in lower case": get(method=b"get"),
    "no version": b"GET /nothing\r\n",
    "the preface of HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
}
PLAIN = {
    "a target of this host": (get(target=b"http://localhost/nothing"), 404),
    "a target of this host, in upper case": (get(target=b"HTTP://LOCALHOST/nothing"), 404),
    "an asterisk": (get(target=b"*", method=b"OPTIONS"), 404),
    "a body that nobody asked for": (get(b"content-length: 5\r\n") + b"hello", 404),
    "a known method that is not taken": (get(target=b"/api/v1/runs", method=b"PROPFIND"), 405),
    "a path of 8 kB": (get(target=b"/" + b"x" * 8_192), 400),
    "a fragment": (get(target=b"/nothing#x"), 404),
    "upwards": (get(target=b"/api/v1/../../etc/passwd"), 404),
    "upwards, encoded": (get(target=b"/api/docs/%2e%2e/%2e%2e/etc/passwd"), 404),
    "upwards, encoded twice": (get(target=b"/api/docs/%252e%252e/etc/passwd"), 404),
    "upwards with a backslash": (get(target=b"/api/docs/..%5c..%5cetc%5cpasswd"), 404),
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    with running(tmp_path_factory.mktemp("smuggling")) as server:
        yield server


async def answers(server: System, request: bytes) -> tuple[list[int], bytes]:
    """The statuses of what comes until the scheduler hangs up, and the whole of it."""
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(request)
    raw = await asyncio.wait_for(reader.read(), WAIT_S)
    writer.close()
    return [int(found) for found in re.findall(rb"HTTP/1\.1 (\d+) ", raw)], raw


@pytest.mark.parametrize("name", AMBIGUOUS)
async def test_what_is_ambiguous_is_refused_with_all_that_follows(
    server: System, name: str
) -> None:
    statuses, raw = await answers(server, AMBIGUOUS[name] + SECOND)
    assert statuses == [400], raw
    assert b"application/problem+json" in raw


@pytest.mark.parametrize("name", PLAIN)
async def test_what_is_plain_is_answered_and_the_next_one_too(server: System, name: str) -> None:
    request, status = PLAIN[name]
    statuses, raw = await answers(server, request + SECOND)
    assert statuses == [status, 200], raw
    assert b"root:" not in raw


async def test_a_hundred_requests_at_once_are_answered_in_their_order(server: System) -> None:
    paths = [b"/healthz", b"/nothing"] * 50
    statuses, _ = await answers(server, b"".join(get(target=path) for path in paths) + SECOND)
    assert statuses == [200, 404] * 50 + [200]


async def test_the_body_of_one_request_is_not_the_next_one(server: System) -> None:
    """A request in the body stays a body, whatever the first is answered."""
    hidden = get(target=b"/readyz")
    length = b"content-length: %d\r\n" % len(hidden)
    statuses, raw = await answers(server, post(length, hidden) + SECOND)
    assert statuses == [401, 200]
    assert b'"ready"' not in raw

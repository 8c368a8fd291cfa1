"""Requests that no ordinary client sends get the same answer from the node that owns the tenant and from the other."""

from __future__ import annotations

import json
import re
import socket
from contextlib import closing, suppress
from pathlib import Path
from typing import Final

import pytest

from tests.chaos.test_nodes import Nodes
from tests.definitions import node, workflow
from tests.processes.postgres import postgres_server
from tests.processes.system import System, port_of
from tests.processes.waiting import until

RUN: Final = json.dumps({"workflow": workflow(node("core.noop"))}).encode()
JSON: Final = b"content-type: application/json\r\n"
CLOSE: Final = b"connection: close\r\n"
OURS: Final = b"host: 127.0.0.1\r\n"
VARYING: Final = re.compile(
    rb"(?im)^(?:date|x-request-id|content-length):.*$|request:[0-9a-f]+-[0-9a-f]+|"
    rb"\b[0-9A-HJKMNP-TV-Z]{26}\b|\"createdAt\":\"[^\"]*\""
)
KEPT: Final = 1024**2


def _with_body(body: bytes, more: bytes = b"", target: bytes = b"/api/v1/runs") -> bytes:
    length = b"content-length: %d\r\n" % len(body)
    return b"POST " + target + b" HTTP/1.1\r\n{ours}" + JSON + more + length + b"\r\n" + body


def _chunked(body: bytes, more: bytes = b"", trailer: bytes = b"") -> bytes:
    chunks = b"%x\r\n" % len(body) + body + b"\r\n0\r\n" + trailer + b"\r\n"
    head = b"POST /api/v1/runs HTTP/1.1\r\n{ours}" + JSON + more
    return head + b"transfer-encoding: chunked\r\n\r\n" + chunks


def _padded(size: int) -> bytes:
    """A run that is refused, in so many bytes: for an input that its workflow does not declare."""
    body = json.dumps({"workflow": workflow(node("core.noop")), "inputs": {"x": ""}})
    return body.replace('"x": ""', '"x": "' + "a" * (size - len(body)) + '"').encode()


def _get(
    target: bytes, more: bytes = b"", version: bytes = b"1.1", ours: bytes = b"{ours}"
) -> bytes:
    return b"GET " + target + b" HTTP/" + version + b"\r\n" + ours + more + b"\r\n"


REQUESTS: Final = {
    "HTTP/1.0": _get(b"/api/v1/runs", version=b"1.0"),
    "HTTP/1.0 without Host": _get(b"/api/v1/runs", version=b"1.0", ours=b"{token}"),
    "no Host": _get(b"/api/v1/runs", ours=b"{token}" + CLOSE),
    "an empty Host": _get(b"/api/v1/runs", ours=b"{token}host:\r\n" + CLOSE),
    "two Hosts": _get(b"/api/v1/runs", OURS),
    "another Host": _get(b"/api/v1/runs", ours=b"{token}host: evil.example\r\n" + CLOSE),
    "two credentials": _get(b"/api/v1/runs", b"authorization: Bearer nothing\r\n"),
    "HEAD": b"HEAD /api/v1/runs HTTP/1.1\r\n{ours}\r\n",
    "OPTIONS": b"OPTIONS /api/v1/runs HTTP/1.1\r\n{ours}origin: http://x.example\r\n\r\n",
    "GET with a body": _get(b"/api/v1/runs", b"content-length: 5\r\n") + b"hello",
    "a target with a host": _get(b"http://127.0.0.1/api/v1/runs"),
    "two slashes": _get(b"//api/v1/runs"),
    "a slash at the end": _get(b"/api/v1/runs/"),
    "dots, escaped": _get(b"/api/v1/runs/%2e%2e%2fx"),
    "a letter, escaped": _get(b"/api/v1/r%75ns"),
    "UTF-8": _get("/api/v1/workflows/é€".encode()),
    "a broken escape": _get(b"/api/v1/workflows/%zz"),
    "an odd query": _get(b"/api/v1/runs?limit=1&limit=2&x=%00&y=a+b"),
    "a large number": _get(b"/api/v1/runs?limit=99999999999999999999"),
    "a long header": _get(b"/api/v1/runs", b"x-long: " + b"a" * 70_000 + b"\r\n"),
    "many headers": _get(b"/api/v1/runs", b"".join(b"x-%d: 1\r\n" % n for n in range(1_000))),
    "another protocol": _get(b"/api/v1/me", b"upgrade: h2c\r\n"),
    "a header that the connection names": _get(b"/api/v1/me", b"connection: authorization\r\n"),
    "an event number that is none": _get(b"/api/v1/events", b"last-event-id: abc\r\n"),
    "an event number that is large": _get(b"/api/v1/events", b"last-event-id: " + b"9" * 23 + b"\r\n"),
    "event numbers of lanes": _get(b"/api/v1/events", b"last-event-id: 0:1,1:2\r\n"),
    "a body in chunks": _chunked(RUN),
    "a trailer": _chunked(RUN, trailer=b"x-trailer: 1\r\n"),
    "Expect": _with_body(RUN, b"expect: 100-continue\r\n"),
    "a length and chunks": _chunked(RUN, b"content-length: 3\r\n"),
    "two lengths": _with_body(RUN, b"content-length: 3\r\n"),
    "a negative length": b"POST /api/v1/runs HTTP/1.1\r\n{ours}" + JSON + b"content-length: -3\r\n\r\n",
    "no body": _with_body(b""),
    "half a body of JSON": _with_body(b"{"),
    "a NUL": _with_body(b'{"workflow": \x00}'),
    "a deep body": _with_body(b"[" * 100_000),
    "a body of what is read first": _with_body(_padded(64 * 1024)),
    "one byte more": _with_body(_padded(64 * 1024 + 1)),
    "a body of what is kept": _with_body(_padded(KEPT)),
    "one byte more than kept": _with_body(_padded(KEPT + 1)),
    "a body that is too large": _with_body(_padded(17 * KEPT)),
    "another kind of body": _with_body(RUN).replace(b"application/json", b"text/plain"),
    "no gzip": _with_body(RUN, b"content-encoding: gzip\r\n"),
    "a long key": _with_body(RUN, b"idempotency-key: " + b"k" * 5_000 + b"\r\n"),
    "an empty key": _with_body(RUN, b"idempotency-key: \r\n"),
    "a key of bytes": _with_body(RUN, b"idempotency-key: \xff\xfe\r\n"),
}  # fmt: skip


@pytest.mark.timeout(240)
def test_a_request_is_answered_alike_whatever_it_looks_like(tmp_path: Path) -> None:
    with postgres_server() as url:
        system = System(tmp_path, heartbeat_ms=None, database_url=url)
        nodes = Nodes(system)
        try:
            nodes.start()
            tenant = next(tenant for tenant in nodes.tokens if nodes.owner_of(tenant) == 1)
            other, owner = (port_of(one) for one in nodes.nodes)
            for name, request in REQUESTS.items():
                at_owner = _answer(owner, nodes.tokens[tenant], request)
                assert at_owner, name
                assert _answer(other, nodes.tokens[tenant], request) == at_owner, name
            for number in (0, 1):
                assert "Traceback" not in nodes.nodes[number].said()
        finally:
            nodes.close()
            system.close()


def _answer(port: int, token: str, request: bytes) -> bytes:
    """All that comes until the connection is closed, without what is another each time."""
    credential = b"authorization: Bearer %b\r\n" % token.encode()
    request = request.replace(b"{ours}", OURS + credential + CLOSE).replace(b"{token}", credential)
    return VARYING.sub(b"", until(lambda: _answer_once(port, request), "an answer"))


def _answer_once(port: int, request: bytes) -> bytes:
    """Empty, if it was lost: who closes a connection before all was read resets it."""
    answer = b""
    with closing(socket.create_connection(("127.0.0.1", port), timeout=20)) as peer:
        with suppress(BrokenPipeError, ConnectionResetError):
            peer.sendall(request)
        with suppress(ConnectionResetError):
            answer = b"".join(iter(lambda: peer.recv(65536), b""))
    return answer

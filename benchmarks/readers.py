"""Readers of the events of one run, many in one process: raw sockets whose bytes are counted and not looked at.

`python -m benchmarks.readers PORT RUN_ID COUNT` prints `attached` when all have begun to read, and the bytes of all
of them when every stream has ended.
"""

from __future__ import annotations

import selectors
import socket
import sys

from astraflow.bench.processes import TOKEN

PIECE = 256 * 1024


def _attach(port: int, run_id: str) -> socket.socket:
    reader = socket.create_connection(("127.0.0.1", port))
    request = (
        f"GET /api/v1/events?runId={run_id} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n"
        f"Authorization: Bearer {TOKEN}\r\n\r\n"
    )
    reader.sendall(request.encode())
    answer = reader.recv(PIECE)
    assert answer.startswith(b"HTTP/1.1 200"), answer
    reader.setblocking(False)
    return reader


def _read_all(port: int, run_id: str, count: int) -> int:
    selector = selectors.DefaultSelector()
    for _ in range(count):
        selector.register(_attach(port, run_id), selectors.EVENT_READ)
    print("attached", flush=True)
    size = 0
    while count:
        for key, _ in selector.select():
            reader = key.fileobj
            assert isinstance(reader, socket.socket)
            piece = reader.recv(PIECE)
            size += len(piece)
            if not piece:
                selector.unregister(reader)
                reader.close()
                count -= 1
    return size


if __name__ == "__main__":
    print(_read_all(int(sys.argv[1]), sys.argv[2], int(sys.argv[3])), flush=True)

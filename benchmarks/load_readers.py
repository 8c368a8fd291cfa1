"""Readers of a tenant's events in a process of their own: raw sockets, of whose bytes only the ends of runs count.

`python -m benchmarks.load_readers PORT COUNT RUNS SECONDS` prints `attached` when all have begun to read. When each has
seen the end of RUNS runs, or after SECONDS, it prints a JSON list: for each end that a reader saw, how many
milliseconds after the time in the event it was.
"""

from __future__ import annotations

import re
import selectors
import socket
import sys
import time
from datetime import datetime

import msgspec

from astraflow.bench.processes import TOKEN
from benchmarks.file_limits import raise_file_limit

PIECE = 64 * 1024
CONNECT_S = 60.0
_TIME = re.compile(rb'"occurredAt":"([^"]+)"')
_END = b'"status":"succeeded"'


class Reader:
    """One stream."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=CONNECT_S)
        self.socket.sendall(
            f"GET /api/v1/events HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n"
            f"Authorization: Bearer {TOKEN}\r\n\r\n".encode()
        )
        answer = self.socket.recv(PIECE)
        assert answer.startswith(b"HTTP/1.1 200"), answer
        self.socket.setblocking(False)
        self.late_ms: list[float] = []
        self._rest = b""

    def read(self, parsed: dict[bytes, float]) -> bool:
        """Note how late the ends are that have come. `parsed`: the times that some reader has read before. Returns
        whether the stream goes on: one that is too slow is ended by the scheduler."""
        piece = self.socket.recv(PIECE)
        if not piece:
            return False
        now = time.time()
        *events, self._rest = (self._rest + piece).split(b"\n\n")
        for event in events:
            if _END in event and (found := _TIME.search(event)):
                text = found[1]
                if text not in parsed:
                    parsed[text] = datetime.fromisoformat(text.decode()).timestamp()
                self.late_ms.append(round((now - parsed[text]) * 1000, 1))
        return True


def _read_all(port: int, count: int, runs: int, seconds: float) -> list[float]:
    readers = [Reader(port) for _ in range(count)]
    selector = selectors.DefaultSelector()
    for reader in readers:
        selector.register(reader.socket, selectors.EVENT_READ, reader)
    print("attached", flush=True)
    parsed: dict[bytes, float] = {}
    ends_at = time.monotonic() + seconds
    left = count * runs
    while left > 0 and time.monotonic() < ends_at:
        for key, _ in selector.select(timeout=1.0):
            seen = key.data.late_ms
            before = len(seen)
            if key.data.read(parsed):
                left -= len(seen) - before
            else:
                selector.unregister(key.fileobj)
                left -= runs - before
    return [late for reader in readers for late in reader.late_ms]


if __name__ == "__main__":
    raise_file_limit()
    port, count, runs, seconds = sys.argv[1:]
    late = _read_all(int(port), int(count), int(runs), float(seconds))
    print(msgspec.json.encode(late).decode(), flush=True)

"""python -m benchmarks.distance SOCKET MILLISECONDS

Brings a server on a local socket to a distance: a TCP port, which it prints, whose bytes take so long each way. It is a
process of its own that waits with `select`: the timers of an event loop are too coarse for half a millisecond.
"""

from __future__ import annotations

import select
import signal
import socket
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress

READ_BYTES = 256 * 1024


@contextmanager
def at_distance(path: str, milliseconds: float) -> Iterator[int]:
    """The port of such a process, which ends with the block."""
    command = [sys.executable, "-m", "benchmarks.distance", path, str(milliseconds)]
    # Our own program, with arguments that we made.
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield int(process.stdout.readline())
        finally:
            process.terminate()


class Distance:
    """What was read is sent when it is due. All of it takes equally long, so what came first is due first."""

    def __init__(self, listener: socket.socket, path: str, delay_s: float) -> None:
        self._listener = listener
        self._path = path
        self._delay_s = delay_s
        self._targets: dict[socket.socket, socket.socket] = {}
        self._waiting: deque[tuple[float, socket.socket, bytes]] = deque()

    def serve(self) -> None:
        while True:
            left = max(0.0, self._waiting[0][0] - time.monotonic()) if self._waiting else None
            readable, _, _ = select.select([self._listener, *self._targets], [], [], left)
            for source in readable:
                if source is self._listener:
                    self._accept()
                else:
                    self._read(source)
            while self._waiting and self._waiting[0][0] <= time.monotonic():
                self._send(*self._waiting.popleft()[1:])

    def _accept(self) -> None:
        near, _ = self._listener.accept()
        near.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        far = socket.socket(socket.AF_UNIX)
        far.connect(self._path)
        self._targets |= {near: far, far: near}

    def _read(self, source: socket.socket) -> None:
        data = b""
        with suppress(OSError):
            data = source.recv(READ_BYTES)
        target = self._targets[source] if data else self._targets.pop(source)
        self._waiting.append((time.monotonic() + self._delay_s, target, data))

    def _send(self, target: socket.socket, data: bytes) -> None:
        with suppress(OSError):
            if data:
                target.sendall(data)
            else:
                target.shutdown(socket.SHUT_WR)


def main() -> None:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    path, milliseconds = sys.argv[1:]
    with socket.create_server(("127.0.0.1", 0)) as listener:
        print(listener.getsockname()[1], flush=True)
        Distance(listener, path, float(milliseconds) / 1000).serve()


if __name__ == "__main__":
    main()

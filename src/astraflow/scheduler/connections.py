"""The sockets of workers, and a send queue for each.

Rule 1: a worker that does not read is sent no more than its socket has room for. The rest waits in the queue, not yet
        encoded: the engine holds the frames of a window anyway.
Rule 2: a connection counts for a tenant when its worker is authenticated, not before.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final, Protocol

from astraflow.core.protocol import control
from astraflow.core.protocol.bundles import encode_first
from astraflow.core.protocol.events import CloseConnection, Conn, PeerRejected, SendFrame
from astraflow.core.protocol.wire import Envelope
from astraflow.observe.frame_log import log_frame, logs_frames

_log: Final = logging.getLogger(__name__)

_LETS_IN = frozenset({control.ACK, control.SESSION_ACCEPT})
"""What nobody gets who has not proved who he is."""


class Connection(Protocol):
    """One socket of a worker."""

    def send(self, frames: list[bytes]) -> None:
        """Write these text messages, in order, in one go."""

    def room(self) -> int:
        """How many bytes the write buffer may still take. At 0 or less nothing is sent until `drained` is called."""

    def peer(self) -> str:
        """The address at the other end."""

    def admit(self) -> None:
        """The worker is authenticated."""

    def close(self, code: int) -> None:
        """Close when what was sent is written."""


class _Line:
    """One connection and its send queue."""

    __slots__ = (
        "bytes_in",
        "bytes_out",
        "connection",
        "is_bundled",
        "is_logged",
        "tenant",
        "waiting",
    )

    def __init__(self, connection: Connection, is_logged: bool) -> None:
        self.connection = connection
        self.is_logged = is_logged
        self.is_bundled = False
        self.tenant: str | None = None
        self.waiting: deque[Envelope] = deque()
        self.bytes_in = 0
        self.bytes_out = 0

    def send(self, ts: str) -> None:
        """Send as much of the queue as there is room for."""
        waiting = self.waiting
        frames: list[bytes] = []
        room = self.connection.room()
        while waiting and room > 0:
            if waiting[0].type in _LETS_IN:
                self._let_in(waiting[0])
            raw, count = encode_first(waiting, ts, bundled=self.is_bundled)
            for _ in range(count):
                envelope = waiting.popleft()
                if self.is_logged:
                    log_frame(_log, "sent", envelope)
            room -= len(raw)
            self.bytes_out += len(raw)
            frames.append(raw)
        if frames:
            self.connection.send(frames)

    def _let_in(self, envelope: Envelope) -> None:
        if self.tenant is None:
            self.tenant = envelope.tenant
            self.connection.admit()
        if isinstance(envelope.payload, control.SessionAccept):
            self.is_bundled = control.FRAMES_BUNDLED in envelope.payload.features


class Connections:
    """The connections of one writer."""

    def __init__(
        self,
        count: Callable[[str, int, int], None],
        on_rejected: Callable[[str, PeerRejected], None],
    ) -> None:
        self._lines: dict[Conn, _Line] = {}
        self._count = count
        self._on_rejected = on_rejected
        self._opened = 0
        self._logs_frames = logs_frames(_log)

    def __contains__(self, conn: Conn) -> bool:
        return conn in self._lines

    def open(self, connection: Connection) -> str:
        """Returns the name of the connection."""
        self._opened += 1
        conn = f"c{self._opened}"
        self._lines[conn] = _Line(connection, self._logs_frames)
        return conn

    def received(self, conn: Conn, frames: Sequence[Envelope], size: int) -> None:
        """These came in one message of this size."""
        self._lines[conn].bytes_in += size
        if self._logs_frames:
            for envelope in frames:
                log_frame(_log, "received", envelope)

    def forget(self, conn: Conn) -> bool:
        """The socket is closed; False if the connection was forgotten before."""
        line = self._lines.pop(conn, None)
        if line is not None:
            self._tally(line)
        return line is not None

    def perform(self, output: list[SendFrame | CloseConnection], ts: str) -> None:
        """Send and close as the gateway says, all frames of a connection in one write."""
        touched: dict[Conn, _Line] = {}
        for item in output:
            line = self._lines.get(item.conn)
            if line is None:
                continue
            if isinstance(item, SendFrame):
                line.waiting.append(item.envelope)
                touched[item.conn] = line
                continue
            line.send(ts)
            if item.rejected is not None:
                self._on_rejected(line.connection.peer(), item.rejected)
            line.connection.close(item.code)
            touched.pop(item.conn, None)
            self.forget(item.conn)
        for line in touched.values():
            line.send(ts)
            self._tally(line)

    def admitted(self) -> dict[str, int]:
        """How many connections of authenticated workers are open, by tenant."""
        counts: dict[str, int] = {}
        for line in self._lines.values():
            if line.tenant is not None:
                counts[line.tenant] = counts.get(line.tenant, 0) + 1
        return counts

    def drained(self, conn: Conn, ts: str) -> None:
        """The socket has room again."""
        line = self._lines.get(conn)
        if line is not None:
            line.send(ts)

    def close_all(self, code: int) -> None:
        for line in self._lines.values():
            line.connection.close(code)
        self._lines.clear()

    def _tally(self, line: _Line) -> None:
        if line.tenant is not None:
            self._count(line.tenant, line.bytes_in, line.bytes_out)
        line.bytes_in = line.bytes_out = 0

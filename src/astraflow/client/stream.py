"""Reading a stream of events: from bytes to events, and what to do when the connection is lost.

1. A client that reconnects sends the last number that it saw, and so misses nothing and sees nothing twice (P17).
2. A lost connection is not an error until `patience_s` have passed without a byte from the server.
3. The terminal `run.status` of a run is its last event: then the client is done.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from astraflow.core import errors
from astraflow.core.contract.events import Event
from astraflow.core.contract.words import TERMINAL

SILENCE_S: Final = 40.0
"""The read timeout. The server sends a comment every 15 seconds: when two are missing, the connection is dead."""

PATIENCE_S: Final = 60.0
"""How long the client tries to reconnect. A server that restarts is back within seconds."""

FIRST_WAIT_S: Final = 0.1
LONGEST_WAIT_S: Final = 2.0

MAX_LINE_BYTES: Final = 64 * 1024 * 1024
"""A result may have 4 MiB; what has this many without a line end is not an event stream."""

_event: Final = msgspec.json.Decoder(Event)
_CUTS: Final = frozenset({"overflow", "error"})


class Cut(Exception):
    """The stream ended although there is more to come."""


class EventReader:
    """Bytes of `text/event-stream` in, events out."""

    def __init__(self) -> None:
        self._rest = b""
        self._kind = b""

    def feed(self, piece: bytes) -> Iterator[Event]:
        """Raises: Cut, when the server ends the stream early, or when this is no event stream."""
        lines = (self._rest + piece).split(b"\n")
        self._rest = lines.pop()
        if len(self._rest) > MAX_LINE_BYTES:
            raise Cut("a line without end")
        for line in lines:
            if line.startswith(b"event:"):
                self._kind = line[6:].strip()
            elif line.startswith(b"data:"):
                yield _read(self._kind, line[5:])
            elif not line:
                self._kind = b""


def _read(kind: bytes, body: bytes) -> Event:
    if kind.decode("ascii", "replace") in _CUTS:
        raise Cut("the server ended the stream: " + body.decode("utf-8", "replace").strip())
    try:
        return _event.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Cut(f"not an event: {error}") from error


class Following:
    """How far one reader of a run's events has come, and how long it still waits for the server."""

    def __init__(self, run_id: str, after: int, now: float, patience_s: float = PATIENCE_S) -> None:
        self.run_id = run_id
        self.last = after
        self.is_over = False
        self._patience_s = patience_s
        self._heard_at = now
        self._wait_s = FIRST_WAIT_S

    def params(self) -> dict[str, str]:
        """What to ask for, to go on from here."""
        return {"runId": self.run_id, "lastEventId": str(self.last)}

    def heard(self, now: float) -> None:
        """The server said something."""
        self._heard_at = now
        self._wait_s = FIRST_WAIT_S

    def take(self, event: Event) -> bool:
        """Count an event; False if it was seen before."""
        if event.id:
            if event.id <= self.last:
                return False
            self.last = event.id
        if event.type == "run.status" and event.body.get("status") in TERMINAL:
            self.is_over = True
        return True

    def cut(self, now: float, why: str) -> float:
        """How long to wait before coming back.

        Raises:
            Unavailable: the server has been gone for too long.
        """
        if now - self._heard_at >= self._patience_s:
            raise errors.Unavailable(
                errors.SERVER_UNREACHABLE,
                f"the server has been gone for {self._patience_s:g} s ({why}); the run may go on without it being "
                f"watched: {self.run_id}",
            )
        wait_s = min(self._wait_s, LONGEST_WAIT_S)
        self._wait_s = wait_s * 2
        return wait_s

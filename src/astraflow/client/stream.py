"""Reading a stream of events: from bytes to events, and what to do when the connection is lost.

1. A client that reconnects sends the last number that it saw, and so misses nothing and sees nothing twice (P17).
2. A lost connection is not an error until `patience_s` have passed without a byte from the server.
3. The terminal `run.status` of a run is its last event: then the client is done.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final, Generic, TypeVar

import msgspec

from astraflow.core import errors
from astraflow.core.contract.events import Event
from astraflow.core.contract.streams import FollowStream, StreamBatch, StreamItem
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
_batch: Final = msgspec.json.Decoder(StreamBatch)
_Read = TypeVar("_Read")
_PING: Final = b"ping"
"""Says that the server is there, and nothing else."""
_CUTS: Final = frozenset({"overflow", "error"})


class Cut(Exception):
    """The stream ended although there is more to come."""


class EventReader(Generic[_Read]):
    """Bytes of `text/event-stream` in, events out. `decode` makes them of the id and the data of a message."""

    def __init__(self, decode: Callable[[bytes, bytes], Iterable[_Read]]) -> None:
        self._decode = decode
        self._rest = b""
        self._kind = b""
        self._id = b""

    def feed(self, piece: bytes) -> Iterator[_Read]:
        """Raises: Cut, when the server ends the stream early, or when this is no event stream."""
        lines = (self._rest + piece).split(b"\n")
        self._rest = lines.pop()
        if len(self._rest) > MAX_LINE_BYTES:
            raise Cut("a line without end")
        for line in lines:
            if line.startswith(b"event:"):
                self._kind = line[6:].strip()
            elif line.startswith(b"id:"):
                self._id = line[3:].strip()
            elif line.startswith(b"data:"):
                yield from self._read(line[5:])
            elif not line:
                self._kind = b""

    def _read(self, body: bytes) -> Iterable[_Read]:
        if self._kind.decode("ascii", "replace") in _CUTS:
            raise Cut("the server ended the stream: " + body.decode("utf-8", "replace").strip())
        if self._kind == _PING:
            return ()
        try:
            return self._decode(self._id, body)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise Cut(f"not an event: {error}") from error


def read_event(_: bytes, body: bytes) -> Iterable[Event]:
    """The event of a message of a stream of one run or one tenant."""
    return (_event.decode(body),)


class Patience:
    """How long a reader still waits for the server. `what` it may miss meanwhile."""

    def __init__(self, what: str, now: float, patience_s: float) -> None:
        self._what = what
        self._patience_s = patience_s
        self._heard_at = now
        self._wait_s = FIRST_WAIT_S

    def heard(self, now: float) -> None:
        """The server said something."""
        self._heard_at = now
        self._wait_s = FIRST_WAIT_S

    def cut(self, now: float, why: str) -> float:
        """How long to wait before coming back.

        Raises:
            Unavailable: the server has been gone for too long.
        """
        if now - self._heard_at >= self._patience_s:
            raise errors.Unavailable(
                errors.SERVER_UNREACHABLE,
                f"the server has been gone for {self._patience_s:g} s ({why}); {self._what}",
            )
        wait_s = min(self._wait_s, LONGEST_WAIT_S)
        self._wait_s = wait_s * 2
        return wait_s


class Following:
    """How far one reader of a run's events has come."""

    def __init__(self, run_id: str, after: int, now: float, patience_s: float = PATIENCE_S) -> None:
        self.run_id = run_id
        self.last = after
        self.is_over = False
        said = f"the run may go on without it being watched: {run_id}"
        self.patience = Patience(said, now, patience_s)

    def params(self) -> dict[str, str]:
        """What to ask for, to go on from here."""
        return {"runId": self.run_id, "lastEventId": str(self.last)}

    def reader(self) -> EventReader[Event]:
        """For one connection."""
        return EventReader(read_event)

    def take(self, event: Event) -> bool:
        """Count an event; False if it was seen before."""
        if event.id:
            if event.id <= self.last:
                return False
            self.last = event.id
        if event.type == "run.status" and event.body.get("status") in TERMINAL:
            self.is_over = True
        return True


class MixedFollowing:
    """How far one reader of a mixed stream has come. It is never over."""

    run_id: Final = ""

    def __init__(self, wanted: FollowStream, now: float, patience_s: float = PATIENCE_S) -> None:
        self.position = wanted.last_event_id
        """The id of the last batch that was read: a stream with any runs goes on from it."""
        self.is_over = False
        self._wanted = wanted
        self.patience = Patience(
            "what happens meanwhile is kept for whoever comes back", now, patience_s
        )

    def params(self) -> dict[str, str]:
        """What to ask for, to go on from here."""
        wanted = msgspec.structs.replace(self._wanted, last_event_id=self.position)
        fields: dict[str, object] = msgspec.to_builtins(wanted)
        return {name: _as_text(value) for name, value in fields.items()}

    def reader(self) -> EventReader[StreamItem]:
        """For one connection."""
        return EventReader(self._decode)

    def _decode(self, number: bytes, body: bytes) -> Iterator[StreamItem]:
        yield from _batch.decode(body).events
        self.position = number.decode()

    def take(self, event: StreamItem) -> bool:
        """A batch comes once."""
        return True


def _as_text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)

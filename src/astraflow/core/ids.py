"""The names of things: id types, where new ids come from, and ids that follow from others.

Ids are strings that are unique for all time, so that a frame, a run or an attempt seen again is
known to be the same one. The core never makes them from a clock or a random source of its own: it
is given an `IdSource`, so that a simulated world repeats itself exactly.

Those that a scheduler makes have a type each, so that one is not taken for another. The names of tenants, workers and
packages come from outside and are plain strings.
"""

from __future__ import annotations

from hashlib import sha1
from typing import Final, NewType, Protocol

RunId = NewType("RunId", str)
NodeId = NewType("NodeId", str)
TaskId = NewType("TaskId", str)
SessionId = NewType("SessionId", str)
NO_SESSION = SessionId("")
"""Of what happens before a session is open."""
POOL_PREFIX: Final = "pool/"
"""The worker id of an HTTP pool begins so. An instance id has no slash, so that no worker can claim to be a pool."""


SCHEDULER_ID: Final = "scheduler/values"
"""In place of a worker id: of a value that the scheduler itself has stored."""


def is_pool(worker_id: str | None) -> bool:
    """Whether this is the worker id of an HTTP pool."""
    return worker_id is not None and worker_id.startswith(POOL_PREFIX)


class IdSource(Protocol):
    """Gives ids that were never given before: ULIDs in production, counted ones in a simulation."""

    def new(self) -> str: ...


def uuid5(*names: str) -> str:
    """The id that follows from some names, the same wherever and whenever it is asked for (RFC 9562 §5.5)."""
    digest = bytearray(sha1("\0".join(names).encode(), usedforsecurity=False).digest()[:16])
    digest[6] = digest[6] & 0x0F | 0x50
    digest[8] = digest[8] & 0x3F | 0x80
    text = digest.hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"

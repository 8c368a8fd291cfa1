"""The names of things: id types, and where new ids come from.

Ids are strings that are unique for all time, so that a frame, a run or an attempt seen again is
known to be the same one. The core never makes them from a clock or a random source of its own: it
is given an `IdSource`, so that a simulated world repeats itself exactly.
"""

from __future__ import annotations

from typing import NewType, Protocol

__all__ = [
    "FrameId",
    "IdSource",
    "NodeId",
    "RunId",
    "SessionId",
    "TaskId",
    "TenantId",
    "WorkerId",
]

RunId = NewType("RunId", str)
NodeId = NewType("NodeId", str)
TaskId = NewType("TaskId", str)
TenantId = NewType("TenantId", str)
WorkerId = NewType("WorkerId", str)
"""A worker's *instance id*: kept in its data folder, the same after every boot."""
SessionId = NewType("SessionId", str)
FrameId = NewType("FrameId", str)


class IdSource(Protocol):
    """Gives ids that were never given before: ULIDs in production, counted ones in a simulation."""

    def new(self) -> str: ...

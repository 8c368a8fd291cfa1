"""What the agent asks of the shell round it: sockets, hosts, the process itself.

What its session asks for (`Connect`, `Disconnect`), says for the log (`SessionRefused`), or says that concerns the
other lanes of the worker (`SessionReady`, `DrainAsked`, `LanesTold`, `HungerTold`, `SlotsAnswered`) goes on as it is.
"""

from __future__ import annotations

import msgspec

from astraflow.core.ids import TaskId
from astraflow.core.protocol.business import Dispatch, NextResponse
from astraflow.core.protocol.wire import Envelope
from astraflow.core.protocol.worker_events import (
    Connect,
    Disconnect,
    DrainAsked,
    HungerTold,
    LanesTold,
    SessionReady,
    SessionRefused,
    SlotsAnswered,
)


class _Action(msgspec.Struct, frozen=True):
    """The base of all actions."""


class StartAttempt(_Action, frozen=True):
    """Run the attempt in its host. Then call `finished`, once."""

    dispatch: Dispatch


class InterruptAttempt(_Action, frozen=True):
    """Ask the attempt to end, and kill it after the grace. Then call `finished`."""

    task_id: TaskId
    attempt: int
    grace_s: float
    reason: str


class KillAttempt(_Action, frozen=True):
    """SIGKILL the host's process group, without grace. Then call `gone`."""

    task_id: TaskId
    attempt: int
    reason: str


class ForwardAnswer(_Action, frozen=True):
    """Give the answer of a call to the attempt that waits for it."""

    response: NextResponse


class HandUp(_Action, frozen=True):
    """A frame that concerns packages or resources, for the part of the worker that owns them."""

    envelope: Envelope


class Exit(_Action, frozen=True):
    """End the process: the worker was superseded, or it has drained."""

    code: int
    reason: str


LaneWord = Connect | SessionReady | DrainAsked | LanesTold | HungerTold | SlotsAnswered
"""What one session says that the division of a worker among its lanes depends on. `Connect`: it has no connection."""

Action = (
    LaneWord
    | Disconnect
    | SessionRefused
    | StartAttempt
    | InterruptAttempt
    | KillAttempt
    | ForwardAnswer
    | HandUp
    | Exit
)

"""What the agent asks of the shell round it: sockets, hosts, the process itself."""

from __future__ import annotations

import msgspec

from astraflow.core.protocol.business import Dispatch, NextResponse
from astraflow.core.protocol.wire import Envelope


class _Action(msgspec.Struct, frozen=True):
    """The base of all actions."""


class OpenConnection(_Action, frozen=True):
    """Open a socket at this time; to `location` if given."""

    at: float
    location: str | None = None


class Close(_Action, frozen=True):
    """Close the present socket."""

    code: int


class StartAttempt(_Action, frozen=True):
    """Run the attempt in its host. Then call `finished`, once."""

    dispatch: Dispatch


class InterruptAttempt(_Action, frozen=True):
    """Ask the attempt to end, and kill it after the grace. Then call `finished`."""

    task_id: str
    attempt: int
    grace_s: float
    reason: str


class KillAttempt(_Action, frozen=True):
    """SIGKILL the host's process group, without grace. Then call `gone`."""

    task_id: str
    attempt: int
    reason: str


class ForwardAnswer(_Action, frozen=True):
    """Give the answer of a call to the attempt that waits for it."""

    response: NextResponse


class HandUp(_Action, frozen=True):
    """A frame that concerns packages or resources, for the part of the worker that owns them."""

    envelope: Envelope


class Warn(_Action, frozen=True):
    """Say in the log why there is no session, and when the next try is."""

    code: str
    reason: str
    again_at: float


class Exit(_Action, frozen=True):
    """End the process: the worker was superseded, or it has drained."""

    code: int
    reason: str


Action = (
    OpenConnection
    | Close
    | StartAttempt
    | InterruptAttempt
    | KillAttempt
    | ForwardAnswer
    | HandUp
    | Warn
    | Exit
)

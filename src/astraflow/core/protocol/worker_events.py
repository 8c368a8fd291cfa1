"""What a `WorkerSession` tells the layer above it, and is told at its start.

Events are taken with `take_events` and handled in order. The newest `Connect` replaces an older one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import msgspec

from astraflow.core.ids import SessionId
from astraflow.core.protocol import control, limits

if TYPE_CHECKING:
    from astraflow.core.protocol.control import LanePlace
    from astraflow.core.protocol.wire import AttemptRef, Envelope, Unreadable


@dataclass(frozen=True, slots=True)
class WorkerIdentity:
    """Who the worker is. The name is for display; (tenant, worker_id) is the identity."""

    tenant: str
    worker_id: str
    incarnation: int
    name: str
    version: str
    hostname: str
    lane: int = 0
    """Of the tenant: whose scheduler the session is with."""

    @property
    def is_home(self) -> bool:
        return self.lane == control.HOME_LANE


@dataclass(frozen=True, slots=True)
class Credential:
    """How the worker proves it."""

    mode: Literal["token", "mtls"]
    token: str | None = None
    fingerprint: str | None = None

    def __repr__(self) -> str:
        # The token must not reach a log by way of a failed assertion.
        return f"Credential({self.mode})"


@dataclass(frozen=True, slots=True)
class SessionSettings:
    """Times and sizes; the scheduler's accept decides about heartbeat, lease and window."""

    window: int = limits.WINDOW
    queue_limit: int = limits.SEND_QUEUE
    max_frame_bytes: int = limits.MAX_FRAME_BYTES
    handshake_timeout_s: float = limits.HANDSHAKE_TIMEOUT_S
    opening_repeat_s: float = limits.OPENING_REPEAT_S
    heartbeat_answer_timeout_s: float = limits.HEARTBEAT_ANSWER_TIMEOUT_S
    backoff_base_s: float = limits.BACKOFF_BASE_S
    backoff_cap_s: float = limits.BACKOFF_CAP_S
    checks_outgoing: bool = True
    """Whether `send` runs the receiver's frame check; a simulation that has no bytes does not."""


class _WorkerEvent(msgspec.Struct, frozen=True):
    """The base of all events."""


class Connect(_WorkerEvent, frozen=True):
    """Open a connection at `at`, to `location` if there is one, else to the configured address.

    Then call `connected`; or `disconnected` if it cannot be opened.
    """

    at: float
    location: str | None


class Disconnect(_WorkerEvent, frozen=True):
    """Send what `take_frames` gives, then close. Frames of this connection are no longer fed.

    `disconnected` may confirm it, but not after the next connection was opened.
    """

    code: int


class RegisterWanted(_WorkerEvent, frozen=True):
    """Take the inventory now and call `register`: the windows of the old session are gone."""


class SessionReady(_WorkerEvent, frozen=True):
    """Frames flow. If not `resumed`, it is a new session: send all held results again (R3)."""

    resumed: bool
    session_id: SessionId
    lease_ttl_s: float
    heartbeat_interval_s: float
    max_frame_bytes: int


class HeartbeatDue(_WorkerEvent, frozen=True):
    """Call `heartbeat` now."""


class HeartbeatAnswered(_WorkerEvent, frozen=True):
    """The right to run what that heartbeat named counts from `sent_at` (R9); kill `stop` at once."""

    frame_id: str
    sent_at: float
    stop: tuple[AttemptRef, ...]


class RegisterAnswered(_WorkerEvent, frozen=True):
    """The scheduler knows what that later register of the open session offers."""

    frame_id: str


class SlotsAnswered(_WorkerEvent, frozen=True):
    """The scheduler counts with the slots that this frame gave to the lane, and sends no more than that."""

    frame_id: str


class HungerTold(_WorkerEvent, frozen=True):
    """How many tasks wait for a slot in this lane, and of how many runs."""

    tasks: int
    runs: int


class LanesTold(_WorkerEvent, frozen=True):
    """All lanes of the tenant beside lane 0, and where they are."""

    lanes: tuple[LanePlace, ...]


class CommandDelivered(_WorkerEvent, frozen=True):
    """A command, in order, once per session. When it is *taken*, call `taken(seq)`."""

    seq: int
    envelope: Envelope


class FramesAcked(_WorkerEvent, frozen=True):
    """`ack_seq` covers these frames: what they carry is committed and may be forgotten."""

    frame_ids: tuple[str, ...]


class DrainAsked(_WorkerEvent, frozen=True):
    """Take nothing new, finish what runs; call `taken(seq)`, and `finished` at the end."""

    seq: int
    reason: str
    deadline_s: float | None


class SessionLost(_WorkerEvent, frozen=True):
    """The windows are gone with all that was in them. `code` is None if the worker dropped it."""

    code: str | None


class SessionRefused(_WorkerEvent, frozen=True):
    """The scheduler ended the session, or refused to open one, and this is what it said. `again_at`: the next try."""

    code: str
    reason: str
    again_at: float


class Superseded(_WorkerEvent, frozen=True):
    """Another process has this identity: kill all work and exit, do not fight back."""


class CommandRefused(_WorkerEvent, frozen=True):
    """A frame could not be used; the peer was told, and its seq is consumed."""

    envelope: Envelope
    unreadable: Unreadable


class FrameRejected(_WorkerEvent, frozen=True):
    """The scheduler could not use the frame `frame_id` that was sent to it."""

    frame_id: str
    code: str
    message: str
    pointer: str | None


class Poisoned(_WorkerEvent, frozen=True):
    """This frame closed the link twice: `replace` it by a failure."""

    frame_id: str


WorkerEvent = (
    Connect
    | Disconnect
    | RegisterWanted
    | SessionReady
    | HeartbeatDue
    | HeartbeatAnswered
    | RegisterAnswered
    | SlotsAnswered
    | HungerTold
    | LanesTold
    | CommandDelivered
    | FramesAcked
    | DrainAsked
    | SessionLost
    | SessionRefused
    | Superseded
    | CommandRefused
    | FrameRejected
    | Poisoned
)

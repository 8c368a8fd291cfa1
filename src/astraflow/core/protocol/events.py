"""What a `Gateway` tells the engine, what it puts out, and what it is given.

Every event names the tenant, the worker (its instance id) and the session it is about. They are
taken with `take_events` and handled in order.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import msgspec

from astraflow.core.ids import SessionId
from astraflow.core.protocol import limits

if TYPE_CHECKING:
    from astraflow.core.errors import Code
    from astraflow.core.protocol.control import Handshake, HandshakeWorker, Heartbeat, Register
    from astraflow.core.protocol.wire import Envelope, Unreadable

Conn = Hashable
"""How the shell names a connection; never reused."""


@dataclass(frozen=True, slots=True)
class Principal:
    """Whom a credential stands for."""

    subject: str
    tenant: str
    role: str
    expires_at: float | None = None
    credential: str = ""
    """The id of the stored token that it was proved with; empty: it is not stored."""


Authenticate = Callable[["Handshake", str, object, float], "Principal | Code"]
"""`(handshake, tenant, certificate, wall)`: who it is, or why nobody is let in."""


class ResumeClaims(Protocol):
    """PROTOCOL §2: "a signed JWT `{sid, wid, tenant, exp}`", and `jti`."""

    @property
    def sid(self) -> str: ...
    @property
    def wid(self) -> str: ...
    @property
    def tenant(self) -> str: ...
    @property
    def jti(self) -> str: ...


class ResumeTokens(Protocol):
    """Signs and verifies the tokens with which sessions are resumed."""

    def mint(
        self, session_id: SessionId, worker_id: str, tenant: str, token_id: str, wall: float
    ) -> tuple[str, float]: ...

    def verify(self, token: str, wall: float) -> ResumeClaims | Code: ...


@dataclass(frozen=True, slots=True)
class GatewaySettings:
    """Times and sizes that a gateway gives to its workers."""

    window: int = limits.WINDOW
    queue_limit: int = limits.SEND_QUEUE
    max_frame_bytes: int = limits.MAX_FRAME_BYTES
    handshake_timeout_s: float = limits.HANDSHAKE_TIMEOUT_S
    heartbeat_interval_s: float = limits.HEARTBEAT_INTERVAL_S
    lease_ttl_s: float = limits.LEASE_TTL_S
    max_connections: int = limits.MAX_CONNECTIONS
    max_parallel: int = limits.MAX_PARALLEL
    inline_bytes: int = limits.INLINE_RESULT_BYTES
    """What a worker is told; who keeps it is the engine."""
    checks_outgoing: bool = True
    """Whether `send` runs the receiver's frame check; a simulation that has no bytes does not."""


class SendFrame(msgspec.Struct, frozen=True):
    """Put this frame on that connection."""

    conn: Conn
    envelope: Envelope


class PeerRejected(msgspec.Struct, frozen=True):
    """Which peer was rejected, and why. Tenant and worker are what the peer says of itself."""

    tenant: str
    worker: str
    code: str
    reason: str


class CloseConnection(msgspec.Struct, frozen=True):
    """Close that connection when the frames before this are written; feed nothing of it again."""

    conn: Conn
    code: int
    rejected: PeerRejected | None = None


class _GatewayEvent(msgspec.Struct, frozen=True):
    """The base of all events."""

    session_id: SessionId
    tenant: str
    worker: str


class RegisterArrived(_GatewayEvent, frozen=True):
    """Reconcile if `first`, store what the worker offers, and after the commit call `accept`.

    `previous_incarnation` is the one seen before, if any. `displaced` says that another incarnation
    had a live session: then its leases run out instead of being lost at once (PROTOCOL §2).
    """

    incarnation: int
    register: Register
    frame_id: str
    first: bool
    previous_incarnation: int | None
    displaced: bool
    description: HandshakeWorker


class HeartbeatArrived(_GatewayEvent, frozen=True):
    """Renew what it names and call `answer_heartbeat`.

    `ack_seq` is what the worker had taken of our frames when it made its list of attempts.
    """

    heartbeat: Heartbeat
    frame_id: str
    at: float
    ack_seq: int | None

    def covers(self, seq: int) -> bool:
        """Whether the worker had taken our frame with this seq before it made this heartbeat."""
        return self.ack_seq is not None and self.ack_seq >= seq


class SlotsArrived(_GatewayEvent, frozen=True):
    """Of the worker's slots, so many are for this engine. When it counts so, call `answer`."""

    slots: int
    frame_id: str


class Delivered(_GatewayEvent, frozen=True):
    """A frame, in order, once per session. When its effect is committed, call `committed`."""

    seq: int
    envelope: Envelope


class FrameRefused(_GatewayEvent, frozen=True):
    """A frame that cannot be used; the worker was told. The attempt that a result or a refusal names fails.

    If it has a seq, call `committed` as for any other.
    """

    seq: int | None
    frame_type: str
    unreadable: Unreadable


class PeerError(_GatewayEvent, frozen=True):
    """The worker could not use the frame `frame_id` that was sent to it."""

    frame_id: str
    code: str
    message: str
    pointer: str | None


class Acked(_GatewayEvent, frozen=True):
    """The worker has taken these frames; the last of them has the seq `ack_seq`."""

    frame_ids: tuple[str, ...]
    ack_seq: int


class Missed(_GatewayEvent, frozen=True):
    """So many heartbeats in a row did not come: one is a warning, two mean degraded."""

    count: int


class SessionEnded(_GatewayEvent, frozen=True):
    """The session is over. `lost`: three heartbeats were missed; each lease ends at its own time."""

    code: str
    lost: bool


class IdentityBound(_GatewayEvent, frozen=True):
    """The identity belongs to this subject from now on; keep it, and `bind` it after a restart."""

    subject: str


class SessionAudited(_GatewayEvent, frozen=True):
    """A line for the audit log: a login, a refusal, a take-over, a revocation."""

    action: str
    code: str | None
    subject: str | None
    frame_id: str | None


GatewayEvent = (
    RegisterArrived
    | HeartbeatArrived
    | SlotsArrived
    | Delivered
    | FrameRefused
    | PeerError
    | Acked
    | Missed
    | SessionEnded
    | IdentityBound
    | SessionAudited
)

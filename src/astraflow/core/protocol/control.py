"""The payloads of `control.*`: opening, resuming and ending a session, acks and heartbeats.

PROTOCOL §2, §3 and §7 give the fields. They are defined here and nowhere else; `FRAMES` has a row
for each frame type.
"""

from __future__ import annotations

from typing import Annotated, Final

import msgspec
from msgspec import Meta

from astraflow.core.protocol import limits
from astraflow.core.protocol.wire import (
    AttemptRef,
    Bitmap,
    Count,
    FrameType,
    InstanceId,
    Int,
    MachineAmounts,
    Name,
    SessionName,
    Text,
    Time,
    Wire,
    check_time,
)

HANDSHAKE: Final = "control.handshake"
REGISTER: Final = "control.register"
SESSION_ACCEPT: Final = "control.session.accept"
RESUME: Final = "control.resume"
RESET: Final = "control.reset"
DRAIN: Final = "control.drain"
ACK: Final = "control.ack"
HEARTBEAT: Final = "control.heartbeat"
LANES: Final = "control.lanes"
SLOTS: Final = "control.slots"
HUNGER: Final = "control.hunger"
ERROR: Final = "control.error"

FRAMES_BUNDLED: Final = "frames.bundled"
"""The feature of a session in which several frames may come in one message (`bundles`)."""
SEVERAL_LANES: Final = "lanes"
"""The feature of a worker that keeps a session with each lane of its tenant, and divides its slots among them."""
HOME_LANE: Final = 0
FEATURES: Final = (FRAMES_BUNDLED, SEVERAL_LANES)

Token = Annotated[str, Meta(min_length=1, max_length=8192)]
Positive = Annotated[int, Meta(ge=1, le=limits.INT_MAX)]
Percent = Annotated[float, Meta(ge=0, le=100)]
Labels = Annotated[dict[Name, Text], Meta(max_length=limits.MAX_LABELS)]
Names = Annotated[tuple[Name, ...], Meta(max_length=limits.MAX_PACKAGES)]
Inventory = Annotated[tuple[AttemptRef, ...], Meta(max_length=limits.MAX_INVENTORY)]
LaneNumber = Annotated[int, Meta(ge=0, lt=limits.MAX_LANES)]


class Auth(Wire, frozen=True):
    """How the peer proves who it is. A `fingerprint` proves nothing by itself (PROTOCOL §6)."""

    mode: Name
    token: Token | None = None
    fingerprint: Name | None = None


class HandshakeWorker(Wire, frozen=True):
    """`incarnation` counts boots: the instance id alone cannot tell a restart from a reconnect."""

    worker_instance_id: InstanceId
    incarnation: Count
    worker_name: Name
    version: Name
    hostname: Name


class Handshake(Wire, frozen=True):
    """The first frame of a new session; in a live one it presents a new bearer token."""

    protocol: Int
    auth: Auth
    worker: HandshakeWorker
    lane: LaneNumber = 0
    """Of the tenant: another lane is another session, with another scheduler perhaps (PROTOCOL §11)."""


class Concurrency(Wire, frozen=True):
    max_parallel: Annotated[int, Meta(ge=1, le=limits.INT_MAX)]
    per_node_limits: Annotated[dict[Name, Count], Meta(max_length=limits.MAX_PACKAGES)] = (
        msgspec.field(default_factory=dict)
    )


class Capabilities(Wire, frozen=True):
    concurrency: Concurrency
    runtimes: Names = ()
    features: Names = ()
    resources: MachineAmounts | None = None
    """What the machine has for attempts. A worker that does not say it gets no node that asks for some of it."""


class RegisteredPackage(Wire, frozen=True):
    name: Name
    version: Name
    status: Name
    manifest_sha256: Annotated[str, Meta(max_length=limits.NAME_CHARS)] | None = None


class Register(Wire, frozen=True):
    """What a worker can do and what it holds. Only the first of a session reconciles."""

    capabilities: Capabilities
    payload_types: Names = ()
    packages: Annotated[tuple[RegisteredPackage, ...], Meta(max_length=limits.MAX_PACKAGES)] = ()
    labels: Labels = msgspec.field(default_factory=dict)
    inflight: Inventory = ()
    held_results: Inventory = ()
    slots: Count | None = None
    """Of `max_parallel`, those that are for this lane; None: all of them."""


class SessionLimits(Wire, frozen=True, omit_defaults=False):
    """What a worker must keep to, beside the window and the size of a frame (PROTOCOL §3)."""

    heartbeat_gap_ms: Positive
    """Heartbeats may come at most this close on average."""
    refusals: Positive
    """So many refused frames within `refusals_ms` end the session."""
    refusals_ms: Positive
    takeovers_per_minute: Positive
    """Of one instance id, by connections while another is open."""
    inline_bytes: Positive
    """Of a result, and of one inline artifact."""
    inventory: Positive
    """Attempts in a register or a heartbeat."""
    packages: Positive
    labels: Positive
    artifacts: Positive
    chunks: Positive


class SessionAccept(Wire, frozen=True, omit_defaults=False):
    """The session is open. With the current `session_id` and `resumed` false it is a new token."""

    session_id: SessionName
    session_token: Token
    expires_at: Time
    resumed: bool
    worker_instance_id: Name
    window: Annotated[int, Meta(ge=1, le=limits.MAX_WINDOW)]
    max_frame_bytes: Annotated[int, Meta(ge=1024, le=limits.INT_MAX)]
    heartbeat_interval_ms: Positive
    lease_ttl_ms: Positive
    last_seen_seq: Count | None = None
    limits: SessionLimits | None = None
    features: Names = ()
    """Of those that the register named, the ones that this session has."""

    def __post_init__(self) -> None:
        check_time("expires_at", self.expires_at)


class Resume(Wire, frozen=True, omit_defaults=False):
    """`last_seen_seq` is the sender's `ack_seq`, committed, and nothing else (PROTOCOL §2)."""

    session_id: SessionName
    session_token: Token
    last_seen_seq: Count | None = None
    lane: LaneNumber = 0


class Reset(Wire, frozen=True):
    """The session, or the attempt to open one, is over."""

    code: Name
    reason: Text = ""
    retry_after_ms: Count | None = None
    location: Name | None = None


class ControlDrain(Wire, frozen=True):
    """Take nothing new and finish what runs."""

    reason: Text = ""
    deadline_ms: Count | None = None


class ControlAck(Wire, frozen=True, rename={"for_": "for"}):
    """The answer to `ack.request` (`for`), a window ack, or both. Without `recv_window` the last one told stands."""

    for_: Name | None = None
    ack_seq: Int | None = None
    ack_bitmap: Bitmap = "0"
    recv_window: Int | None = None
    stop: Inventory = ()

    @property
    def is_window_ack(self) -> bool:
        return self.recv_window is not None or self.ack_seq is not None


class WindowAck(ControlAck, frozen=True, omit_defaults=False):
    """A window ack as we write it: every field is there, for the simplest of readers."""


class ResourceMetrics(Wire, frozen=True):
    disk_bytes_in_use: Count = 0
    mem_bytes_in_use: Count = 0
    sessions_active: Count = 0
    eviction_candidates: Count = 0
    last_gc_seconds: float = 0.0


class HeartbeatMetrics(Wire, frozen=True):
    cpu_pct: float = 0.0
    mem_pct: Percent = 0.0
    disk_pct: Percent = 0.0
    inflight: Count = 0
    latency_ms: float = 0.0
    resource: ResourceMetrics = ResourceMetrics()


class HeartbeatPackages(Wire, frozen=True):
    digest: Annotated[str, Meta(max_length=limits.NAME_CHARS)] = ""


class Heartbeat(Wire, frozen=True):
    """`attempts` names every attempt taken and not yet under `ack_seq` (PROTOCOL §7)."""

    healthy: bool = True
    draining: bool = False
    attempts: Inventory = ()
    metrics: HeartbeatMetrics = HeartbeatMetrics()
    packages: HeartbeatPackages = HeartbeatPackages()


class LanePlace(Wire, frozen=True):
    """A lane of the tenant, and where its scheduler is reached; None: where the worker has reached this one."""

    lane: LaneNumber
    location: Name | None = None


class Lanes(Wire, frozen=True):
    """All lanes of the tenant beside lane 0: a worker keeps a session with each."""

    lanes: Annotated[tuple[LanePlace, ...], Meta(max_length=limits.MAX_LANES)] = ()


class Slots(Wire, frozen=True):
    """So many slots of the worker are for this lane from now on. The answer says that the scheduler counts so."""

    slots: Count


class Hunger(Wire, frozen=True, omit_defaults=False):
    """How many tasks wait for a slot in this lane, and of how many runs. The newest one counts."""

    tasks: Count = 0
    runs: Count = 0


class ControlError(Wire, frozen=True, rename={"for_": "for"}):
    """A frame could not be used. Unsequenced, both directions, never answered."""

    for_: Name
    code: Name
    message: Text = ""
    pointer: Text | None = None


FRAMES: Final[tuple[FrameType, ...]] = (
    FrameType(HANDSHAKE, Handshake, "scheduler"),
    FrameType(REGISTER, Register, "scheduler"),
    FrameType(SESSION_ACCEPT, SessionAccept, "worker"),
    FrameType(RESUME, Resume, "scheduler"),
    FrameType(RESET, Reset, "both"),
    FrameType(DRAIN, ControlDrain, "worker"),
    FrameType(ACK, ControlAck, "both"),
    FrameType(HEARTBEAT, Heartbeat, "scheduler"),
    FrameType(LANES, Lanes, "worker"),
    FrameType(SLOTS, Slots, "scheduler"),
    FrameType(HUNGER, Hunger, "worker"),
    FrameType(ERROR, ControlError, "both"),
)

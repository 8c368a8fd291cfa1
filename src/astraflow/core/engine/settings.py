"""The numbers of an engine, checked together."""

from __future__ import annotations

from typing import Literal

import msgspec

from astraflow.core import errors
from astraflow.core.protocol.limits import (
    DISPATCH_ACK_TIMEOUT_S,
    FENCE_RATIO,
    HEARTBEAT_INTERVAL_S,
    INLINE_RESULT_BYTES,
    LEASE_TTL_S,
    PRESSED_DISK_PCT,
    PRESSED_MEM_PCT,
)


class Pressure(msgspec.Struct, frozen=True):
    """Shares of a worker's memory and disk that are in use, in percent."""

    mem_pct: float
    disk_pct: float


class EngineSettings(msgspec.Struct, frozen=True):
    """Durations in seconds unless the name says otherwise. Defaults: PROTOCOL §5."""

    lease_ttl_s: float = LEASE_TTL_S
    heartbeat_interval_s: float = HEARTBEAT_INTERVAL_S
    dispatch_ack_timeout_s: float = DISPATCH_ACK_TIMEOUT_S
    cancel_grace_ms: int = 30_000
    stop_overdue_s: float = 15.0
    """After the grace: then a stop is ended without the worker's word (PROTOCOL §5.7)."""
    timeout_slack_s: float = 5.0
    """The worker ends an attempt at its timeout; the scheduler steps in only this much later."""
    resource_grace_s: float = 30.0
    """How long a task waits for the lost worker that holds its resource."""
    resource_lost: Literal["fail", "rebuild"] = "fail"
    """What a task does whose resource is gone, unless its node says so."""
    result_schemas: Literal["off", "warn", "fail"] = "warn"
    """What becomes of a result that does not fit the schema of its node type."""
    keeps_copies: bool = False
    """Whether there is a blob store for copies of resources."""
    cleanup_overdue_s: float = 10.0
    """After a run: then a worker is asked for each thing that it has not said to be gone."""
    inline_limit_bytes: int = INLINE_RESULT_BYTES
    forced_reference_types: frozenset[str] = frozenset()
    """Types of artifacts that must stay on their worker, whatever their size (seed 003 §6)."""
    affinity_ttl_s: float = 3600.0
    affinity_grace_s: float = 30.0
    pressed_at: Pressure = Pressure(PRESSED_MEM_PCT, PRESSED_DISK_PCT)
    relieved_below: Pressure = Pressure(85.0, 90.0)
    """PROTOCOL §7: auto-drain, "lifted below a lower mark", so that a worker at the mark does not flap."""
    stall_s: float = 1.0
    """A pause of the scheduler's own from which on it first listens before it expires anything."""
    say_waiting_after_s: float = 1.0
    say_lasting_after_s: float = 5.0
    """A wait for a slot or a concurrency key that lasts so long becomes a fact."""
    hold_after_s: float = 30.0
    """A request for a part of a machine that has waited so long gets a worker held for it."""
    remember_submissions_s: float = 24 * 3600.0
    """P3: for so long a repeated submission is answered with the run that it made."""
    max_active_tasks: int = 1_200_000
    """Active tasks in memory; beyond it a submission is refused with a code (P16)."""

    def __post_init__(self) -> None:
        # R14: a lease of fewer than three heartbeats is renewed too late for its own fence (0.6).
        if self.lease_ttl_s * FENCE_RATIO < 2 * self.heartbeat_interval_s:
            raise errors.Refused(
                errors.CONFIG_INVALID,
                f"the fence, {FENCE_RATIO} x lease_ttl_s, must cover two heartbeat intervals: "
                f"{self.lease_ttl_s} s, {self.heartbeat_interval_s} s",
                pointer="/lease_ttl_s",
            )

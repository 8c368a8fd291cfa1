"""HTTP worker pools: where tasks are pushed to, for workers that hold no session (PROTOCOL §9).

Rule 1: to placement a pool is one worker. It offers packages, has slots, and is online unless it is paused. What is
        behind its URL, and how many, nobody here knows.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from astraflow.core.contract.words import DispatcherKind
from astraflow.core.ids import POOL_PREFIX

ANY_VERSION: Final = "*"
"""A pool that offers a package so runs whatever version a node asks for."""
START_TIMEOUT_S: Final[Mapping[DispatcherKind, float]] = {
    "http": 60.0,
    "cloud_tasks": 600.0,
    "nats": 600.0,
}
"""PROTOCOL §9: "Not started within `start_timeout` (60 s for `http`, 10 min for queues): the attempt is lost"."""
HEARTBEAT_INTERVAL_S: Final = 30.0
HEARTBEAT_TIMEOUT_S: Final = 90.0
CANCEL_GRACE_S: Final = 30.0
MAX_SECONDS: Final = 7 * 86_400.0
DEFAULT_WORKSPACE: Final = "default"


class PoolPackage(msgspec.Struct, frozen=True):
    """A package that a pool can run; `ANY_VERSION` stands for all of its versions."""

    name: str
    version: str = ANY_VERSION


class PoolRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A pool as it is stored. Durations in seconds."""

    tenant: str
    name: str
    dispatcher: DispatcherKind = "http"
    url: str
    packages: tuple[PoolPackage, ...]
    labels: Mapping[str, str] = {}
    max_parallel: int = 10
    per_node_limits: Mapping[str, int] = {}
    start_timeout_s: float = START_TIMEOUT_S["http"]
    heartbeat_interval_s: float = HEARTBEAT_INTERVAL_S
    heartbeat_timeout_s: float = HEARTBEAT_TIMEOUT_S
    cancel_grace_s: float = CANCEL_GRACE_S
    token_ttl_s: int = 3_600
    workspace: str = DEFAULT_WORKSPACE
    callback_url: str = ""
    """Where its workers report to; empty: the address of the scheduler."""
    options: Mapping[str, str] = {}
    """Of the dispatcher: the queue of `cloud_tasks`, the subject of `nats`."""
    sealed_secret: bytes = b""
    """The shared secret, encrypted by the shell; empty: none."""
    is_paused: bool = False
    created_at: int = 0
    updated_at: int = 0
    updated_by: str = ""

    @property
    def worker_id(self) -> str:
        return POOL_PREFIX + self.name

"""The supervisor of package hosts: starts, feeds, limits and kills the processes that run package code."""

from __future__ import annotations

from astraflow.worker.hosts.builtin import core_package
from astraflow.worker.hosts.orphans import kill_orphans
from astraflow.worker.hosts.pool import HostPool, HostStats
from astraflow.worker.hosts.settings import HostEvents, HostSpec, PoolSettings

__all__ = [
    "HostEvents",
    "HostPool",
    "HostSpec",
    "HostStats",
    "PoolSettings",
    "core_package",
    "kill_orphans",
]

"""The supervisor of package hosts: starts, feeds, limits and kills the processes that run package code."""

from __future__ import annotations

from astraflow.worker.hosts.builtin import core_package
from astraflow.worker.hosts.left_overs import kill_left_overs
from astraflow.worker.hosts.pool import HostPool, HostStats
from astraflow.worker.hosts.settings import HostEvents, HostSettings, HostSpec

__all__ = [
    "HostEvents",
    "HostPool",
    "HostSettings",
    "HostSpec",
    "HostStats",
    "core_package",
    "kill_left_overs",
]

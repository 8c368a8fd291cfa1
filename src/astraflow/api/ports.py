"""What the HTTP surface asks: a scheduler."""

from __future__ import annotations

from astraflow.scheduler.orders import (
    Drain,
    InstallPackage,
    Rebind,
    Undrain,
    UninstallPackage,
    WorkerCommand,
)
from astraflow.scheduler.service import Scheduler as SchedulerPort

__all__ = [
    "Drain",
    "InstallPackage",
    "Rebind",
    "SchedulerPort",
    "Undrain",
    "UninstallPackage",
    "WorkerCommand",
]

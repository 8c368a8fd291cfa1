"""What may be ordered of a worker, as REST writes it."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from astraflow.core.protocol.limits import DRAIN_DEADLINE_MAX_S, NAME_CHARS

__all__ = [
    "Drain",
    "InstallPackage",
    "Rebind",
    "Undrain",
    "UninstallPackage",
    "WorkerCommand",
]

_Name = Annotated[str, Meta(min_length=1, max_length=NAME_CHARS)]


class Drain(Struct, frozen=True, tag="drain", rename="camel", forbid_unknown_fields=True):
    """Take nothing new, finish what runs; at the deadline stop it."""

    reason: _Name | None = None
    deadline_ms: Annotated[int, Meta(ge=0, le=int(DRAIN_DEADLINE_MAX_S) * 1000)] | None = None


class Undrain(Struct, frozen=True, tag="undrain", forbid_unknown_fields=True):
    """Take work again."""


class Rebind(Struct, frozen=True, tag="rebind", forbid_unknown_fields=True):
    """Forget what binds runs to this worker."""


class InstallPackage(Struct, frozen=True, tag="pkg.install", forbid_unknown_fields=True):
    name: _Name
    version: _Name


class UninstallPackage(Struct, frozen=True, tag="pkg.uninstall", forbid_unknown_fields=True):
    name: _Name
    version: _Name


WorkerCommand = Drain | Undrain | Rebind | InstallPackage | UninstallPackage

"""Resources of a worker: files on its disk, and objects in the memory of its hosts."""

from __future__ import annotations

from astraflow.worker.resources.broker import RegistryBroker
from astraflow.worker.resources.registry import LocalResourceRegistry
from astraflow.worker.resources.resource import Lessee, LocalResource, Maker
from astraflow.worker.resources.service import ResourceService
from astraflow.worker.resources.terms import ResourceLimits, Terms

__all__ = [
    "Lessee",
    "LocalResource",
    "LocalResourceRegistry",
    "Maker",
    "RegistryBroker",
    "ResourceLimits",
    "ResourceService",
    "Terms",
]

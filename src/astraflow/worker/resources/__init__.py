"""What a worker keeps between attempts: files on its disk, and objects in the memory of its hosts."""

from __future__ import annotations

from astraflow.worker.resources.keeper import ResourceKeeper
from astraflow.worker.resources.registry import ResourceRegistry
from astraflow.worker.resources.resource import Lessee, Maker, Resource
from astraflow.worker.resources.service import ResourceService
from astraflow.worker.resources.terms import ResourceLimits, Terms

__all__ = [
    "Lessee",
    "Maker",
    "Resource",
    "ResourceKeeper",
    "ResourceLimits",
    "ResourceRegistry",
    "ResourceService",
    "Terms",
]

"""Room for a newcomer: what has to go, in which order, and when that is not enough."""

from __future__ import annotations

from typing import Final

from astraflow import errors
from astraflow.worker.resources.resource import Kind, Resource, refused
from astraflow.worker.resources.shelf import Shelf
from astraflow.worker.resources.terms import ResourceLimits

__all__ = ["candidates", "victims"]

MAX_RESOURCES: Final = 100_000
"""Entries at once: what a ledger is read through in a second."""


def candidates(shelf: Shelf, kind: Kind, now: int) -> list[Resource]:
    """What could go: expired ones first, what is in no result before what is, the longest unused first."""
    free = [
        one
        for one in shelf.live()
        if one.kind == kind and one.state == "ready" and not one.in_use_count
    ]
    return sorted(free, key=lambda one: (one.expires_at > now, one.listed, one.used_at))


def victims(
    shelf: Shelf,
    limits: ResourceLimits,
    resource: Resource,
    replaced: Resource | None,
    now: int,
    scratch_bytes: int = 0,
) -> list[Resource]:
    """What has to go for it, beside the one that it replaces. `scratch_bytes`: files that are not registered.

    Raises:
        Refused: `E.RESOURCE.QUOTA`, all that could go would not be enough.
    """
    is_file = resource.kind == "file"
    limit = limits.max_disk_bytes - scratch_bytes if is_file else limits.max_mem_bytes
    places = MAX_RESOURCES if is_file else limits.max_sessions
    over = shelf.used[resource.kind] + resource.size_bytes - limit
    crowd = (len(shelf) if is_file else shelf.sessions) + 1 - places
    if replaced is not None and replaced.kind == resource.kind and replaced.state == "ready":
        over -= replaced.size_bytes
        crowd -= 1
    chosen: list[Resource] = []
    if over <= 0 and crowd <= 0:
        return chosen
    for one in candidates(shelf, resource.kind, now):
        if over <= 0 and crowd <= 0:
            break
        if one is not replaced:
            chosen.append(one)
            over -= one.size_bytes
            crowd -= 1
    if over > 0 or crowd > 0:
        message = f"no room for a {resource.kind} resource of {resource.size_bytes} bytes"
        raise refused(errors.RESOURCE_QUOTA, message, resource.resource_id)
    return chosen

"""Eviction: which resources are evicted to make room, and in which order."""

from __future__ import annotations

from typing import Final, NamedTuple

from astraflow.core import errors
from astraflow.worker.resources.index import ResourceIndex
from astraflow.worker.resources.resource import Kind, LocalResource, refused
from astraflow.worker.resources.terms import ResourceLimits

MAX_RESOURCES: Final = 100_000
"""The most entries: the database of so many is read in a second."""


class Room(NamedTuple):
    """A unit of eviction: a file, or an object with all its registrations."""

    size_bytes: int
    members: list[LocalResource]


def rooms(index: ResourceIndex, kind: Kind, now: int) -> list[Room]:
    """What could go: expired ones first, what is in no result before what is, the longest unused first."""
    free: dict[str, list[LocalResource]] = {}
    for one in index.live():
        if one.kind == kind and one.state == "ready" and not one.in_use_count:
            free.setdefault(one.room_key, []).append(one)
    # An object that somebody else uses stays, however many have let go of it.
    whole = [
        Room(index.room_bytes(key), members)
        for key, members in free.items()
        if len(members) == index.registrations(key)
    ]
    return sorted(whole, key=lambda room: max(_order(one, now) for one in room.members))


def _order(resource: LocalResource, now: int) -> tuple[bool, bool, int]:
    return resource.expires_at > now, resource.listed, resource.used_at


def victims(
    index: ResourceIndex,
    limits: ResourceLimits,
    resource: LocalResource,
    replaced: LocalResource | None,
    now: int,
    scratch_bytes: int = 0,
) -> list[LocalResource]:
    """What has to go for it, beside the one that it replaces. `scratch_bytes`: files that are not registered.

    Raises:
        Refused: `E.RESOURCE.QUOTA`, all that could go would not be enough.
    """
    is_file = resource.kind == "file"
    is_shared = index.registrations(resource.room_key) > 0
    limit = limits.max_disk_bytes - scratch_bytes if is_file else limits.max_mem_bytes
    places = MAX_RESOURCES if is_file else limits.max_sessions
    over = index.used[resource.kind] + (0 if is_shared else resource.size_bytes) - limit
    crowd = (len(index) if is_file else index.sessions) + (not is_shared) - places
    if replaced is not None and _goes_with(index, replaced, resource.kind):
        over -= replaced.size_bytes
        crowd -= 1
    chosen: list[LocalResource] = []
    if over <= 0 and crowd <= 0:
        return chosen
    for room in rooms(index, resource.kind, now):
        if over <= 0 and crowd <= 0:
            break
        if replaced in room.members or (crowd <= 0 and not room.size_bytes):
            continue  # what takes no room makes none
        chosen += room.members
        over -= room.size_bytes
        crowd -= 1
    if over > 0 or crowd > 0:
        message = f"no room for a {resource.kind} resource of {resource.size_bytes} bytes"
        raise refused(errors.RESOURCE_QUOTA, message, resource.resource_id)
    return chosen


def _goes_with(index: ResourceIndex, replaced: LocalResource, kind: Kind) -> bool:
    """Whether the end of it frees its room."""
    is_last = index.registrations(replaced.room_key) == 1
    return is_last and replaced.kind == kind and replaced.state == "ready"

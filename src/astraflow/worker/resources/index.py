"""The resource index: entries and tombstones by id and by token, their sizes, and their rows in the database.

An id names at most one entry: a live one, or the tombstone of the last one.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, ValuesView
from pathlib import Path
from typing import Final

from astraflow.clock import Clock
from astraflow.core import errors
from astraflow.worker.resources.database import ResourceDatabase
from astraflow.worker.resources.resource import Kind, LocalResource, State

_log: Final = logging.getLogger(__name__)

TOMBSTONE_S: Final = 86_400
MAX_TOMBSTONES: Final = 10_000


class ResourceIndex:
    """Entries and tombstones. `close` it."""

    def __init__(self, path: Path, clock: Clock) -> None:
        """Raises StoreError when the database cannot be opened."""
        self._database = ResourceDatabase(path)
        self._clock = clock
        self._by_id: dict[str, LocalResource] = {}
        self._live: dict[str, LocalResource] = {}
        self.used: dict[Kind, int] = {"file": 0, "memory": 0}
        self.sessions = 0
        self._rooms: dict[
            str, list[int]
        ] = {}  # by room key: how many registrations, how many bytes

    def close(self) -> None:
        self._database.close()

    def load(self) -> Iterator[LocalResource]:
        """Everything that was written down. Of several rows with one id the last counts; the others are given too,
        as gone, so that what they left can be taken away."""
        newest: dict[str, LocalResource] = {}
        for resource in self._database.load():
            older = newest.get(resource.resource_id)
            if older is not None:
                older.gone_at = older.gone_at or self._clock.wall_ms()
                self._delete(older.token)
                yield older
            newest[resource.resource_id] = resource
        for resource in newest.values():
            self._by_id[resource.resource_id] = resource
            if not resource.is_gone:
                self._live[resource.token] = resource
                self._count(resource, 1)
            yield resource

    # -- reading ----------------------------------------------------------------------------

    def find(self, resource_id: str) -> LocalResource | None:
        """The one that has this id, or had it last."""
        return self._by_id.get(resource_id)

    def find_token(self, token: str) -> LocalResource | None:
        """The one of a registration, while it is here."""
        return self._live.get(token)

    def live(self) -> ValuesView[LocalResource]:
        return self._live.values()

    def tokens(self) -> frozenset[str]:
        return frozenset(self._live)

    def __len__(self) -> int:
        return len(self._live)

    # -- changing ---------------------------------------------------------------------------

    def add(self, resource: LocalResource) -> None:
        """Put one there, in the place of a tombstone of its id. Its row was saved before."""
        old = self._by_id.get(resource.resource_id)
        if old is not None:
            assert old.is_gone, "what has the id is dropped first"
            self._delete(old.token)
        self._by_id[resource.resource_id] = self._live[resource.token] = resource
        self._count(resource, 1)

    def save(self, resource: LocalResource) -> None:
        """Raises StoreError when nothing can be written."""
        self._database.save(resource)

    def note(self, resource: LocalResource) -> None:
        """Write down a change. One that cannot be written is lost at the next start, and nothing before."""
        try:
            self._database.save(resource)
        except errors.StoreError as problem:
            _log.warning("%s", problem.message)

    def leave(self, resource: LocalResource, reason: str) -> None:
        """It is on its way out: it takes no room from now on."""
        self._count(resource, -1)
        resource.state, resource.reason = "evicting", reason

    def bury(self, resource: LocalResource, state: State, reason: str) -> None:
        """It is gone; the tombstone stays for a day."""
        self._count(resource, -1)
        del self._live[resource.token]
        resource.state, resource.reason = state, reason
        resource.gone_at = self._clock.wall_ms()
        self.note(resource)

    def drop(self, resource: LocalResource) -> None:
        """It is gone without a trace, because its id has a new owner."""
        self._count(resource, -1)
        del self._live[resource.token]
        del self._by_id[resource.resource_id]
        self._delete(resource.token)

    def drop_tombstones(self) -> None:
        """Those that are older than a day, and the oldest of too many."""
        now = self._clock.wall_ms()
        stones = [one for one in self._by_id.values() if one.gone_at is not None]
        stones.sort(key=lambda one: one.gone_at or 0)
        too_many = len(stones) - MAX_TOMBSTONES
        for number, stone in enumerate(stones):
            if number < too_many or (stone.gone_at or 0) + TOMBSTONE_S * 1000 <= now:
                del self._by_id[stone.resource_id]
                self._delete(stone.token)

    def check(self) -> None:
        """Assert that the room is what the entries take."""
        for kind in self.used:
            counted = {
                one.room_key: self._rooms[one.room_key][1]
                for one in self._live.values()
                if one.kind == kind and _counts(one)
            }
            assert self.used[kind] == sum(counted.values())
            assert kind == "file" or self.sessions == len(counted)
        assert not any(one.is_gone for one in self._live.values())

    def registrations(self, room_key: str) -> int:
        """How many take this one room."""
        return self._rooms.get(room_key, [0])[0]

    def room_bytes(self, room_key: str) -> int:
        return self._rooms.get(room_key, [0, 0])[1]

    def _count(self, resource: LocalResource, sign: int) -> None:
        if not _counts(resource):
            return
        room = self._rooms.setdefault(resource.room_key, [0, resource.size_bytes])
        room[0] += sign
        if room[0] == (1 if sign > 0 else 0):  # the first has come, or the last has gone
            self.used[resource.kind] += sign * room[1]
            self.sessions += sign * (resource.kind == "memory")
        if not room[0]:
            del self._rooms[resource.room_key]

    def _delete(self, token: str) -> None:
        try:
            self._database.delete(token)
        except errors.StoreError as problem:
            _log.warning("%s", problem.message)


def _counts(resource: LocalResource) -> bool:
    return resource.state == "ready" and not resource.is_gone

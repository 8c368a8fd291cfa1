"""Versions of packages as the scheduler knows them: which are published, and which one is active.

Publishing is the repository's business; it tells the engine what is there. The active version is a fact of the fleet:
a rollout that ends well changes it in the same transaction.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from astraflow.core.fleet.facts import ABSENT, FleetFact, Table, find_move, rows
from astraflow.core.workflow.versions import VersionKey, parse_version

EVERY_TENANT: Final = "*"
"""The tenant of packages that come with the installation."""


class PublishedVersion(msgspec.Struct, frozen=True):
    """An archive that workers can install, and how a worker knows that it got the right one."""

    tenant: str
    name: str
    version: str
    """As it was published: whoever asks may spell the same version in another way."""
    sha256: str
    signature: str | None = None
    is_yanked: bool = False


class ActiveVersionRecord(msgspec.Struct, frozen=True, gc=False):
    """The version of a package that nodes without one get, and the one before it, for a rollback."""

    tenant: str
    name: str
    version: str
    previous: str | None
    updated_at: int
    updated_by: str = ""


class VersionActivated(FleetFact, frozen=True):
    """Nodes without a version get this one from now on."""

    name: str
    version: str
    by: str = ""


def _activated(before: ActiveVersionRecord | None, fact: VersionActivated) -> ActiveVersionRecord:
    previous = None if before is None else before.version
    return ActiveVersionRecord(fact.tenant, fact.name, fact.version, previous, fact.at, fact.by)


TRANSITIONS: Final[Table] = rows((ABSENT, "active"), VersionActivated, _activated, "active")


class VersionTable:
    """What is published, and the active versions that somebody has set."""

    def __init__(self) -> None:
        self._published: dict[tuple[str, str, VersionKey], PublishedVersion] = {}
        self._active: dict[tuple[str, str], ActiveVersionRecord] = {}

    def __iter__(self) -> Iterator[ActiveVersionRecord]:
        return iter(self._active.values())

    def publish(self, version: PublishedVersion) -> None:
        """A version is there, or is yanked, or not any more."""
        key = parse_version(version.version)
        assert key is not None, "a package was published without a proper version"
        self._published[version.tenant, version.name, key] = version

    def find(self, tenant: str, name: str, version: str) -> PublishedVersion | None:
        """A version that workers of the tenant can install: its own come before those of the installation."""
        key = parse_version(version)
        if key is None:
            return None
        published = self._published
        return published.get((tenant, name, key)) or published.get((EVERY_TENANT, name, key))

    def apply(self, fact: VersionActivated) -> ActiveVersionRecord:
        """Fold a fact; returns the active version after it."""
        before = self._active.get((fact.tenant, fact.name))
        state = ABSENT if before is None else "active"
        after: ActiveVersionRecord = find_move(TRANSITIONS, state, fact).apply(before, fact)
        self.put(after)
        return after

    def put(self, active: ActiveVersionRecord) -> None:
        self._active[active.tenant, active.name] = active

    def active(self, tenant: str, name: str) -> ActiveVersionRecord | None:
        """The version that somebody has set, if anybody has."""
        return self._active.get((tenant, name))

"""Which facts may be written while nodes of two releases share a store.

Rule 1: a release reads all facts up to its `FACTS_VERSION`. A value of the site says up to which version facts are
        written. It never falls, and software that reads less does not open the store.
Rule 2: whoever adds a type of fact, adds a field to one, or gives a row another meaning, adds one to `FACTS_VERSION`,
        unless the release with the new number is yet to come, and names that number: in `facts_version` of the type, or
        for the field in `newer_fields`. An old field gets no new values: a new field says what is new.
Rule 3: what reads comes with that release. What writes comes one release later, or asks `View.may_write` first and
        otherwise does what the release before did; `core.runs` is told with a command. So every node can read what any
        other node has written.
Rule 4: the row writer refuses a batch with a fact that may not be written yet (`UnreadableFact`): the input is refused,
        and no older node meets it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import ClassVar, Final

import msgspec

from astraflow.core.error_kinds import Bug
from astraflow.core.errors import INTERNAL

FACTS_VERSION: Final = 1
"""The newest facts that this release reads (rule 2)."""
FIRST_FACTS: Final = 1
"""What all releases read."""

NO_FIELDS: Final[Mapping[str, int]] = MappingProxyType({})


class UnreadableFact(Bug):
    """A fact was decided that other nodes may not be able to read: a bug of ours."""


class VersionedFact(msgspec.Struct, frozen=True):
    """The base of all facts."""

    facts_version: ClassVar[int] = FIRST_FACTS
    """The first facts version that has this type."""
    newer_fields: ClassVar[Mapping[str, int]] = NO_FIELDS
    """Fields that came later, each with its facts version. At its default such a field says nothing."""


class HeldBackFacts:
    """What may not be written while only facts up to a version may. It is made when a shard is claimed, and when the
    version is raised. Mostly it is empty: then no fact is looked at."""

    def __init__(self, written: int) -> None:
        self._types: set[type[VersionedFact]] = set()
        self._fields: dict[type[VersionedFact], dict[str, object]] = {}
        for kind in _kinds_of(VersionedFact):
            if kind.facts_version > written:
                self._types.add(kind)
            later = [name for name, needed in kind.newer_fields.items() if needed > written]
            if later:
                fields = {one.name: one for one in msgspec.structs.fields(kind)}
                self._fields[kind] = {name: _default_of(fields[name]) for name in later}

    def __bool__(self) -> bool:
        return bool(self._types or self._fields)

    def check(self, facts: Iterable[VersionedFact]) -> None:
        """Raises: UnreadableFact."""
        for fact in facts:
            kind = type(fact)
            if kind in self._types:
                raise _unreadable(kind, "")
            for name, default in self._fields.get(kind, {}).items():
                if getattr(fact, name) != default:
                    raise _unreadable(kind, f".{name}")


def _kinds_of(base: type[VersionedFact]) -> Iterator[type[VersionedFact]]:
    yield base
    for kind in base.__subclasses__():
        yield from _kinds_of(kind)


def _default_of(field: msgspec.structs.FieldInfo) -> object:
    if field.default_factory is not msgspec.NODEFAULT:
        return field.default_factory()
    assert field.default is not msgspec.NODEFAULT, f"a newer field has a default: {field.name}"
    return field.default


def _unreadable(kind: type[VersionedFact], field: str) -> UnreadableFact:
    return UnreadableFact(
        INTERNAL, f"other nodes may not be able to read it yet: {kind.__name__}{field}"
    )

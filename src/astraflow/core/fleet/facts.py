"""What all facts about the fleet share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from astraflow.core.errors import INTERNAL, Bug
from astraflow.core.facts_version import VersionedFact
from astraflow.core.ids import NO_SESSION, SessionId


class FleetFact(VersionedFact, frozen=True):
    """The base of all facts about workers and what they keep. `at`: wall clock, milliseconds."""

    tenant: str
    at: int


class Audited(FleetFact, frozen=True):
    """Somebody did something that the audit log keeps, or was refused it (PROTOCOL §6)."""

    who: str
    action: str
    corr: str | None = None
    code: str | None = None
    worker_id: str = ""
    session_id: SessionId = NO_SESSION
    subject: str = ""
    sent_id: str = ""
    """Under which the owner of another shard has sent it; empty: nobody has."""


class Announced(FleetFact, frozen=True):
    """Something has changed that the engine does not decide about: readers of the tenant's stream are told."""

    kind: str
    body: bytes
    """As JSON."""


class NoTransition(Bug):
    """A fact met a state that has no row for it: a bug of ours."""

    def __init__(self, state: object, fact: FleetFact) -> None:
        super().__init__(INTERNAL, f"no transition from {state!r} by {fact!r}")


Apply = Callable[..., Any]
"""The record before and the fact give the record after, or change it in place."""

ABSENT: Final = "absent"
"""The state of a record that does not exist."""


class Move(msgspec.Struct, frozen=True):
    """A row of a transition table: what a fact does, and the states that it can lead to."""

    apply: Apply
    to: tuple[str, ...]


Table = Mapping[tuple[str, type[FleetFact]], Move]


def rows(
    states: tuple[str, ...], fact: type[FleetFact], apply: Apply, *to: str
) -> dict[tuple[str, type[FleetFact]], Move]:
    """The same row for several states. `to`: where it leads; none named: it stays."""
    return {(state, fact): Move(apply, to or (state,)) for state in states}


def find_move(table: Table, state: str, fact: FleetFact) -> Move:
    """Raises: NoTransition."""
    move = table.get((state, type(fact)))
    if move is None:
        raise NoTransition(state, fact)
    return move

"""A batch: the facts of one transaction, and the effects that follow it."""

from __future__ import annotations

import msgspec

from astraflow.core.engine.commands import SubmitRun
from astraflow.core.engine.effects import Effect
from astraflow.core.fleet.facts import FleetFact
from astraflow.core.ids import RunId
from astraflow.core.runs.facts import Fact
from astraflow.core.runs.run import RunRecord


class NumberedFact(msgspec.Struct, frozen=True, gc=False):
    """A fact with the numbers of its first and last event: 1, 2, … without gaps over the life of a run."""

    run_id: RunId
    first: int
    last: int
    fact: Fact
    cause: str | None = None
    """The id of the frame or command that it was decided for; None: time has passed, or it was read from the store."""
    run: RunRecord | None = None
    """The run, as it is after the batch; None: the fact was read from the store."""


class FleetChange(msgspec.Struct, frozen=True):
    """A fact about the fleet, and the record that it led to; None: there is no record any more, or never was one."""

    fact: FleetFact
    after: object = None
    cause: str | None = None
    """As in `NumberedFact`."""


class Batch:
    """What is decided and not yet committed."""

    __slots__ = ("effects", "facts", "fleet", "submitted")

    def __init__(self) -> None:
        self.facts: list[NumberedFact] = []
        self.fleet: list[FleetChange] = []
        self.submitted: dict[str, SubmitRun] = {}
        """The requests behind the `RunAccepted` of this batch, by run id."""
        self.effects: list[Effect] = []

    @property
    def has_facts(self) -> bool:
        return bool(self.facts or self.fleet)

    @property
    def is_empty(self) -> bool:
        return not self.facts and not self.effects and not self.fleet

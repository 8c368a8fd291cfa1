"""A batch: the facts of one transaction, and the effects that follow it."""

from __future__ import annotations

import msgspec

from astraflow.core.engine.commands import SubmitRun
from astraflow.core.engine.effects import Effect
from astraflow.core.fleet.facts import FleetFact
from astraflow.core.ids import RunId, SessionId
from astraflow.core.runs.facts import AttemptStarted, Fact, RunAccepted
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

    __slots__ = ("delivered", "effects", "facts", "fleet", "submitted")

    def __init__(self) -> None:
        self.facts: list[NumberedFact] = []
        self.fleet: list[FleetChange] = []
        self.submitted: dict[str, SubmitRun] = {}
        """The requests behind the `RunAccepted` of this batch, by run id."""
        self.effects: list[Effect] = []
        self.delivered: dict[SessionId, list[int]] = {}
        """The seqs of the frames that it came from: durable with it, and acknowledged then (R1)."""

    def deliver(self, session_id: SessionId, seq: int) -> None:
        """What this frame carried is decided: it may be acknowledged when the batch is committed."""
        seqs = self.delivered.get(session_id)
        if seqs is None:
            self.delivered[session_id] = [seq]
        else:
            seqs.append(seq)

    def accepted_runs(self) -> list[RunRecord]:
        """The runs that begin with this batch."""
        return [
            one.run for one in self.facts if one.run is not None and type(one.fact) is RunAccepted
        ]

    @property
    def may_wait(self) -> bool:
        """Whether it says nothing but that attempts have started: nobody waits for that, and a worker that registers
        says it again."""
        if not self.facts or self.effects or self.fleet or self.delivered:
            return False
        return all(type(one.fact) is AttemptStarted for one in reversed(self.facts))

    @property
    def has_facts(self) -> bool:
        return bool(self.facts or self.fleet)

    @property
    def is_empty(self) -> bool:
        return not (self.facts or self.effects or self.fleet or self.delivered)

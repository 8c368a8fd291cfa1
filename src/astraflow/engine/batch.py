"""A batch: the facts of one transaction, and what may be said once it is committed."""

from __future__ import annotations

import msgspec

from astraflow.protocol.business import Cancel, Dispatch, NextResponse
from astraflow.protocol.events import Audited, IdentityBound, Missed, RegisterArrived
from astraflow.runs.facts import Fact
from astraflow.workflow.plan import Plan

__all__ = [
    "AcceptSession",
    "Answer",
    "Batch",
    "CommitFrame",
    "DrainWish",
    "Effect",
    "Notice",
    "NumberedFact",
    "SendAnswer",
    "SendDispatch",
    "SendDrain",
    "SendStop",
    "WorkerChanged",
]


class NumberedFact(msgspec.Struct, frozen=True, gc=False):
    """A fact with the number of its first event: 1, 2, … without gaps over the life of a run."""

    run_id: str
    first: int
    fact: Fact


class Effect(msgspec.Struct, frozen=True):
    """The base of what is done after the commit."""


class SendDispatch(Effect, frozen=True):
    """Send a leased attempt to its worker, if it is still leased when the commit is done."""

    dispatch: Dispatch
    session_id: str


class SendStop(Effect, frozen=True):
    """Ask a worker to stop an attempt."""

    cancel: Cancel
    session_id: str


class SendAnswer(Effect, frozen=True):
    """Answer a call of a middleware."""

    response: NextResponse
    session_id: str


class AcceptSession(Effect, frozen=True):
    """The register is reconciled and stored: open the session."""

    session_id: str


class DrainWish(msgspec.Struct, frozen=True):
    """An operator wants a worker to take nothing new and to end when it is empty, or at the deadline."""

    reason: str = ""
    deadline_s: float | None = None


class SendDrain(Effect, frozen=True):
    """Tell a worker to drain."""

    session_id: str
    wish: DrainWish


class CommitFrame(Effect, frozen=True):
    """What this frame carried is durable: its acknowledgement may cover it (R1)."""

    session_id: str
    seq: int


class Answer(Effect, frozen=True):
    """Answer a caller of the API."""

    token: object
    run_id: str | None
    error: object = None


class WorkerChanged(msgspec.Struct, frozen=True):
    """The status of a worker is another one than before; what it is now is in the table of workers."""

    tenant: str
    worker: str


Notice = RegisterArrived | IdentityBound | Audited | Missed | WorkerChanged
"""What happened to workers and is to be kept with the facts: who they are, how they are, who was let in."""


class Batch:
    """What is decided and not yet committed."""

    __slots__ = ("effects", "facts", "finished", "notices", "plans")

    def __init__(self) -> None:
        self.facts: list[NumberedFact] = []
        self.effects: list[Effect] = []
        self.notices: list[Notice] = []
        self.plans: dict[str, Plan] = {}
        self.finished: list[str] = []

    @property
    def is_empty(self) -> bool:
        return not self.facts and not self.effects and not self.notices

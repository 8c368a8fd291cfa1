"""A batch: the facts of one transaction, and what may be said once it is committed."""

from __future__ import annotations

import msgspec

from astraflow.core.dispatch.wishes import WishKey
from astraflow.core.protocol.business import Cancel, Dispatch, NextResponse, PkgEvent
from astraflow.core.protocol.events import Audited, IdentityBound, Missed, RegisterArrived
from astraflow.core.protocol.wire import Wire
from astraflow.core.runs.facts import Fact
from astraflow.core.workflow.plan import Plan

__all__ = [
    "AcceptSession",
    "AffinityChanged",
    "Answer",
    "AskWorker",
    "Batch",
    "CommitFrame",
    "DrainWish",
    "Effect",
    "Notice",
    "NumberedFact",
    "PackageTold",
    "ResourceChanged",
    "SendAnswer",
    "SendDispatch",
    "SendDrain",
    "SendStop",
    "WishChanged",
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


class AskWorker(Effect, frozen=True):
    """Ask a worker for something about packages or resources. What asks for it is stored: after a new session it is
    asked for again."""

    session_id: str
    frame_type: str
    payload: Wire


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


class WorkerForgotten(msgspec.Struct, frozen=True):
    """A worker is no longer known: its row goes."""

    tenant: str
    worker: str


class ResourceChanged(msgspec.Struct, frozen=True):
    """A resource is other than before; how it is now is in the table, or in `view.gone`."""

    tenant: str
    worker: str
    resource_id: str


class AffinityChanged(msgspec.Struct, frozen=True):
    """An affinity key has another holder than before, or none."""

    tenant: str
    key: str


class WishChanged(msgspec.Struct, frozen=True):
    """A wish about a package is other than before."""

    key: WishKey


class PackageTold(msgspec.Struct, frozen=True):
    """A worker tells of an install: for those who watch."""

    tenant: str
    worker: str
    event: PkgEvent


Notice = (
    RegisterArrived
    | IdentityBound
    | Audited
    | Missed
    | WorkerChanged
    | WorkerForgotten
    | ResourceChanged
    | AffinityChanged
    | WishChanged
    | PackageTold
)
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

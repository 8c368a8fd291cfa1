"""Consequences: what a decision demands of the engine's tables, at once and before the commit.

The next decision of the same batch builds on them. What leaves the process is an effect (`engine.effects`), which is
performed after the commit.
"""

from __future__ import annotations

import msgspec

from astraflow.core.contract.words import RunStatus
from astraflow.core.runs.facts import StopWhy


class _Consequence(msgspec.Struct, frozen=True):
    """The base of all consequences."""


class EnqueueTask(_Consequence, frozen=True):
    """The task may be placed, after a delay."""

    task: int
    delay_s: float = 0.0


class UnqueueTask(_Consequence, frozen=True):
    """The task waits for others again: it must not be placed."""

    task: int


class StopAttempt(_Consequence, frozen=True):
    """The worker is to stop the attempt."""

    task: int
    attempt: int
    worker: str
    why: StopWhy
    grace_ms: int


class AttemptOver(_Consequence, frozen=True):
    """The attempt no longer counts: give its slot, lease and key back."""

    task: int
    attempt: int


class AnswerCall(_Consequence, frozen=True):
    """A call has ended: tell the attempt that waits for it."""

    call: int


class RefuseCall(_Consequence, frozen=True):
    """A call was not taken: tell the attempt that made it."""

    task: int
    attempt: int
    request_id: str
    code: str


class LendSlot(_Consequence, frozen=True):
    """The attempt waits for its calls (`is_lent`), or does so no longer."""

    task: int
    is_lent: bool


class WatchParked(_Consequence, frozen=True):
    """A task is parked for a time: look at it then."""

    task: int
    left_ms: int


class StoreCollected(_Consequence, frozen=True):
    """What a map has collected is too large for a result: store it, and say where."""

    task: int


class FinishRun(_Consequence, frozen=True):
    """The run has ended: drop it from memory, clean up after it."""

    status: RunStatus


Consequence = (
    EnqueueTask
    | UnqueueTask
    | StopAttempt
    | AttemptOver
    | AnswerCall
    | RefuseCall
    | LendSlot
    | WatchParked
    | StoreCollected
    | FinishRun
)

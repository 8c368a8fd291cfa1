"""Effects: what must be done because of a decision, after its facts are committed."""

from __future__ import annotations

import msgspec

from astraflow.core.runs.facts import RunStatus, StopWhy

__all__ = [
    "AnswerCall",
    "AttemptOver",
    "Effect",
    "EnqueueTask",
    "FinishRun",
    "LendSlot",
    "RefuseCall",
    "StopAttempt",
    "UnqueueTask",
]


class Effect(msgspec.Struct, frozen=True):
    """The base of all effects."""


class EnqueueTask(Effect, frozen=True):
    """The task may be placed, after a delay."""

    task: int
    delay_s: float = 0.0


class UnqueueTask(Effect, frozen=True):
    """The task waits for others again: it must not be placed."""

    task: int


class StopAttempt(Effect, frozen=True):
    """Ask the worker to stop the attempt."""

    task: int
    attempt: int
    worker: str
    why: StopWhy
    grace_ms: int


class AttemptOver(Effect, frozen=True):
    """The attempt no longer counts: give its slot, lease and key back."""

    task: int
    attempt: int


class AnswerCall(Effect, frozen=True):
    """A call has ended: tell the attempt that waits for it."""

    call: int


class RefuseCall(Effect, frozen=True):
    """A call was not taken: tell the attempt that made it."""

    task: int
    attempt: int
    request_id: str
    code: str


class LendSlot(Effect, frozen=True):
    """The attempt waits for its calls (`is_lent`), or does so no longer."""

    task: int
    is_lent: bool


class FinishRun(Effect, frozen=True):
    """The run has ended: drop it from memory, clean up after it."""

    status: RunStatus

"""Effects: what must be done because of a decision, after its facts are committed."""

from __future__ import annotations

import msgspec

from astraflow.runs.facts import RunStatus, StopWhy

__all__ = ["AttemptOver", "Effect", "EnqueueTask", "FinishRun", "StopAttempt"]


class Effect(msgspec.Struct, frozen=True):
    """The base of all effects."""


class EnqueueTask(Effect, frozen=True):
    """The task may be placed, after a delay."""

    task: int
    delay_s: float = 0.0


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


class FinishRun(Effect, frozen=True):
    """The run has ended: drop it from memory, clean up after it."""

    status: RunStatus

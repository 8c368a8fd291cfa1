"""Planted bugs of waits, approvals and signals."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any
from unittest.mock import patch

import msgspec

from astraflow.core.engine.view import View
from astraflow.core.engine.wait_reasons import Reasons
from astraflow.core.runs import controls

__all__ = ["earlysignal", "resentsignal", "signaltwice", "silentwait", "waitforgotten"]


def signaltwice() -> AbstractContextManager[Any]:
    """A message that a node has taken stays."""
    take_signal = controls._take_signal

    def broken(decision: Any, task: int, number: int) -> None:
        signal = decision.run.signals[number]
        take_signal(decision, task, number)
        decision.run.signals[number] = signal

    return patch.object(controls, "_take_signal", broken)


def resentsignal() -> AbstractContextManager[Any]:
    """A message that is sent again counts again."""
    receive_signal = controls.receive_signal

    def broken(decision: Any, command: Any) -> None:
        decision.run.signal_ids.clear()
        receive_signal(decision, command)

    return patch("astraflow.core.runs.decisions.receive_signal", broken)


def waitforgotten() -> AbstractContextManager[Any]:
    """Nobody looks at what is parked until a time."""
    return patch.object(View, "watch_parked", lambda view, run, task, left_ms: None)


def earlysignal() -> AbstractContextManager[Any]:
    """A message of any name is taken."""
    receive_signal = controls.receive_signal

    def broken(decision: Any, command: Any) -> None:
        names = {"paid": "shipped", "shipped": "paid"}
        swapped = msgspec.structs.replace(command, name=names[command.name])
        before = decision.run.signal_count
        receive_signal(decision, command)
        for task in list(decision.run.parked):
            reason = decision.run.tasks[task].state.waiting_for
            is_other = (reason.kind, reason.detail) == ("signal", swapped.name)
            if is_other and before in decision.run.signals:
                controls._take_signal(decision, task, before)
                return

    return patch("astraflow.core.runs.decisions.receive_signal", broken)


def silentwait() -> AbstractContextManager[Any]:
    """A task whose concurrency key is taken does not say what it waits for."""
    reason_of = Reasons.of

    def broken(reasons: Reasons, run: Any, task: int) -> Any:
        reason = reason_of(reasons, run, task)
        return None if reason is not None and reason.kind == "key" else reason

    return patch.object(Reasons, "of", broken)

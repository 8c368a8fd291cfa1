"""Planted bugs of HTTP pools: each takes one rule of PROTOCOL §9 away."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any
from unittest.mock import patch

from astraflow.core.engine import callbacks as engine_callbacks
from astraflow.core.engine.effects import AnswerCallback
from astraflow.core.ids import is_pool
from astraflow.core.runs import callbacks
from astraflow.core.runs.commands import Lose
from tests.sim.pools import Invocation

__all__ = ["answerfirst", "anyattempt", "pushfence", "silentpool", "twostarts"]


def twostarts() -> AbstractContextManager[Any]:
    """A second delivery is told to start, too."""
    return patch.object(callbacks, "_check_invocation", lambda state, callback: None)


def anyattempt() -> AbstractContextManager[Any]:
    """A report of an attempt that is not the current one is taken."""
    return patch.object(callbacks, "_check_attempt", lambda run, task, callback: None)


def pushfence() -> AbstractContextManager[Any]:
    """An invocation runs on when nobody hears it."""
    return patch.object(Invocation, "fence_ratio", 4.0)


def answerfirst() -> AbstractContextManager[Any]:
    """The answer leaves before the report is committed."""
    on_callback = engine_callbacks.on_callback

    def broken(view: Any, callback: Any) -> bool:
        is_active = on_callback(view, callback)
        for effect in view.batch.effects:
            if isinstance(effect, AnswerCallback):
                effect.token(effect.answer)  # type: ignore[operator]
        return is_active

    return patch("astraflow.core.engine.engine.on_callback", broken)


def silentpool() -> AbstractContextManager[Any]:
    """A lease of an HTTP worker never ends, so that a dead machine is waited for."""

    def broken(view: Any) -> None:
        for lease in view.leases.expired(view.now):
            if is_pool(lease.worker_id):
                view.leases.shorten(lease, lease.ttl_s, view.now)
            else:
                view.decide(lease.run, Lose(lease.task, lease.attempt, "ended"))

    return patch("astraflow.core.engine.engine.expire_leases", broken)

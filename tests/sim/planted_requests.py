"""Planted bugs of requests for a part of a machine."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any
from unittest.mock import patch

from astraflow.core.engine import recovery
from astraflow.core.fleet.workers import WorkerEntry

__all__ = ["requestforgotten", "requestuncounted"]


def requestuncounted() -> AbstractContextManager[Any]:
    """A request is placed wherever a machine is large enough, whatever runs there."""
    return patch.object(WorkerEntry, "can_hold", WorkerEntry.could_hold)


def requestforgotten() -> AbstractContextManager[Any]:
    """A scheduler that starts does not count what runs."""
    restore = recovery._restore_lease

    def broken(view: Any, run: Any, task: int, state: Any) -> None:
        restore(view, run, task, state)
        asked = run.tasks[task].node.resources
        worker = view.workers.find(run.tenant, state.worker)
        if asked is not None and run.tasks[task].open_calls == 0:
            worker.reserved -= asked

    return patch.object(recovery, "_restore_lease", broken)

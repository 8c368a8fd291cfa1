"""Queueing many tasks of a run at once: those that a start finds waiting, and those that become ready together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, Final

from astraflow.core.dispatch.demand import demand_of
from astraflow.core.runs.consequences import Consequence, EnqueueTask
from astraflow.core.runs.run import RunRecord, Task

if TYPE_CHECKING:
    from astraflow.core.engine.view import View


def enqueue_all(view: View, run: RunRecord, waiting: Sequence[int]) -> None:
    """Queue these tasks in this order, those with a delay after it. Tasks in a row that need the same are queued
    together: a start with a million of them is waited for, and in the queue they take no memory."""
    together: list[int] = []
    last: tuple[object, ...] | None = None
    for index in waiting:
        task = run.tasks[index]
        parts: tuple[object, ...] = _parts(task.node)
        if parts == last and task.call is None and task.delay_s == 0:
            together.append(index)
            continue
        _push_together(view, run, together)
        if _is_plain(task, parts):
            together, last = [index], parts
        else:
            together, last = [], None
            view.enqueue(run, index, task.delay_s)
    _push_together(view, run, together)


def _push_together(view: View, run: RunRecord, tasks: Sequence[int]) -> None:
    if tasks:
        priority = run.tasks[tasks[0]].node.priority
        view.queue.push_all(run.run_id, tasks, demand_of(run, tasks[0], ()), priority=priority)


def queue_together(
    view: View, run: RunRecord, consequences: Iterable[Consequence]
) -> Iterator[Consequence]:
    """Queue the tasks that became ready one after the other; give the other consequences in their places."""

    def is_ready(one: Consequence) -> bool:
        return type(one) is EnqueueTask and one.delay_s == run.tasks[one.task].delay_s == 0

    for together, group in groupby(consequences, is_ready):
        if together:
            enqueue_all(view, run, [one.task for one in group if isinstance(one, EnqueueTask)])
        else:
            yield from group


# What decides where a task goes.
_parts: Final = attrgetter(
    "package_name",
    "package_version",
    "type",
    "runtime",
    "worker_labels",
    "resources",
    "host",
    "priority",
    # Those of which a plain task has none.
    "control",
    "affinity",
    "concurrency_key",
    "parameters_schema",
    "resource_refs",
    "inputs",
    "expressions",
    "takes_item",
)
_PLAIN: Final = (None, None, None, None, (), (), (), False)


def _is_plain(task: Task, parts: tuple[object, ...]) -> bool:
    """Whether where a task goes is the same whatever the run knows."""
    return task.call is None and task.delay_s == 0 and parts[8:] == _PLAIN

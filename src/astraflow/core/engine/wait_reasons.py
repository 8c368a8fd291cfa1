"""Why a task waits, and until when, where that is known (P2).

It is derived from the engine's tables when somebody looks. A task that waits for a slot, a key or its next try costs
nothing meanwhile and stores no fact: what such a task waits for may change many times a second.
"""

from __future__ import annotations

import msgspec

from astraflow.core.contract.words import WaitKind
from astraflow.core.dispatch.demand import Demand
from astraflow.core.dispatch.flows import Entry
from astraflow.core.engine.calls import lenders_of
from astraflow.core.engine.placing import why_no_place
from astraflow.core.engine.view import View
from astraflow.core.runs.retry import DISPATCH_TRIES, LOSS_BUDGET, retry_detail
from astraflow.core.runs.run import RunRecord
from astraflow.core.runs.states import Backoff, Lost


class Reason(msgspec.Struct, frozen=True):
    """What a task waits for. `until` is monotonic: when it need not wait any longer, at the latest."""

    kind: WaitKind
    detail: str
    until: float | None = None
    held_by: tuple[str, str] | None = None
    """The run and the node that have the concurrency key."""


class Reasons:
    """The reasons of many tasks at one moment: tasks with the same demand have the same."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._places: dict[Demand, Reason] = {}

    def of(self, run: RunRecord, task: int) -> Reason | None:
        """Why the task is not given to a worker; None if it does not wait for that."""
        state = run.tasks[task]
        if not state.is_waiting:
            return None
        if state.open_calls:
            calls = "a call" if state.open_calls == 1 else f"{state.open_calls} calls"
            return Reason("calls", f"{calls} of its last attempt must have ended first")
        entry = self._view.queue.find(run.run_id, task)
        if entry is None:
            # A map whose list the scheduler reads is in no queue: the fact of its wait says for what.
            told = None if state.node.control is None else state.waiting_for
            return None if told is None else Reason(told.kind, told.detail)
        if entry.ready_at is not None and entry.line is None:
            return _next_try(run, task, entry.ready_at)
        return self._key(run, entry) or self._place(entry.demand)

    def _key(self, run: RunRecord, entry: Entry) -> Reason | None:
        if entry.lock is None:
            return None
        view, key = self._view, entry.lock[0]
        if view.keys.is_free(run.tenant, key, lenders_of(run, entry.task)):
            return None
        holder = view.keys.holder(run.tenant, key)
        place = view.runs.find_task(run.tenant, holder) if holder is not None else None
        if place is None:
            return Reason("key", f"the concurrency key {key} is in use")
        other, task = place
        node_id = other.tasks[task].node.node_id
        where = "this run" if other is run else f"run {other.run_id}"
        detail = f"node {node_id} of {where} has the concurrency key {key}"
        return Reason("key", detail, held_by=(other.run_id, node_id))

    def _place(self, demand: Demand) -> Reason:
        reason = self._places.get(demand)
        if reason is None:
            waiting = why_no_place(self._view, demand)
            until = self._grace_end(demand) if waiting.kind in ("resource", "affinity") else None
            reason = Reason(waiting.kind, waiting.detail or "its turn", until)
            self._places[demand] = reason
        return reason

    def _grace_end(self, demand: Demand) -> float | None:
        """Until when the one worker that will do has time to come back, if it is away."""
        view = self._view
        if demand.pin is not None:
            return view.placing.pin_until(demand)
        assert demand.sticky is not None, (
            "only a task that is bound to a worker waits for its return"
        )
        worker = view.workers.find(demand.tenant, demand.sticky)
        if worker is None or worker.channel is not None:
            return None
        return view.lost_until(worker, view.settings.affinity_grace_s)


def _next_try(run: RunRecord, task: int, ready_at: float) -> Reason:
    state = run.tasks[task]
    if isinstance(state.state, Lost):
        detail = f"its worker was lost; loss {state.losses} of {LOSS_BUDGET}"
        return Reason("dispatch", detail, ready_at)
    if isinstance(state.state, Backoff) and state.state.is_refused:
        tries = f"; try {state.tries} of {DISPATCH_TRIES}" if state.tries else ""
        return Reason("dispatch", f"no worker took it{tries}", ready_at)
    return Reason(
        "retry",
        retry_detail(state.attempt, state.failures, state.node.retry.max_attempts),
        ready_at,
    )

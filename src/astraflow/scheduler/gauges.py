"""What a scheduler counts while it serves. Fed with committed batches: what did not happen is not counted."""

from __future__ import annotations

from typing import Final

import msgspec

from astraflow.core.engine.batch import Batch
from astraflow.core.engine.queries import Queries
from astraflow.core.fleet.installs import PackageReported
from astraflow.core.fleet.workers import HeartbeatMissed
from astraflow.core.ids import RunId
from astraflow.core.runs.facts import (
    AttemptFailed,
    AttemptLost,
    AttemptRefused,
    AttemptStarted,
    Fact,
    RunAccepted,
    RunFinished,
    TaskCancelled,
    TaskFact,
    TaskFailed,
    TaskLeased,
    TaskSkipped,
    TaskSucceeded,
    TaskWaiting,
)
from astraflow.core.runs.run import RunRecord
from astraflow.observe.metrics import Metrics
from astraflow.scheduler.current import Current

_REASONS: Final[dict[type[Fact], str]] = {
    AttemptFailed: "failed",
    AttemptLost: "lost",
    AttemptRefused: "refused",
}
_ENDS: Final = frozenset({TaskSucceeded, TaskFailed, TaskSkipped, TaskCancelled, *_REASONS})
_Place = tuple[str, int]
_Kind = tuple[str, str]
"""A tenant and a node type."""


class SchedulerGauge:
    """Turns what is committed into numbers. `current`: the engine that serves, if one does."""

    def __init__(self, metrics: Metrics, current: Current, *, is_alone: bool = True) -> None:
        """`is_alone`: whether the process is ready when this scheduler is."""
        self._metrics = metrics
        self._current = current
        # Only of what is out or waits: an entry goes when its attempt ends.
        self._out: dict[_Place, tuple[_Kind, int]] = {}  # what it is of, leased at
        self._waiting: dict[_Place, tuple[str, int]] = {}  # what for, since when
        metrics.queue_depth.follow(self._queue_depth)
        metrics.slots_free.follow(self._slots_free)
        metrics.active_tasks.follow(self._active_tasks)
        metrics.sessions.follow(self._sessions)
        metrics.connections.follow(self._connections)
        metrics.workers.follow(self._workers)
        if is_alone:
            metrics.ready.follow(lambda: {(): float(current.problem() is None)})

    def committed(self, seconds: float, batch: Batch) -> None:
        metrics = self._metrics
        metrics.commit_seconds.observe(seconds)
        metrics.batch_facts.observe(len(batch.facts))
        # Of most facts only how many there are is of interest: they are counted here and added once.
        dispatches: dict[_Kind, int] = {}
        latencies: dict[_Kind, list[int]] = {}
        for numbered in batch.facts:
            fact = numbered.fact
            kind = type(fact)
            if kind is TaskLeased:
                of = self._leased(numbered.run, fact)  # type: ignore[arg-type]
                dispatches[of] = dispatches.get(of, 0) + 1
            elif kind is AttemptStarted:
                continue
            elif kind in _ENDS:
                self._ended(numbered.run_id, fact, latencies)  # type: ignore[arg-type]
            elif isinstance(fact, TaskWaiting):
                since = (fact.waiting_for.kind, fact.at)
                self._waiting.setdefault((numbered.run_id, fact.task), since)
            elif isinstance(fact, RunAccepted):
                metrics.runs_accepted.add(fact.tenant)
            elif isinstance(fact, RunFinished):
                assert numbered.run is not None
                metrics.runs_finished.add(numbered.run.tenant, fact.status)
        for of, count in dispatches.items():
            metrics.dispatches.add(*of, by=count)
        for of, values in latencies.items():
            metrics.result_latency.observe_all(values, *of)
        for change in batch.fleet:
            told = change.fact
            if isinstance(told, HeartbeatMissed):
                metrics.heartbeats_missed.add(told.tenant, told.worker_id)
            elif isinstance(told, PackageReported):
                self._told_of_package(told)

    def frames(self, tenant: str, received_bytes: int, sent_bytes: int) -> None:
        self._metrics.frame_bytes.add(tenant, "in", by=received_bytes)
        self._metrics.frame_bytes.add(tenant, "out", by=sent_bytes)

    def lagged(self, seconds: float) -> None:
        self._metrics.loop_lag.observe(seconds)

    def failed(self, kind: str) -> None:
        self._metrics.input_failures.add(kind)

    def stored(self, size_bytes: int) -> None:
        self._metrics.store_bytes.set(to=float(size_bytes))

    def forget(self) -> None:
        """The engine is another one now: what was out under the old one is not known any more."""
        self._out.clear()
        self._waiting.clear()

    def _leased(self, run: RunRecord, fact: TaskLeased) -> _Kind:
        place = (run.run_id, fact.task)
        kind = (run.tenant, run.tasks[fact.task].node.type)
        self._out[place] = (kind, fact.at)
        if self._waiting:
            reason, since = self._waiting.pop(place, ("", 0))
            if reason:
                self._metrics.task_wait.observe((fact.at - since) / 1000, reason)
        return kind

    def _ended(self, run_id: RunId, fact: TaskFact, latencies: dict[_Kind, list[int]]) -> None:
        known = self._out.pop((run_id, fact.task), None)
        if self._waiting:
            self._waiting.pop((run_id, fact.task), None)
        reason = _REASONS.get(type(fact))
        if reason is not None:
            self._metrics.retries.add(reason)
        elif known is not None:
            kind, leased_at = known
            latencies.setdefault(kind, []).append(fact.at - leased_at)

    def _told_of_package(self, event: PackageReported) -> None:
        """Count an operation when it has ended."""
        tenant = event.tenant
        if event.status == "installed":
            self._metrics.package_operations.add(tenant, "install", "succeeded")
        elif event.status == "removed":
            self._metrics.package_operations.add(tenant, "uninstall", "succeeded")
        elif event.status == "failed":
            operation = "uninstall" if _failed_step(event.details) == "remove" else "install"
            self._metrics.package_operations.add(tenant, operation, "failed")

    # -- read at a scrape -------------------------------------------------------------------

    def _queries(self) -> Queries | None:
        return self._current.engine.ask if self._current.is_serving else None

    def _queue_depth(self) -> dict[tuple[str, ...], float]:
        queries = self._queries()
        depths = {} if queries is None else queries.queue_depth()
        return {bundle: float(count) for bundle, count in depths.items()}

    def _slots_free(self) -> dict[tuple[str, ...], float]:
        queries = self._queries()
        slots = {} if queries is None else queries.slots_free()
        return {bundle: float(count) for bundle, count in slots.items()}

    def _active_tasks(self) -> dict[tuple[str, ...], float]:
        queries = self._queries()
        return {(): 0.0 if queries is None else float(queries.active_tasks())}

    def _connections(self) -> dict[tuple[str, ...], float]:
        counts = self._current.writer.connected() if self._current.is_serving else {}
        return {(tenant,): float(count) for tenant, count in counts.items()}

    def _workers(self) -> dict[tuple[str, ...], float]:
        queries = self._queries()
        counts = {} if queries is None else queries.workers()
        return {key: float(count) for key, count in counts.items()}

    def _sessions(self) -> dict[tuple[str, ...], float]:
        queries = self._queries()
        sessions = {} if queries is None else queries.sessions()
        return {(tenant,): float(count) for tenant, count in sessions.items()}


class _ReportDetails(msgspec.Struct):
    step: str = ""


def _failed_step(details: bytes) -> str:
    try:
        return msgspec.json.decode(details, type=_ReportDetails).step
    except msgspec.DecodeError:
        return ""  # a worker may say anything there

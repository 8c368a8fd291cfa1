"""Log lines about what has been committed: dispatches, their ends, packages, missed heartbeats.

Rule 1: what went well is DEBUG, failures and package operations are INFO, a missed heartbeat is a WARNING.
Rule 2: a batch costs one look-up for each fact; the facts that have a line at the level of the log are found when the
        log is made.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

import msgspec

from astraflow.core.engine.batch import Batch, NumberedFact
from astraflow.core.fleet.facts import Audited, FleetFact
from astraflow.core.fleet.installs import PackageReported
from astraflow.core.fleet.rollouts import (
    RolloutFact,
    RolloutFailed,
    RolloutRolledBack,
    RolloutStarted,
    RolloutSucceeded,
    RolloutWaveStarted,
)
from astraflow.core.fleet.versions import VersionActivated
from astraflow.core.fleet.workers import HeartbeatMissed
from astraflow.core.protocol import business
from astraflow.core.runs.facts import (
    AttemptFailed,
    AttemptLost,
    AttemptRefused,
    Fact,
    RunAccepted,
    RunFinished,
    TaskCancelled,
    TaskFact,
    TaskFailed,
    TaskLeased,
    TaskSkipped,
    TaskSucceeded,
)

_log: Final = logging.getLogger(__name__)

_LINES: Final[dict[type[Fact], tuple[int, str, str]]] = {
    TaskLeased: (logging.DEBUG, "dispatched", business.DISPATCH),
    TaskSucceeded: (logging.DEBUG, "succeeded", business.RESULT),
    TaskSkipped: (logging.DEBUG, "skipped", business.RESULT),
    TaskCancelled: (logging.DEBUG, "cancelled", business.RESULT),
    AttemptFailed: (logging.INFO, "failed and is retried", business.RESULT),
    AttemptLost: (logging.INFO, "lost", business.RESULT),
    AttemptRefused: (logging.INFO, "refused", business.EXEC_ERROR),
    TaskFailed: (logging.INFO, "failed", business.RESULT),
}
"""Of tasks: the level, what happened, and the frame that it is about."""

_ENDED: Final = frozenset({"installed", "removed", "failed"})
_ROLLOUTS: Final[dict[type[FleetFact], str]] = {
    RolloutStarted: "started",
    RolloutWaveStarted: "went on to its next wave",
    RolloutSucceeded: "succeeded",
    RolloutFailed: "failed",
    RolloutRolledBack: "was rolled back",
}


class BatchLog:
    """Writes the lines of one scheduler."""

    def __init__(self, log: logging.Logger = _log) -> None:
        self._log = log
        self._runs: dict[type[Fact], Callable[[NumberedFact], None]] = {
            kind: self._on_task for kind, (level, _, _) in _LINES.items() if log.isEnabledFor(level)
        }
        if log.isEnabledFor(logging.INFO):
            self._runs[RunFinished] = self._on_finished
        if log.isEnabledFor(logging.DEBUG):
            self._runs[RunAccepted] = self._on_accepted

    def committed(self, batch: Batch) -> None:
        """These facts are durable."""
        runs = self._runs
        for numbered in batch.facts:
            write = runs.get(type(numbered.fact))
            if write is not None:
                write(numbered)
        for change in batch.fleet:
            self._on_fleet(change.fact, change.cause)

    # -- runs -------------------------------------------------------------------------------

    def _on_task(self, numbered: NumberedFact) -> None:
        fact, run = numbered.fact, numbered.run
        assert isinstance(fact, TaskFact) and run is not None
        level, what, frame_type = _LINES[type(fact)]
        task = run.tasks[fact.task]
        error = getattr(fact, "error", None)
        extra = {
            "tenant": run.tenant,
            "sender": getattr(fact, "worker", None) or task.worker,
            "type": frame_type,
            "id": numbered.cause,
            "corr": run.task_id(fact.task),
            "code": getattr(fact, "code", None) if error is None else error.code,
            "run": run.run_id,
            "task": run.task_id(fact.task),
            "attempt": getattr(fact, "attempt", None),
        }
        why = getattr(fact, "cause", None) or getattr(error, "message", None) or ""
        self._log.log(
            level, "task of %s %s%s", task.node.type, what, f": {why}" if why else "", extra=extra
        )

    def _on_accepted(self, numbered: NumberedFact) -> None:
        fact = numbered.fact
        assert isinstance(fact, RunAccepted)
        extra = {"tenant": fact.tenant, "run": fact.run_id, "corr": fact.run_id}
        self._log.debug("run accepted", extra=extra)

    def _on_finished(self, numbered: NumberedFact) -> None:
        fact, run = numbered.fact, numbered.run
        assert isinstance(fact, RunFinished) and run is not None
        level = logging.INFO if fact.status == "failed" else logging.DEBUG
        code = None if fact.error is None else fact.error.code
        extra = {"tenant": run.tenant, "run": run.run_id, "corr": run.run_id, "code": code}
        self._log.log(level, "run %s", fact.status, extra=extra)

    # -- the fleet --------------------------------------------------------------------------

    def _on_fleet(self, fact: FleetFact, cause: str | None) -> None:
        extra: dict[str, str | None] = {"tenant": fact.tenant, "corr": cause}
        if isinstance(fact, HeartbeatMissed):
            if fact.count == 1:
                extra |= {"worker": fact.worker_id, "sender": fact.worker_id}
                self._log.warning("worker %s missed a heartbeat", fact.worker_id, extra=extra)
        elif isinstance(fact, PackageReported):
            self._on_package(fact, cause)
        elif isinstance(fact, VersionActivated):
            self._log.info("package %s %s is active", fact.name, fact.version, extra=extra)
        elif isinstance(fact, RolloutFact):
            what = _ROLLOUTS.get(type(fact))
            if what is not None:
                self._log.info("rollout of package %s %s", fact.name, what, extra=extra)
        elif isinstance(fact, Audited) and fact.action.startswith("pkg."):
            extra |= {"corr": fact.corr, "code": fact.code}
            self._log.info("%s %s by %s", fact.action, fact.subject, fact.who, extra=extra)

    def _on_package(self, fact: PackageReported, cause: str | None) -> None:
        """What a worker tells of a package: how an operation ended, or how far it is."""
        extra = {
            "tenant": fact.tenant,
            "sender": fact.worker_id,
            "type": business.PKG_EVENT,
            "id": cause,
            "code": _code_in(fact.details),
            "worker": fact.worker_id,
        }
        level = logging.INFO if fact.status in _ENDED else logging.DEBUG
        self._log.log(level, "package %s %s %s", fact.name, fact.version, fact.status, extra=extra)


class _Details(msgspec.Struct):
    code: str | None = None


_details: Final = msgspec.json.Decoder(_Details)


def _code_in(details: bytes) -> str | None:
    try:
        return _details.decode(details).code
    except msgspec.DecodeError:
        return None  # a worker may say anything there

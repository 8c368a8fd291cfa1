"""The facts of a run as entries of the audit: its numbered events are the audit of its dispatches (PROTOCOL §6)."""

from __future__ import annotations

from typing import Any, Final

from astraflow.core.contract.audit import AuditEntry
from astraflow.core.engine.batch import NumberedFact
from astraflow.core.runs.facts import (
    AttemptFailed,
    AttemptLost,
    AttemptRefused,
    CancelRequested,
    RunAccepted,
    RunFinished,
    TaskCancelled,
    TaskFailed,
    TaskLeased,
    TaskSucceeded,
)
from astraflow.core.timestamps import iso

_ACTIONS: Final[dict[type, str]] = {
    RunAccepted: "run.submit",
    CancelRequested: "run.cancel",
    RunFinished: "run.finish",
    TaskLeased: "task.dispatch",
    TaskSucceeded: "task.succeed",
    TaskFailed: "task.fail",
    TaskCancelled: "task.cancel",
    AttemptFailed: "attempt.fail",
    AttemptRefused: "attempt.refuse",
    AttemptLost: "attempt.lose",
}


def run_entry(numbered: NumberedFact) -> AuditEntry | None:
    """The entry of a fact; None if nobody did anything."""
    fact = numbered.fact
    action = _ACTIONS.get(type(fact))
    if action is None:
        return None
    error = getattr(fact, "error", None)
    names = ("task", "attempt", "status", "cause", "reason")
    detail: dict[str, Any] = {"runId": numbered.run_id}
    detail |= {name: getattr(fact, name) for name in names if hasattr(fact, name)}
    return AuditEntry(
        id=numbered.first,
        number=None,
        occurred_at=iso(fact.at),
        who=getattr(fact, "by", ""),
        action=action,
        worker_id=getattr(fact, "worker", None),
        corr=getattr(fact, "corr", None),
        code=getattr(fact, "code", None) if error is None else error.code,
        detail=detail,
        previous=None,
        hash=None,
    )

"""What a commit writes of runs, beside their rows as they are."""

from __future__ import annotations

import msgspec

from astraflow.store.rows import Changes, RunChange, RunRow, SubmissionRow


def settled(changes: Changes) -> Changes:
    """A run that is made and changed at once is made as it ends up: one write of its row and of its indexes."""
    if not changes.runs or not changes.run_changes:
        return changes
    changed = {change.run_id: change for change in changes.run_changes}
    runs = [_as_changed(run, changed.pop(run.run_id, None)) for run in changes.runs]
    return msgspec.structs.replace(changes, runs=runs, run_changes=list(changed.values()))


def _as_changed(run: RunRow, change: RunChange | None) -> RunRow:
    if change is None:
        return run
    return msgspec.structs.replace(run, **msgspec.structs.asdict(change))


def submissions_of(runs: list[RunRow]) -> list[SubmissionRow]:
    """The idempotency keys of these runs, as rows: a key outlives its run."""
    return [
        SubmissionRow(
            run.tenant, run.idempotency_key, run.fingerprint, run.run_id, run.created_at, run.lane
        )
        for run in runs
        if run.idempotency_key is not None
    ]

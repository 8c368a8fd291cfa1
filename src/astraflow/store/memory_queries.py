"""The named queries of a store, over tables in memory: what the texts in `sql` say, in Python."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec

from astraflow.store.memory_tables import MemoryTables
from astraflow.store.rows import (
    ENDED_INTENTS,
    ENDED_RESOURCES,
    ENDED_ROLLOUTS,
    ActiveRow,
    AffinityRow,
    InstallIntentRow,
    PackageRow,
    PlanRow,
    ResourceRow,
    RolloutRow,
    Row,
    RunRow,
    SiteRow,
    SubmissionRow,
    WorkerRow,
    WorkflowRow,
)
from astraflow.store.statements import load_migrations

Values = dict[str, Any]
SCHEMA_VERSION = len(load_migrations("sqlite"))
_RUNS = ("created_at", "run_id")
_RESOURCES = ("created_at", "worker_id", "resource_id")
_FILTERS = ("worker_id", "type", "state")


@dataclass(frozen=True)
class Select:
    """Rows of one kind with given values, in an order: that of their key if none is named."""

    kind: type[Row]
    equal: tuple[str, ...] = ()
    maybe: tuple[str, ...] = ()
    """As `equal`, where a value is given."""
    order: tuple[str, ...] = ()
    page: tuple[str, ...] = ()
    """The order of a list that begins with the newest, below the values `before_…`."""
    where: Callable[[Any, Values], bool] = lambda row, values: True

    def __call__(self, tables: MemoryTables, values: Values) -> list[Any]:
        wanted = {name: values[name] for name in self.equal}
        wanted |= {name: values[name] for name in self.maybe if values[name] is not None}
        found = [row for row in tables.matching(self.kind, wanted) if self.where(row, values)]
        return self.ordered(found, values)

    def ordered(self, rows: list[Any], values: Values) -> list[Any]:
        if self.page and "before_at" in values:
            before = tuple(value for name, value in values.items() if name.startswith("before_"))
            rows = [row for row in rows if _fields(row, self.page) < before]
        order = self.page or self.order or self.kind.primary_key
        rows.sort(key=lambda row: _fields(row, order), reverse=bool(self.page))
        return rows[: values.get("limit")]


def _fields(row: Row, names: tuple[str, ...]) -> tuple[Any, ...]:
    return tuple(getattr(row, name) for name in names)


def _newest(tables: MemoryTables, values: Values, *names: str) -> list[WorkflowRow]:
    """The newest version of each workflow with these values."""
    versions = tables.matching(WorkflowRow, {name: values[name] for name in names})
    versions.sort(key=lambda row: row.version)
    return list({row.workflow_id: row for row in versions}.values())


def _list_workflows(tables: MemoryTables, values: Values) -> list[Any]:
    pages = Select(WorkflowRow, page=("updated_at", "workflow_id"))
    return pages.ordered(_newest(tables, values, "tenant"), values)


def _audit(tables: MemoryTables, values: Values) -> list[Any]:
    found = [
        (number, *msgspec.structs.astuple(row))
        for number, row in reversed(tables.audits)
        if row.tenant == values["tenant"] and number < values["before"]
    ]
    return found[: values["limit"]]


def _usage(tables: MemoryTables, values: Values) -> list[Any]:
    runs = tables.of(RunRow).values()
    active = sum(run.finished_at is None for run in runs)
    return [(tables.held_bytes(), len(runs), active, SCHEMA_VERSION)]


def _oldest_finished(tables: MemoryTables, values: Values) -> list[Any]:
    oldest = Select(
        RunRow,
        order=("finished_at", "run_id"),
        where=lambda run, values: run.finished_at is not None,
    )
    return [
        (run.run_id, run.plan_id, run.finished_at, tables.run_bytes(run.run_id))
        for run in oldest(tables, values)
    ]


READS: dict[str, Callable[[MemoryTables, Values], list[Any]]] = {
    "active_runs": Select(RunRow, order=_RUNS, where=lambda run, values: run.finished_at is None),
    "find_run": Select(RunRow, ("run_id", "tenant")),
    "list_runs": Select(RunRow, ("tenant",), page=_RUNS),
    "list_runs_by_status": Select(RunRow, ("tenant", "status"), page=_RUNS),
    "list_runs_by_workflow": Select(RunRow, ("tenant", "workflow_id"), page=_RUNS),
    "list_runs_by_both": Select(RunRow, ("tenant", "status", "workflow_id"), page=_RUNS),
    "find_plan": Select(PlanRow, ("plan_id",)),
    "read_segments": lambda tables, values: [
        segment
        for segment in tables.segments.get(values["run_id"], ())
        if segment.last > values["after"]
    ],
    "find_submission": Select(SubmissionRow, ("tenant", "key")),
    "submissions": Select(
        SubmissionRow,
        order=("created_at", "tenant", "key"),
        where=lambda row, values: row.created_at >= values["since"],
    ),
    "workers": Select(WorkerRow),
    "affinities": Select(AffinityRow),
    "intents": Select(InstallIntentRow),
    "find_workflow": lambda tables, values: list(_newest(tables, values, "tenant", "workflow_id")),
    "find_workflow_version": Select(WorkflowRow, WorkflowRow.primary_key),
    "list_workflows": _list_workflows,
    "packages": Select(PackageRow),
    "packages_of_tenant": Select(PackageRow, ("tenant",)),
    "find_package": Select(PackageRow, PackageRow.primary_key),
    "active_versions": Select(ActiveRow),
    "rollouts": Select(RolloutRow, order=("updated_at", "tenant", "rollout_id")),
    "find_site": lambda tables, values: [
        (row.value,) for row in tables.matching(SiteRow, {"name": values["name"]})
    ],
    "all_resources": lambda tables, values: Select(ResourceRow, page=("tenant", *_RESOURCES))(
        tables, {"limit": values["limit"]}
    ),
    "list_resources": Select(ResourceRow, ("tenant",), _FILTERS, page=_RESOURCES),
    "list_resources_of_run": Select(ResourceRow, ("tenant", "run_id"), _FILTERS, page=_RESOURCES),
    "find_resources": Select(ResourceRow, ("tenant", "resource_id")),
    "find_resource": Select(ResourceRow, ResourceRow.primary_key),
    "blobs_of_resources": lambda tables, values: [
        (row.blob,) for row in tables.of(ResourceRow).values() if row.blob is not None
    ],
    "tenant_events": lambda tables, values: [
        event for event in tables.events.get(values["tenant"], ()) if event.number > values["after"]
    ][: values["limit"]],
    "audit": _audit,
    "event_spans": lambda tables, values: [
        (tenant, events[0].number, events[-1].number) for tenant, events in tables.events.items()
    ],
    "count_audits": lambda tables, values: [(len(tables.audits),)],
    "usage": _usage,
    "oldest_finished": _oldest_finished,
    # The segments of a removed run go with it.
    "doomed_segments": lambda tables, values: [],
}


@dataclass(frozen=True)
class Update:
    """Sets columns of the row with a key."""

    kind: type[Row]
    columns: tuple[str, ...]

    def __call__(self, tables: MemoryTables, values: Values) -> int:
        rows = tables.of(self.kind)
        key = tuple(values[name] for name in self.kind.primary_key)
        if key not in rows:
            return 0
        changed = {name: values[name] for name in self.columns}
        rows[key] = msgspec.structs.replace(rows[key], **changed)
        return 1


@dataclass(frozen=True)
class Remove:
    """Removes the rows of which something is true."""

    kind: type[Row]
    is_over: Callable[[Any, Values, MemoryTables], bool]

    def __call__(self, tables: MemoryTables, values: Values) -> int:
        return tables.remove(self.kind, lambda row: self.is_over(row, values, tables))


def _is_next_version(tables: MemoryTables, values: Values) -> int:
    newest = _newest(tables, values, "tenant", "workflow_id")
    return int((newest[0].version if newest else 0) == values["version"] - 1)


def _is_version(row: WorkflowRow, values: Values, tables: MemoryTables) -> bool:
    is_same = (row.tenant, row.workflow_id) == (values["tenant"], values["workflow_id"])
    return is_same and row.version <= values.get("last", row.version)


def _is_ended_resource(row: ResourceRow, values: Values, tables: MemoryTables) -> bool:
    cutoff = values["cutoff"] if row.blob is None else values["copy_cutoff"]
    ended_at = row.created_at if row.expires_at is None else row.expires_at
    return row.state in ENDED_RESOURCES and bool(ended_at < cutoff)


def _is_ended_intent(row: InstallIntentRow, values: Values, tables: MemoryTables) -> bool:
    is_old = row.state in ENDED_INTENTS and row.updated_at < values["cutoff"]
    return is_old and (row.tenant, row.worker_id) not in tables.of(WorkerRow)


def _is_unused_plan(plan: PlanRow, values: Values, tables: MemoryTables) -> bool:
    runs = tables.of(RunRow).values()
    return plan.plan_id in values["plan_ids"] and all(run.plan_id != plan.plan_id for run in runs)


def _delete_runs(tables: MemoryTables, values: Values) -> int:
    for run_id in values["run_ids"]:
        tables.segments.pop(run_id, None)
    return tables.remove(RunRow, lambda run: run.run_id in values["run_ids"])


def _delete_old_events(tables: MemoryTables, values: Values) -> int:
    removed = 0
    for tenant, events in tables.events.items():
        old = [event.number for event in events[:-1] if event.at < values["cutoff"]]
        removed += tables.remove_events(tenant, old[-1]) if old else 0
    return removed


CHANGES: dict[str, Callable[[MemoryTables, Values], int]] = {
    # The head of a workflow is its newest version.
    "create_workflow": _is_next_version,
    "follow_workflow": _is_next_version,
    "delete_workflow": Remove(WorkflowRow, _is_version),
    "delete_workflow_versions": Remove(WorkflowRow, _is_version),
    "yank_package": Update(PackageRow, ("yanked_at", "yanked_reason")),
    "doom_runs": lambda tables, values: 0,
    "delete_runs": _delete_runs,
    "delete_unused_plans": Remove(PlanRow, _is_unused_plan),
    "forget_doomed": lambda tables, values: 0,
    "delete_old_events": _delete_old_events,
    "delete_events": lambda tables, values: tables.remove_events(values["tenant"], values["last"]),
    "delete_old_audits": lambda tables, values: tables.keep_audits(
        lambda number, at: at >= values["cutoff"]
    ),
    "trim_audits": lambda tables, values: tables.keep_audits(
        lambda number, at: number > tables.audit_number - values["keep"]
    ),
    "delete_submissions": Remove(
        SubmissionRow, lambda row, values, tables: row.created_at < values["cutoff"]
    ),
    "delete_ended_resources": Remove(ResourceRow, _is_ended_resource),
    "delete_ended_intents": Remove(InstallIntentRow, _is_ended_intent),
    "delete_ended_rollouts": Remove(
        RolloutRow,
        lambda row, values, tables: (
            row.state in ENDED_ROLLOUTS and row.updated_at < values["cutoff"]
        ),
    ),
}

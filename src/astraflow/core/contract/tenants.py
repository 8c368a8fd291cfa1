"""Tenants: what each may use, and what it uses."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from astraflow.core.contract.base import (
    Count,
    JsonObject,
    Page,
    PageQuery,
    RequestBody,
    RestObject,
    Timestamp,
    doc,
)
from astraflow.core.contract.tokens import TenantName

Weight = Annotated[float, Meta(ge=0.001, le=1_000)]
Quota = Annotated[int, Meta(ge=0, le=2**53 - 1)]
Rate = Annotated[float, Meta(ge=0.1, le=1_000_000)]
Percent = Annotated[float, Meta(ge=1, le=100)]
_WEIGHT = "Its share beside others: with twice the weight it gets twice as many attempts."
_RUNS = "Active runs; null: no limit."
_TASKS = "Tasks of active runs, whether they wait or run; null: no limit."
_WORKERS = "Workers that are connected; null: no limit."
_DISK = "Bytes of files that its workers keep as resources; null: no limit."
_MEMORY = "Bytes of objects that its workers keep in memory as resources; null: no limit."
_RATE = "Requests in a second, of all its credentials together; null: no limit."
_DRAIN_MEM = "Percent of memory from which on its workers get no new work; null: 90."
_DRAIN_DISK = "Percent of disk from which on its workers get no new work; null: 95."


class TenantUse(RestObject, frozen=True, kw_only=True):
    """What a tenant uses now."""

    runs: Annotated[Count, doc("Active runs.")]
    tasks: Annotated[Count, doc("Tasks of active runs.")]
    workers: Annotated[Count, doc("Workers that are connected.")]
    disk_bytes: Annotated[Count, doc("Files that its workers keep.")]
    memory_bytes: Annotated[Count, doc("Objects that its workers keep in memory.")]


class Tenant(RestObject, frozen=True, kw_only=True):
    """A tenant."""

    tenant: Annotated[str, doc("Its name.")]
    suspended: Annotated[bool, doc("Whether it gets nothing new.")]
    weight: Annotated[float, doc(_WEIGHT)]
    max_runs: Annotated[int | None, doc(_RUNS)]
    max_tasks: Annotated[int | None, doc(_TASKS)]
    max_workers: Annotated[int | None, doc(_WORKERS)]
    max_disk_bytes: Annotated[int | None, doc(_DISK)]
    max_memory_bytes: Annotated[int | None, doc(_MEMORY)]
    requests_per_second: Annotated[float | None, doc(_RATE)]
    drain_mem_pct: Annotated[float | None, doc(_DRAIN_MEM)]
    drain_disk_pct: Annotated[float | None, doc(_DRAIN_DISK)]
    use: Annotated[
        TenantUse | None,
        doc("What it uses of that; null if another scheduler serves it and does not answer."),
    ]
    created_at: Annotated[Timestamp | None, doc("When it was made; null: it was always there.")]
    created_by: Annotated[str, doc("Who made it.")]

    EXAMPLE: ClassVar[JsonObject] = {
        "tenant": "acme",
        "suspended": False,
        "weight": 2.0,
        "maxRuns": 100,
        "maxTasks": 10_000,
        "maxWorkers": None,
        "maxDiskBytes": None,
        "maxMemoryBytes": None,
        "requestsPerSecond": 50.0,
        "drainMemPct": None,
        "drainDiskPct": None,
        "use": {"runs": 3, "tasks": 12, "workers": 2, "diskBytes": 0, "memoryBytes": 0},
        "createdAt": "2026-01-15T10:00:00.000Z",
        "createdBy": "bootstrap",
    }


class TenantPage(Page[Tenant], frozen=True, kw_only=True):
    """A page of tenants, by name."""


class ListTenants(PageQuery, frozen=True, kw_only=True):
    """Which tenants."""


class TenantChange(RequestBody, frozen=True, kw_only=True):
    """What a tenant may use. What is left out stays."""

    weight: Annotated[Weight | UnsetType, doc(_WEIGHT)] = UNSET
    max_runs: Annotated[Quota | UnsetType | None, doc(_RUNS)] = UNSET
    max_tasks: Annotated[Quota | UnsetType | None, doc(_TASKS)] = UNSET
    max_workers: Annotated[Quota | UnsetType | None, doc(_WORKERS)] = UNSET
    max_disk_bytes: Annotated[Quota | UnsetType | None, doc(_DISK)] = UNSET
    max_memory_bytes: Annotated[Quota | UnsetType | None, doc(_MEMORY)] = UNSET
    requests_per_second: Annotated[Rate | UnsetType | None, doc(_RATE)] = UNSET
    drain_mem_pct: Annotated[Percent | UnsetType | None, doc(_DRAIN_MEM)] = UNSET
    drain_disk_pct: Annotated[Percent | UnsetType | None, doc(_DRAIN_DISK)] = UNSET

    EXAMPLE: ClassVar[JsonObject] = {"weight": 2.0, "maxRuns": 100}

    def changes(self) -> dict[str, float | None]:
        """The fields that are set, by their names in Python."""
        given = msgspec.structs.asdict(self)
        return {
            name: value for name, value in given.items() if value is not UNSET and name != "tenant"
        }


class TenantRequest(TenantChange, frozen=True, kw_only=True):
    """A tenant to make."""

    tenant: Annotated[TenantName, doc("Its name.")]

    EXAMPLE: ClassVar[JsonObject] = {"tenant": "acme", "weight": 2.0, "maxRuns": 100}


class Lane(RestObject, frozen=True, kw_only=True):
    """A lane of a tenant: an engine of its own decides its runs."""

    lane: Annotated[Count, doc("Its number. Lane 0 is the home of the tenant.")]
    state: Annotated[Literal["opening", "open", "closing"], doc("Only an open one gets new runs.")]
    shard: Annotated[Count, doc("Where it is stored.")]
    node: Annotated[str | None, doc("The scheduler that serves it; null: none does now.")]
    waiting: Annotated[
        int | None, doc("Tasks that wait in it, about a second ago; null: nobody says.")
    ]


class LaneList(RestObject, frozen=True, kw_only=True):
    """The lanes of a tenant."""

    tenant: Annotated[str, doc("Its name.")]
    lanes: Annotated[list[Lane], doc("By number.")]


class LanesRequest(RequestBody, frozen=True, kw_only=True):
    """How many lanes a tenant is to have."""

    count: Annotated[
        int, doc("Lanes that take new runs. Others that are there close.", ge=1, le=64)
    ]

    EXAMPLE: ClassVar[JsonObject] = {"count": 4}

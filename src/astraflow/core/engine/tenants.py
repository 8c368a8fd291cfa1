"""What admins of the site ask about tenants, and the quotas that a submission meets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from astraflow.core import errors
from astraflow.core.engine.commands import ConfigureTenant, ResumeTenant, SuspendTenant
from astraflow.core.engine.settings import EngineSettings, Pressure
from astraflow.core.engine.view import View, tenant_key
from astraflow.core.fleet.tenants import (
    RELIEVED_BY_PCT,
    TenantConfigured,
    TenantPolicy,
    TenantRecord,
    TenantResumed,
    TenantSuspended,
)

if TYPE_CHECKING:
    from astraflow.core.protocol.gateway import Gateway

RETRY_AFTER_S: Final = 5
"""Runs and tasks end all the time: asking again soon may help."""


def configure_tenant(view: View, gateway: Gateway, command: ConfigureTenant) -> None:
    """Make a tenant, or change what it may use.

    Raises:
        Conflict: it is there, and a new one was asked for.
        NotFound: it is not there, and was to be changed.
    """
    known = view.tenants.find(command.tenant)
    if command.is_new and known is not None:
        raise errors.Conflict(errors.TENANT_CONFLICT, f"there is such a tenant: {command.tenant}")
    if not command.is_new and known is None:
        raise _missing(command.tenant)
    fact = TenantConfigured(command.tenant, view.at, command.policy, command.by)
    use_policy(view, gateway, view.record_tenant(fact))


def suspend_tenant(view: View, command: SuspendTenant) -> None:
    """Raises: NotFound."""
    if view.tenants.find(command.tenant) is None:
        raise _missing(command.tenant)
    view.record_tenant(TenantSuspended(command.tenant, view.at))


def resume_tenant(view: View, command: ResumeTenant) -> None:
    """Raises: NotFound."""
    if view.tenants.find(command.tenant) is None:
        raise _missing(command.tenant)
    view.record_tenant(TenantResumed(command.tenant, view.at))
    view.queue.wake(tenant_key(command.tenant))


def use_policy(view: View, gateway: Gateway, record: TenantRecord) -> None:
    """Make what a policy says count: in the queue and for new sessions. The rest is looked up when it is needed."""
    view.queue.set_weight(record.tenant, record.policy.weight)
    gateway.limit_sessions(record.tenant, record.policy.max_workers)


def check_quotas(view: View, tenant: str, tasks: int) -> None:
    """Whether a tenant may have one more run, of so many tasks.

    Raises:
        Refused: it is suspended.
        Unavailable: as many runs or tasks are active as may be.
        Conflict: its resources take as much as they may; nothing changes that but their removal.
    """
    if view.tenants.is_suspended(tenant):
        raise errors.Refused(errors.TENANT_SUSPENDED, f"the tenant is suspended: {tenant}")
    policy = view.tenants.policy(tenant)
    runs, active = view.runs.of_tenant(tenant)
    _refuse_beyond(errors.QUOTA_RUNS, "maxRuns", policy.max_runs, runs + 1)
    _refuse_beyond(errors.QUOTA_TASKS, "maxTasks", policy.max_tasks, active + tasks)
    _refuse_full(view, tenant, policy)


def _refuse_beyond(code: errors.Code, quota: str, limit: int | None, wanted: int) -> None:
    if limit is not None and wanted > limit:
        detail = {"quota": quota, "limit": limit, "retryAfterSeconds": RETRY_AFTER_S}
        raise errors.Unavailable(
            code, f"the tenant would pass its quota {quota}: {limit}", detail=detail
        )


def _refuse_full(view: View, tenant: str, policy: TenantPolicy) -> None:
    disk, memory = view.resources.held_bytes(tenant)
    for code, quota, limit, held in (
        (errors.QUOTA_DISK, "maxDiskBytes", policy.max_disk_bytes, disk),
        (errors.QUOTA_MEMORY, "maxMemoryBytes", policy.max_memory_bytes, memory),
    ):
        if limit is not None and held >= limit:
            detail = {"quota": quota, "limit": limit, "held": held}
            message = (
                f"the resources of the tenant take as much as its quota {quota} allows: {limit}"
            )
            raise errors.Conflict(code, message, detail=detail)


def pressure_mark(settings: EngineSettings, policy: TenantPolicy, *, is_pressed: bool) -> Pressure:
    """From where on a worker is short of memory or disk; one that is must come below a lower mark (PROTOCOL §7)."""
    usual = settings.relieved_below if is_pressed else settings.pressed_at
    lower = RELIEVED_BY_PCT if is_pressed else 0.0
    mem, disk = policy.drain_mem_pct, policy.drain_disk_pct
    return Pressure(
        usual.mem_pct if mem is None else mem - lower,
        usual.disk_pct if disk is None else disk - lower,
    )


def _missing(tenant: str) -> errors.NotFound:
    return errors.NotFound(errors.TENANT_NOT_FOUND, f"no such tenant: {tenant[:64]}")

"""Tenants: made, changed, suspended and resumed by an admin of the site; and the rate of their requests.

Rule 1: the tenant of the site is always there, and cannot be suspended.
Rule 2: suspending ends every session, stream and login of the tenant. Attempts on its workers stop with their sessions,
        and are started anew when the tenant is resumed; what an HTTP pool has started may finish.
"""

from __future__ import annotations

import math
from typing import Any, Final

import msgspec

from astraflow.clock import Clock
from astraflow.core import errors
from astraflow.core.engine.commands import (
    ConfigureTenant,
    KeepAudit,
    OperatorCommand,
    ResumeTenant,
    SuspendTenant,
)
from astraflow.core.fleet.tenants import TenantPolicy, TenantRecord
from astraflow.core.security.bearer import TokenRecord
from astraflow.core.security.policy import SITE_TENANT
from astraflow.core.security.rates import KeyedRateLimit
from astraflow.scheduler.credentials import Credentials
from astraflow.scheduler.current import Current
from astraflow.scheduler.fleet_rows import tenant_of
from astraflow.store.store import Store

BURST_S: Final = 2.0
"""A quiet tenant may send as many requests at once as it may in so many seconds."""


class Tenants:
    """What the API asks about tenants."""

    def __init__(
        self,
        store: Store,
        current: Current,
        credentials: Credentials,
        clock: Clock,
        *,
        requests_per_second: float | None = None,
    ) -> None:
        """`requests_per_second`: for each credential, whatever its tenant."""
        self._store = store
        self._current = current
        self._credentials = credentials
        self._clock = clock
        self._of_credential = (
            None if requests_per_second is None else _limit_of(requests_per_second)
        )
        self._of_tenant: dict[str, tuple[float, KeyedRateLimit]] = {}

    # -- what admins of the site do ---------------------------------------------------------

    async def create(self, tenant: str, changes: dict[str, Any], *, by: str) -> TenantRecord:
        """Raises: Conflict: there is one of this name."""
        if tenant == SITE_TENANT:
            raise errors.Conflict(errors.TENANT_CONFLICT, f"there is such a tenant: {tenant}")
        policy = TenantPolicy(**changes)
        return await self._tell(ConfigureTenant(tenant=tenant, by=by, policy=policy, is_new=True))

    async def change(self, tenant: str, changes: dict[str, Any], *, by: str) -> TenantRecord:
        """Raises: NotFound."""
        record = self.get(tenant)
        policy = msgspec.structs.replace(record.policy, **changes)
        is_new = self._current.engine.ask.tenant(tenant) is None
        return await self._tell(ConfigureTenant(tenant=tenant, by=by, policy=policy, is_new=is_new))

    async def suspend(self, tenant: str, *, by: str) -> TenantRecord:
        """Raises: NotFound; Conflict: it is the tenant of the site."""
        if tenant == SITE_TENANT:
            raise errors.Conflict(errors.TENANT_CONFLICT, "the tenant of the site is not suspended")
        record = await self._tell(SuspendTenant(tenant=tenant, by=by))
        self._credentials.set_suspended(tenant, True)
        self._credentials.enforce()
        return record

    async def resume(self, tenant: str, *, by: str) -> TenantRecord:
        """Raises: NotFound."""
        if tenant == SITE_TENANT:
            return self.get(tenant)  # it is never suspended
        record = await self._tell(ResumeTenant(tenant=tenant, by=by))
        self._credentials.set_suspended(tenant, False)
        return record

    async def _tell(self, command: OperatorCommand) -> TenantRecord:
        self._current.execute(command)
        # The site's own log has it, too: that of the tenant belongs to the tenant.
        site = KeepAudit(
            tenant=SITE_TENANT, by=command.by, what=command.action, subject=command.tenant
        )
        if command.tenant != SITE_TENANT:
            self._current.execute(site)
        await self._current.writer.barrier()
        return self.get(command.tenant)

    # -- reading ----------------------------------------------------------------------------

    def get(self, tenant: str) -> TenantRecord:
        """Raises: NotFound."""
        found = self._current.engine.ask.tenant(tenant)
        if found is None and tenant == SITE_TENANT:
            return _SITE
        if found is None:
            raise errors.NotFound(errors.TENANT_NOT_FOUND, f"no such tenant: {tenant[:64]}")
        return found

    async def exists(self, tenant: str) -> bool:
        """Whether there is such a tenant, in whichever shard. Raises: Unavailable, StoreError."""
        return any(one.tenant == tenant for one in await self.all())

    async def all(self) -> list[TenantRecord]:
        """Those of all shards, by name. Raises: Unavailable, StoreError."""
        await self._current.writer.barrier()
        known = {SITE_TENANT: _SITE}
        known.update((row.tenant, tenant_of(row)) for row in await self._store.all_tenants())
        return [known[name] for name in sorted(known)]

    # -- rates ------------------------------------------------------------------------------

    def count_request(self, bearer: TokenRecord) -> None:
        """A request has come. Raises: Unavailable: too many have."""
        now = self._clock.now()
        if self._of_credential is not None:
            _refuse_flood("requestsPerSecond", self._of_credential.take(bearer.digest, now))
        if not self._current.is_serving:
            return
        found = self._current.engine.ask.tenant(bearer.tenant)
        rate = None if found is None else found.policy.requests_per_second
        if rate is not None:
            _refuse_flood("requestsPerSecond", self._limit_of_tenant(bearer.tenant, rate, now))

    def _limit_of_tenant(self, tenant: str, rate: float, now: float) -> float:
        known = self._of_tenant.get(tenant)
        if known is None or known[0] != rate:
            known = self._of_tenant[tenant] = (rate, _limit_of(rate, max_keys=1))
        return known[1].take(tenant, now)


_SITE: Final = TenantRecord(tenant=SITE_TENANT, created_at=0, updated_at=0)


def _limit_of(rate: float, max_keys: int = 10_000) -> KeyedRateLimit:
    return KeyedRateLimit(rate, max(1.0, rate * BURST_S), max_keys)


def _refuse_flood(quota: str, wait_s: float) -> None:
    if wait_s > 0:
        raise errors.Unavailable(
            errors.QUOTA_RATE,
            f"more requests arrived than the quota {quota} allows",
            detail={"quota": quota, "retryAfterSeconds": math.ceil(wait_s)},
        )

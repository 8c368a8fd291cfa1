"""Tenants: an admin of the site makes, changes, suspends and resumes them."""

from __future__ import annotations

from typing import Final

import msgspec

from astraflow.api.asgi import AsgiApp
from astraflow.api.requests import Request, decode_strict
from astraflow.api.responses import json_response
from astraflow.api.routes import Endpoints, Reply, route
from astraflow.core import errors
from astraflow.core.contract.base import NoQuery
from astraflow.core.contract.tenants import (
    LaneList,
    LanesRequest,
    ListTenants,
    Tenant,
    TenantChange,
    TenantPage,
    TenantRequest,
    TenantUse,
)
from astraflow.core.engine.queries import TenantUsage
from astraflow.core.fleet.tenants import TenantRecord
from astraflow.core.security.policy import ADMIN, SITE, SITE_TENANT
from astraflow.core.timestamps import iso

TENANTS: Final = "/api/v1/tenants"
_create: Final = msgspec.json.Decoder(TenantRequest)
_change: Final = msgspec.json.Decoder(TenantChange)
_lanes: Final = msgspec.json.Decoder(LanesRequest)


class TenantEndpoints(Endpoints):
    """The endpoints under `/api/v1/tenants`."""

    @route("POST", TENANTS, SITE, "createTenant", "make a tenant", tag="access",
           body=TenantRequest, replies={201: Reply("The tenant.", Tenant)})  # fmt: skip
    async def create(self, request: Request[NoQuery]) -> AsgiApp:
        wanted = decode_strict(await request.json_body(), _create)
        record = await self._scheduler.tenants.create(
            wanted.tenant, wanted.changes(), by=request.subject
        )
        return json_response(await self._view(record), 201)

    @route("GET", TENANTS, SITE, "listTenants", "list tenants by name", tag="access",
           query=ListTenants, replies=TenantPage)  # fmt: skip
    async def list_tenants(self, request: Request[ListTenants]) -> AsgiApp:
        query, tenant = request.query, request.tenant
        after = self._cursors.read("tenants", tenant, query.cursor, str) or ""
        rest = [one for one in await self._scheduler.tenants.all() if one.tenant > after]
        page = rest[: query.count]
        last = page[-1].tenant if len(rest) > len(page) else None
        cursor = self._cursors.make("tenants", tenant, last)
        used = await self._scheduler.usages.of([one.tenant for one in page])
        items = [_shown(one, used.get(one.tenant)) for one in page]
        return json_response(TenantPage(items=items, next_cursor=cursor))

    @route("GET", f"{TENANTS}/{{tenant}}", ADMIN, "getTenant",
           "show a tenant and what it uses", tag="access",
           text="An admin sees the own tenant, an admin of the site any.", replies=Tenant)  # fmt: skip
    async def show(self, request: Request[NoQuery]) -> AsgiApp:
        return json_response(await self._view(self._scheduler.tenants.get(self._seen_by(request))))

    @route("PATCH", f"{TENANTS}/{{tenant}}", SITE, "changeTenant",
           "change what a tenant may use", tag="access", body=TenantChange,
           replies=Tenant)  # fmt: skip
    async def change(self, request: Request[NoQuery]) -> AsgiApp:
        tenant = request.params["tenant"]
        self._scheduler.tenants.get(tenant)
        wanted = decode_strict(await request.json_body(), _change)
        record = await self._scheduler.tenants.change(tenant, wanted.changes(), by=request.subject)
        return json_response(await self._view(record))

    @route(
        "POST",
        f"{TENANTS}/{{tenant}}/suspend",
        SITE,
        "suspendTenant",
        "suspend a tenant",
        tag="access",
        text="It accepts no runs and no logins, its workers are disconnected, and nothing is started. What is active "
        "waits, and goes on after `resume`.",
        replies=Tenant,
    )
    async def suspend(self, request: Request[NoQuery]) -> AsgiApp:
        record = await self._scheduler.tenants.suspend(request.params["tenant"], by=request.subject)
        return json_response(await self._view(record))

    @route("POST", f"{TENANTS}/{{tenant}}/resume", SITE, "resumeTenant",
           "let a suspended tenant go on", tag="access", replies=Tenant)  # fmt: skip
    async def resume(self, request: Request[NoQuery]) -> AsgiApp:
        record = await self._scheduler.tenants.resume(request.params["tenant"], by=request.subject)
        return json_response(await self._view(record))

    @route("GET", f"{TENANTS}/{{tenant}}/lanes", ADMIN, "getLanes",
           "show the lanes of a tenant", tag="access",
           text="An admin sees the own tenant, an admin of the site any.", replies=LaneList)  # fmt: skip
    async def show_lanes(self, request: Request[NoQuery]) -> AsgiApp:
        tenant = self._seen_by(request)
        return json_response(await self._scheduler.lanes.get(tenant))

    @route(
        "PUT",
        f"{TENANTS}/{{tenant}}/lanes",
        SITE,
        "setLanes",
        "let a tenant have so many lanes",
        tag="access",
        text="Each lane has an engine of its own, on another scheduler perhaps, so that a tenant gets faster than one "
        "can make it. Needs PostgreSQL. A lane that is not wanted any more gets no new runs, and goes on until all of "
        "its own have ended.",
        body=LanesRequest,
        replies=LaneList,
    )
    async def set_lanes(self, request: Request[NoQuery]) -> AsgiApp:
        tenant = self._seen_by(request)
        wanted = decode_strict(await request.json_body(), _lanes)
        lanes = await self._scheduler.lanes.set(tenant, wanted.count, by=request.subject)
        return json_response(lanes)

    def _seen_by(self, request: Request[NoQuery]) -> str:
        """The tenant of the path, if there is one that the caller may see. Raises: NotFound."""
        tenant, bearer = request.params["tenant"], request.bearer
        if SITE_TENANT != bearer.tenant != tenant:
            raise errors.NotFound(errors.TENANT_NOT_FOUND, f"no such tenant: {tenant[:64]}")
        return self._scheduler.tenants.get(tenant).tenant

    async def _view(self, record: TenantRecord) -> Tenant:
        used = await self._scheduler.usages.of([record.tenant])
        return _shown(record, used.get(record.tenant))


def _shown(record: TenantRecord, used: TenantUsage | None) -> Tenant:
    return Tenant(
        tenant=record.tenant,
        suspended=record.is_suspended,
        **msgspec.structs.asdict(record.policy),
        use=None if used is None else TenantUse(**used._asdict()),
        created_at=iso(record.created_at) if record.created_at else None,
        created_by=record.created_by,
    )

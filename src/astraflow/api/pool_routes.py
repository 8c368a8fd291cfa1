"""HTTP worker pools: list, show, make, change and remove them."""

from __future__ import annotations

from typing import Final

import msgspec

from astraflow.api.asgi import AsgiApp
from astraflow.api.requests import Request, decode_json
from astraflow.api.responses import NO_CONTENT, json_response
from astraflow.api.routes import Endpoints, Reply, route
from astraflow.core.contract.base import NoQuery
from astraflow.core.contract.pools import HttpPool, HttpPoolPage, HttpPoolSettings, ListPools
from astraflow.core.security.policy import ADMIN, READ

POOLS: Final = "/api/v1/pools"
_settings: Final = msgspec.json.Decoder(HttpPoolSettings)


class PoolEndpoints(Endpoints):
    """The endpoints under `/api/v1/pools`."""

    @route("GET", POOLS, READ, "listPools", "list HTTP worker pools", tag="pools", query=ListPools,
           replies=HttpPoolPage)  # fmt: skip
    async def list_pools(self, request: Request[ListPools]) -> AsgiApp:
        query, tenant = request.query, request.tenant
        after = self._cursors.read("pools", tenant, query.cursor, str) or ""
        page, has_more = self._scheduler.pools.page(tenant, after, query.count)
        cursor = self._cursors.make("pools", tenant, page[-1].name if has_more else None)
        return json_response(HttpPoolPage(items=page, next_cursor=cursor))

    @route("GET", f"{POOLS}/{{name}}", READ, "getPool", "show an HTTP worker pool", tag="pools",
           replies=HttpPool)  # fmt: skip
    async def show(self, request: Request[NoQuery]) -> AsgiApp:
        return json_response(self._scheduler.pools.get(request.tenant, request.params["name"]))

    @route("PUT", f"{POOLS}/{{name}}", ADMIN, "putPool", "make or change an HTTP worker pool",
           tag="pools", body=HttpPoolSettings, replies=HttpPool)  # fmt: skip
    async def put(self, request: Request[NoQuery]) -> AsgiApp:
        settings = decode_json(await request.json_body(), _settings)
        pool = await self._scheduler.pools.put(
            request.tenant, request.params["name"], settings, request.subject
        )
        return json_response(pool)

    @route("DELETE", f"{POOLS}/{{name}}", ADMIN, "deletePool", "remove an HTTP worker pool",
           tag="pools", replies={204: Reply("It is gone.")})  # fmt: skip
    async def remove(self, request: Request[NoQuery]) -> AsgiApp:
        await self._scheduler.pools.remove(request.tenant, request.params["name"], request.subject)
        return NO_CONTENT

"""The front of a node: any node takes any request, and has it answered by the node that owns the shard of its tenant.

Where a route is answered:
    here            health, readiness, metrics and the web app: they are of this process
    the owner       everything else, by the tenant of the request (`tenant_finder`)

A node that owns the shard answers itself. Another passes the request on, once (`hop`).
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from astraflow.api.hop import ClientLeft, Hops, KeptBody
from astraflow.api.responses import REQUEST_ID, json_response, problem_response
from astraflow.api.tenant_finder import TenantFinder
from astraflow.core import errors
from astraflow.core.contract.system import Status
from astraflow.observe.request_ids import begin_request
from astraflow.store.store import HOME_SHARD

if TYPE_CHECKING:
    from collections.abc import Callable

    from astraflow.api.app import Application
    from astraflow.api.asgi import Receive, Scope, Send
    from astraflow.scheduler.cluster_node import ClusterNode

NAMED_BYTES: Final = 64 * 1024
"""So much of a body is looked at for the name of a tenant."""
OWNER_WAIT_S: Final = 0.5
TRIES: Final = 4
"""A shard that changes hands has an owner again within a second; a request waits for it so long."""
_HERE: Final = ("/healthz", "/metrics")
_TENANTS: Final = "/api/v1/tenants"


class Front:
    """The ASGI application of a node."""

    def __init__(
        self,
        node: ClusterNode,
        apps: Callable[[int], Application | None],
        finder: TenantFinder,
        hops: Hops,
    ) -> None:
        """`apps`: the application of a shard that has a scheduler here, serving or not."""
        self._node = node
        self._apps = apps
        self._finder = finder
        self._hops = hops

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope[REQUEST_ID] = begin_request(scope["headers"]).encode()
        path = scope["path"].rstrip("/") or "/"
        if path == "/readyz":
            await self._say_ready(scope, receive, send)
            return
        home = self._apps(HOME_SHARD)
        if home is not None and (path in _HERE or home.is_web_app(path)):
            await home(scope, receive, send)
            return
        try:
            await self._answer(scope, KeptBody(receive), receive, send)
        except ClientLeft:
            return
        except errors.StoreError as error:
            refused = errors.Unavailable(errors.SCHEDULER_NOT_READY, error.message)
            await problem_response(refused)(scope, receive, send)

    async def _say_ready(self, scope: Scope, receive: Receive, send: Send) -> None:
        problem = self._node.problem()
        if problem is None:
            await json_response(Status(status="ready"))(scope, receive, send)
            return
        refused = errors.Unavailable(errors.SCHEDULER_NOT_READY, f"not ready: {problem}")
        await problem_response(refused)(scope, receive, send)

    async def _answer(self, scope: Scope, body: KeptBody, receive: Receive, send: Send) -> None:
        start = b""
        if self._finder.reads_body(scope):
            start = await body.start(NAMED_BYTES)
        tenant = await self._finder.find(scope, start)
        if scope["method"] == "POST" and scope["path"].rstrip("/") == _TENANTS:
            await self._node.assign(tenant)
        came_from = self._hops.came_from(scope)
        for trial in range(TRIES):
            if trial:
                await asyncio.sleep(OWNER_WAIT_S)
                await self._node.look_again()
            shard = self._node.shard_of(tenant)
            scheduler = self._node.scheduler_of(shard)
            if scheduler is not None:
                credentials = scheduler.credentials
                if await self._finder.is_new_to(credentials.known, scope):
                    await credentials.refresh()
                app = self._apps(shard)
                assert app is not None, "a shard that is served has an application"
                if came_from is not None:
                    scope["client"] = (came_from, 0)
                await app(scope, body.replay, send)
                return
            if came_from is not None:
                moved = errors.Refused(errors.SHARD_MOVED, errors.SHARD_MOVED.says)
                await problem_response(moved)(scope, receive, send)
                return
            url = self._node.url_of(shard)
            if url is None:
                continue
            if await self._hops.pass_on(url, scope, body, receive, send):
                return
            if not body.is_kept:
                break
        refused = errors.Unavailable(
            errors.SHARD_UNREACHABLE, "no scheduler owns the tenant of the request now"
        )
        await problem_response(refused)(scope, receive, send)

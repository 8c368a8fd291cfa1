"""The front of a node: any node takes any request, and has it answered by the node that owns the shard of its tenant.

Where a request is answered, by the declaration of its route (`routes.Place`):
    here            health, readiness and metrics are of this process, and so is the web app
    the owner       everything else, by the tenant of the request (`tenant_finder`) and its lane (`lane_finder`)

A node that owns the shard answers itself. Another passes the request on, once (`hop`). An event stream is opened by the
owner, and served here (`stream_grants`).
"""

from __future__ import annotations

import asyncio
import re
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Final

from astraflow.api.app import ROUTES
from astraflow.api.hop import ANSWERED, CameFrom, Hops, Outcome
from astraflow.api.kept_body import ClientLeft, KeptBody, LargeBodies
from astraflow.api.lane_finder import LaneAnswer, LaneFinder
from astraflow.api.responses import REQUEST_ID, json_response, problem_response
from astraflow.api.routes import Place
from astraflow.api.stream_grants import GRANT, GRANT_HEADER, BadGrant, decode_grant
from astraflow.api.tenant_finder import TenantFinder
from astraflow.core import errors
from astraflow.core.cluster.lanes import HOME_LANE
from astraflow.core.contract.system import Status
from astraflow.core.contract.tokens import TENANT_NAME
from astraflow.observe.request_ids import begin_request
from astraflow.store.store import HOME_SHARD

if TYPE_CHECKING:
    from collections.abc import Callable

    from astraflow.api.app import Application
    from astraflow.api.asgi import Receive, Scope, Send
    from astraflow.api.node_endpoints import NodeEndpoints
    from astraflow.scheduler.cluster_node import ClusterNode
    from astraflow.scheduler.service import Scheduler

NAMED_BYTES: Final = 64 * 1024
"""So much of a body is looked at for the name of a tenant."""
OWNER_WAIT_S: Final = 5.0
"""So long an owner is looked for. A shard whose owner was killed has another within three seconds."""
LOOK_WAIT_S: Final = 0.5
"""For the next look at the store, which may not answer."""
SOON_TRIES: Final = 10
LATER_S: Final = 0.25
"""Between the tries after those: each request asks an owner that takes long to start a few times a second."""
MAX_LANE_MOVES: Final = 4
"""So often one lane may name another as the right one."""
_HERE: Final = frozenset(route.path for route in ROUTES if route.place is Place.HERE) - {"/readyz"}
"""Answered by the application of the home shard, whether or not it is served here; `/readyz` is about the node."""
_TENANTS: Final = "/api/v1/tenants"
_NAME: Final = re.compile(TENANT_NAME)


class Front:
    """The ASGI application of a node."""

    def __init__(
        self,
        node: ClusterNode,
        apps: Callable[[int], Application | None],
        finder: TenantFinder,
        lanes: LaneFinder,
        hops: Hops,
        node_endpoints: NodeEndpoints,
    ) -> None:
        """`apps`: the application of a shard that has a scheduler here, serving or not."""
        self._node_endpoints = node_endpoints
        self._node = node
        self._apps = apps
        self._finder = finder
        self._lanes = lanes
        self._hops = hops
        self._large_bodies = LargeBodies()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope[REQUEST_ID] = begin_request(scope["headers"]).encode()
        path = scope["path"].rstrip("/") or "/"
        if self._node_endpoints.has(path):
            await self._node_endpoints(scope, receive, send)
            return
        home = self._apps(HOME_SHARD)
        try:
            if home is not None and (path in _HERE or home.is_web_app(path)):
                if path == "/metrics" and not self._node.is_blind:
                    await self._learn_credential(self._node.home, scope)
                await home(scope, receive, send)
                return
            if path == "/readyz" or self._node.is_blind:
                await self._say_ready(scope, receive, send)
            else:
                await self._answer(scope, KeptBody(receive), receive, send)
        except ClientLeft:
            return
        except errors.AstraflowError as error:
            if isinstance(error, errors.StoreError):
                error = errors.Unavailable(errors.SCHEDULER_NOT_READY, error.message)
            await problem_response(error)(scope, receive, send)

    async def _learn_credential(self, scheduler: Scheduler, scope: Scope) -> None:
        """Have a scheduler read the credential of a request that another one has stored. Raises: StoreError."""
        if await self._finder.is_new_to(scheduler.credentials.known, scope):
            await scheduler.credentials.refresh()

    def _is_at(self, shard: int, url: str) -> bool:
        return self._node.url_of(shard) == url

    async def _say_ready(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Raises: Unavailable."""
        problem = self._node.problem()
        if problem is not None:
            raise errors.Unavailable(errors.SCHEDULER_NOT_READY, f"not ready: {problem}")
        await json_response(Status(status="ready"))(scope, receive, send)

    async def _assign(self, tenant: str, scope: Scope) -> None:
        """Choose the shard of a tenant that is about to be made. What it may be called is checked where it is made.

        Raises: Refused, Forbidden, StoreError.
        """
        if not _NAME.fullmatch(tenant):
            return
        app = self._apps(HOME_SHARD)
        assert app is not None, "the home shard has an application at every node"
        await self._learn_credential(self._node.home, scope)
        app.admit_site_admin(scope)
        await self._node.assign(tenant)

    async def _answer(self, scope: Scope, body: KeptBody, receive: Receive, send: Send) -> None:
        start = b""
        if self._finder.reads_body(scope):
            start = await body.start(NAMED_BYTES)
        tenant = await self._finder.find(scope, start)
        if scope["method"] == "POST" and scope["path"].rstrip("/") == _TENANTS:
            await self._assign(tenant, scope)
        await self._node.locate(tenant)
        hop = self._hops.came_from(scope)
        if hop is not None:
            await self._answer_hop(tenant, hop, scope, body, send)
            return
        lane = await self._lanes.find(tenant, scope)
        if lane == HOME_LANE or not self._lanes.is_guess(scope):
            await self._ask_lanes(tenant, lane, scope, body, receive, send)
            return
        async with self._large_bodies.kept(body) as is_kept:
            # Home refuses the fewest: those that use resources of another lane.
            lane = lane if is_kept else HOME_LANE
            await self._ask_lanes(tenant, lane, scope, body, receive, send)

    async def _ask_lanes(
        self, tenant: str, lane: int, scope: Scope, body: KeptBody, receive: Receive, send: Send
    ) -> None:
        """Have a request answered by this lane, or by the right one. Raises: Unavailable, ClientLeft, StoreError."""
        ends_at = self._node.now() + OWNER_WAIT_S
        for trial in count():
            for _ in range(MAX_LANE_MOVES):
                moved = await self._ask(tenant, lane, scope, body, receive, send)
                if moved is ANSWERED:
                    return
                if not isinstance(moved, int) or not body.is_kept:
                    break
                lane = moved
            if not body.is_kept or self._node.is_ending or self._node.now() >= ends_at:
                break
            await self._node.next_look(LOOK_WAIT_S)
            if trial >= SOON_TRIES:
                await asyncio.sleep(LATER_S)
        raise errors.Unavailable(errors.SHARD_UNREACHABLE, self._why_nobody_answers(tenant, lane))

    def _why_nobody_answers(self, tenant: str, lane: int) -> str:
        shard = self._node.shard_of(tenant, lane)
        if shard is not None and self._node.is_withheld(shard):
            return f"shard {shard} of the tenant is withheld: its work has ended several schedulers"
        if shard is None or self._node.url_of(shard) is None:
            return "no scheduler owns the tenant of the request now"
        return "the scheduler that owns the tenant of the request cannot be reached by this one"

    async def _answer_hop(
        self, tenant: str, hop: CameFrom, scope: Scope, body: KeptBody, send: Send
    ) -> None:
        """Answer what another node has passed on. Raises: Refused."""
        shard = self._node.shard_of(tenant, hop.lane)
        scheduler = None if shard is None else self._node.scheduler_of(shard)
        if shard is None or scheduler is None:
            raise errors.Refused(errors.SHARD_MOVED, errors.SHARD_MOVED.says)
        scope["client"] = (hop.address, 0)
        scope[GRANT] = any(name == GRANT_HEADER for name, _ in scope["headers"])
        await self._answer_here(shard, scheduler, scope, body, send)

    async def _answer_here(
        self, shard: int, scheduler: Scheduler, scope: Scope, body: KeptBody, send: Send
    ) -> None:
        await self._learn_credential(scheduler, scope)
        app = self._apps(shard)
        assert app is not None, "a shard that is served has an application"
        await app(scope, body.replay, send)

    async def _ask(
        self, tenant: str, lane: int, scope: Scope, body: KeptBody, receive: Receive, send: Send
    ) -> Outcome:
        """Have a lane answer the request: whether it has, or which lane is the right one; None: nobody is asked, and
        nothing was done."""
        shard = self._node.shard_of(tenant, lane)
        if shard is None:
            return None
        has_several = len(self._node.lanes_of(tenant)) > 1
        scheduler = self._node.scheduler_of(shard)
        if scheduler is not None:
            if not has_several:
                await self._answer_here(shard, scheduler, scope, body, send)
                return ANSWERED
            answer = LaneAnswer(send)
            await body.fits()  # read here, so that another lane can be asked with the same body
            await self._answer_here(shard, scheduler, scope, body.again(), answer)
            return answer.lane if answer.is_refusal else ANSWERED
        url = self._node.url_of(shard)
        if url is None:
            return None
        is_owner = partial(self._is_at, shard, url)
        granted = partial(self._follow, shard, scope, receive, send)
        return await self._hops.pass_on(url, lane, scope, body, receive, send, is_owner, granted)

    async def _follow(
        self, shard: int, scope: Scope, receive: Receive, send: Send, grant: bytes
    ) -> None:
        """Serve a stream that the owner of its shard has granted."""
        app = self._apps(shard)
        if app is None:  # the look that shows the shard is still to come
            raise errors.Unavailable(errors.SHARD_UNREACHABLE, "the shard is not known here yet")
        await self._learn_credential(app.scheduler, scope)
        try:
            opening = decode_grant(grant)
        except BadGrant as error:
            code, why = errors.SHARD_UNREACHABLE, f"the grant cannot be read: {error}"
            raise errors.Unavailable(code, why) from error
        await app.follow(opening, scope, receive, send)

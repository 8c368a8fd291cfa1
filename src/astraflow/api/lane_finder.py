"""Which lane of a tenant a request goes to, where the tenant has several.

What is found here is where to ask first. Whether it was right is decided there (`scheduler.lane_rules`): a lane that is
not the right one refuses with 421 and names the right one.

Rule 1: the declaration of a route says by what its lane is found (`routes.Place`): by the run or the resource that the
        request names, or not at all; then it goes home.
Rule 2: a new run goes to the lane of its idempotency key, or to one with few waiting tasks. What was sent there since
        its owner last said how much waits counts, too: else a burst of runs would all go one way.
Rule 3: what is no route goes home, and so does what names nothing that is known: there it is refused.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from random import Random
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from astraflow.api.app import ROUTES
from astraflow.api.router import Router
from astraflow.api.routes import Place, Route
from astraflow.api.unchecked import grant_body, query_value
from astraflow.core.cluster.lanes import HOME_LANE, lane_of_key, lighter_lane, open_lanes
from astraflow.core.ids import RunId
from astraflow.scheduler.lane_rules import LANE

if TYPE_CHECKING:
    from astraflow.api.asgi import Message, Scope, Send
    from astraflow.scheduler.cluster_node import ClusterNode
    from astraflow.store.cluster import StoredCluster

MAX_KNOWN: Final = 100_000
"""Runs whose lane is remembered: about 20 MB. It never changes."""
MAX_ID_CHARS: Final = 256
MAX_REFUSAL_BYTES: Final = 64 * 1024


class _UploadGrant(msgspec.Struct):
    resource_id: str = ""


_decode_grant: Final = msgspec.json.Decoder(_UploadGrant).decode


def _router() -> Router[Route]:
    made: Router[Route] = Router()
    for route in ROUTES:
        made.add(route.method, route.path, route, is_deep=route.is_deep)
    return made


_ROUTER: Final = _router()


class _Sent:
    """The runs that were sent to each lane of a tenant since its owners said how much waits there."""

    def __init__(self, told: dict[int, int]) -> None:
        self.told = told
        self.runs: Counter[int] = Counter()


class LaneFinder:
    """Use from one loop."""

    def __init__(
        self, node: ClusterNode, cluster: StoredCluster, rng: Random | None = None
    ) -> None:
        self._node = node
        self._cluster = cluster
        self._rng = rng or Random()  # noqa: S311 - which lane is tried first is no secret
        self._known: OrderedDict[str, int] = OrderedDict()
        self._sent: dict[str, _Sent] = {}

    def is_guess(self, scope: Scope) -> bool:
        """Whether the lane that is found may be the wrong one. What is stored has its lane for life."""
        return _asked(scope).place is Place.NEW_RUN

    async def find(self, tenant: str, scope: Scope) -> int:
        """Raises: StoreError."""
        if len(self._node.lanes_of(tenant)) == 1:
            return HOME_LANE
        asked = _asked(scope)
        if asked.place is Place.NEW_RUN:
            return self._of_new(tenant, scope)
        if not asked.name or len(asked.name) > MAX_ID_CHARS or not asked.name.isprintable():
            return HOME_LANE
        if asked.place is Place.RUN:
            return await self._of_run(tenant, asked.name)
        found = await self._cluster.lanes_of_resource(tenant, asked.name)
        return found[0] if found else HOME_LANE

    def _of_new(self, tenant: str, scope: Scope) -> int:
        lanes = open_lanes(self._node.lanes_of(tenant))
        for name, value in scope["headers"]:
            if name == b"idempotency-key":
                return lane_of_key(value.decode("latin-1"), lanes)
        told = self._node.loads_of(tenant)
        sent = self._sent.setdefault(tenant, _Sent(told))
        if sent.told != told:
            sent.told = told
            sent.runs.clear()
        lane = lighter_lane(lanes, Counter(told) + sent.runs, self._rng)
        sent.runs[lane] += 1
        return lane

    async def _of_run(self, tenant: str, run_id: str) -> int:
        known = self._known.get(run_id)
        if known is not None:
            self._known.move_to_end(run_id)
            return known
        found = await self._cluster.lane_of_run(tenant, RunId(run_id))
        if found is None:
            return HOME_LANE
        self._known[run_id] = found
        if len(self._known) > MAX_KNOWN:
            self._known.popitem(last=False)
        return found


class _Asked(NamedTuple):
    """By what the lane of a request is found."""

    place: Place
    name: str = ""
    """Of the run or the resource."""


def _asked(scope: Scope) -> _Asked:
    found = _ROUTER.find(scope["path"], scope["method"])
    if found is None:
        return _Asked(Place.HOME)
    route, params = found
    match route.place:
        case Place.RUN:
            return _Asked(Place.RUN, next(iter(params.values()), query_value(scope, "runId") or ""))
        case Place.RESOURCE:
            return _Asked(Place.RESOURCE, scope["path"].removeprefix(route.path.partition("{")[0]))
        case Place.UPLOAD:
            return _Asked(Place.UPLOAD, _resource_of(params["token"]))
        case other:
            return _Asked(other)


def _resource_of(grant: str) -> str:
    """The resource that a signed URL is for; empty if it is none."""
    try:
        return _decode_grant(grant_body(grant)).resource_id
    except msgspec.DecodeError:
        return ""


class LaneAnswer:
    """Passes the response of a scheduler on, unless it says that another lane is the right one."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._start: Message | None = None
        self._body = bytearray()
        self.is_refusal = False
        """Whether it was not the right one: then nothing was sent, and nothing done."""
        self.lane: int | None = None
        """The right lane, if the refusal names it."""

    async def __call__(self, message: Message) -> None:
        if self._start is None and message.get("status") != 421:
            await self._send(message)
            return
        if self._start is None:
            self._start = message
            self.is_refusal = True
            return
        self._body += message.get("body", b"")[:MAX_REFUSAL_BYTES]
        if not message.get("more_body", False):
            self.lane = right_lane(bytes(self._body))


def right_lane(body: bytes) -> int | None:
    """The lane that a refusal names."""
    try:
        said: Any = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError):
        return None
    lane = said.get(LANE) if isinstance(said, dict) else None
    return lane if isinstance(lane, int) and not isinstance(lane, bool) and lane >= 0 else None

"""Which lane of a tenant a request goes to, where the tenant has several.

What is found here is where to ask first. Whether it was right is decided there (`scheduler.lane_rules`): a lane that is
not the right one refuses with 421 and names the right one.

Rule 1: what is about one run goes to the lane of the run, and what is about one resource to the lane of the resource.
Rule 2: a new run goes to the lane of its idempotency key, or to one with few waiting tasks. What was sent there since
        its owner last said how much waits counts, too: else a burst of runs would all go one way.
Rule 3: everything else goes home.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from random import Random
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

import msgspec

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
_API: Final = "/api/v1"
_RUNS: Final = f"{_API}/runs"
_OF_RUNS: Final = (f"{_RUNS}/", f"{_API}/signals/", f"{_API}/scheduler/runs/")
_MANY: Final = frozenset({"cancel", "rerun"})
"""Of the paths below `/runs`, those that are about many runs."""
_OF_RESOURCES: Final = (f"{_API}/resources/", f"{_API}/artifacts/")
_UPLOADS: Final = f"{_API}/uploads/"


class _UploadGrant(msgspec.Struct):
    resource_id: str = ""


_decode_grant: Final = msgspec.json.Decoder(_UploadGrant).decode


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
        return bool(scope["method"] == "POST" and scope["path"].rstrip("/") == _RUNS)

    async def find(self, tenant: str, scope: Scope) -> int:
        """Raises: StoreError."""
        lanes = self._node.lanes_of(tenant)
        if len(lanes) == 1:
            return HOME_LANE
        if self.is_guess(scope):
            return self._of_new(tenant, scope)
        path = scope["path"].rstrip("/")
        run_id = _run_of(path) or query_value(scope, "runId")
        if run_id:
            return await self._of_run(tenant, run_id)
        resource_id = _resource_of(path)
        if resource_id and len(resource_id) <= MAX_ID_CHARS:
            found = await self._cluster.lanes_of_resource(tenant, resource_id)
            return found[0] if found else HOME_LANE
        return HOME_LANE

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
        if len(run_id) > MAX_ID_CHARS or not run_id.isprintable():
            return HOME_LANE  # where it is not found
        found = await self._cluster.lane_of_run(tenant, RunId(run_id))
        if found is None:
            return HOME_LANE
        self._known[run_id] = found
        if len(self._known) > MAX_KNOWN:
            self._known.popitem(last=False)
        return found


def _run_of(path: str) -> str | None:
    for prefix in _OF_RUNS:
        if path.startswith(prefix):
            found = unquote(path.removeprefix(prefix).partition("/")[0])
            is_many = prefix == _OF_RUNS[0] and found in _MANY
            return None if is_many else found
    return None


def _resource_of(path: str) -> str | None:
    for prefix in _OF_RESOURCES:
        if path.startswith(prefix):
            return unquote(path.removeprefix(prefix))
    if not path.startswith(_UPLOADS):
        return None
    try:
        return _decode_grant(grant_body(path.removeprefix(_UPLOADS))).resource_id
    except msgspec.DecodeError:
        return None


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

"""Which lane of a tenant takes a run. Whoever passed the request on has guessed; the lane that it came to is the judge.

A lane that is not the right one refuses with `E.SHARD.MOVED` and the number of the right one. Nothing was done, and the
request is passed on once more (`api.lane_finder`).
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

from astraflow.core import errors
from astraflow.core.cluster.lanes import HOME_LANE, ReservedKey, needs_home, packages_of
from astraflow.core.workflow import find_resource_refs
from astraflow.core.workflow.plan import walk_nodes

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from astraflow.core.workflow.plan import Plan
    from astraflow.scheduler.current import Current
    from astraflow.scheduler.serving import Parts
    from astraflow.store.cluster import StoredCluster

LANE: Final = "lane"
"""The member of a refusal that says which lane is the right one."""


def moved_to(lane: int) -> errors.Refused:
    code = errors.SHARD_MOVED
    return errors.Refused(code, "another lane of the tenant decides this", detail={LANE: lane})


class LanesAdded(Exception):
    """The tenant had one lane when a request came, and has several when it is to be carried out."""


class LaneRules:
    """Use from the scheduler's loop."""

    def __init__(self, parts: Parts, current: Current) -> None:
        self._lanes = parts.lanes
        self._cluster = parts.cluster
        self._current = current
        self._clock = parts.clock
        self._remember_ms = int(parts.engine.remember_submissions_s * 1000)
        self._held: dict[tuple[str, str], tuple[asyncio.Lock, int]] = {}

    def is_home(self, tenant: str) -> bool:
        return self._lanes.lane_of(tenant) == HOME_LANE

    def has_several(self, tenant: str) -> bool:
        return tenant in self._lanes.several()

    @asynccontextmanager
    async def reserved(
        self,
        tenant: str,
        right_lane: Callable[[], Awaitable[int]],
        key: str | None,
        fingerprint: str | None,
        is_known: Callable[[], Awaitable[bool]],
    ) -> AsyncIterator[None]:
        """Inside, no other lane accepts a run with this key. `right_lane`: which one takes the run. `is_known`: whether
        this lane has one with the key.

        Raises: Refused: another lane takes the run; Conflict: the key was used for another request, or the run needs
        resources of two lanes; StoreError.
        """
        if self._cluster is None or not self.has_several(tenant):
            yield
            return
        if key is None:
            right = await right_lane()
            if right != self._lanes.lane_of(tenant):
                raise moved_to(right)
            yield
            return
        async with self._locked((tenant, key)):
            wanted = ReservedKey(self._lanes.lane_of(tenant) or HOME_LANE, fingerprint or "")
            await self._reserve(self._cluster, tenant, key, wanted, right_lane, is_known)
            yield

    async def _reserve(
        self,
        cluster: StoredCluster,
        tenant: str,
        key: str,
        wanted: ReservedKey,
        right_lane: Callable[[], Awaitable[int]],
        is_known: Callable[[], Awaitable[bool]],
    ) -> None:
        now = self._clock.wall_ms()
        cutoff = now - self._remember_ms
        found = await cluster.find_key(tenant, key, cutoff)
        if found is not None:
            self._judge(found, wanted)
        if await is_known():
            # Whatever has changed since: it is answered with the run of then. Nothing is found of a run that the home
            # accepted when it had one lane, until that is committed: a key reserved now would hide it from who sent it.
            return
        right = await right_lane()
        if right != wanted.lane:
            if found is not None:  # reserved here for a run that was never accepted
                await cluster.move_key(tenant, key, wanted.lane, right)
            raise moved_to(right)
        if found is None:
            self._judge(await cluster.reserve_key(tenant, key, wanted, now, cutoff), wanted)

    def _judge(self, found: ReservedKey, wanted: ReservedKey) -> None:
        if found.fingerprint != wanted.fingerprint:
            raise errors.Conflict(
                errors.RUN_IDEMPOTENCY_CONFLICT, errors.RUN_IDEMPOTENCY_CONFLICT.says
            )
        if found.lane != wanted.lane:
            raise moved_to(found.lane)

    @asynccontextmanager
    async def _locked(self, key: tuple[str, str]) -> AsyncIterator[None]:
        """One request for each key at a time."""
        lock, users = self._held.get(key, (asyncio.Lock(), 0))
        self._held[key] = (lock, users + 1)
        try:
            async with lock:
                yield
        finally:
            lock, users = self._held.pop(key)
            if users > 1:
                self._held[key] = (lock, users - 1)

    async def own_lane(self, tenant: str) -> int:
        """The lane of what stays where it is."""
        return self._lanes.lane_of(tenant) or HOME_LANE

    async def right_lane(self, tenant: str, plan: Plan, inputs: bytes) -> int:
        """The lane that takes a run which has come here. Raises: Conflict, StoreError."""
        own = self._lanes.lane_of(tenant) or HOME_LANE
        assert self._cluster is not None
        of_resources = await self._lane_of_resources(self._cluster, tenant, plan, inputs)
        if of_resources is not None:
            return of_resources
        return HOME_LANE if own != HOME_LANE and self._goes_home(tenant, plan) else own

    def _goes_home(self, tenant: str, plan: Plan) -> bool:
        return needs_home(plan) or not self._current.engine.ask.has_packages(
            tenant, packages_of(plan)
        )

    async def _lane_of_resources(
        self, cluster: StoredCluster, tenant: str, plan: Plan, inputs: bytes
    ) -> int | None:
        """The lane of what the run uses by reference."""
        named = {ref.resource_id for node in walk_nodes(plan) for ref in node.resource_refs}
        named |= {ref.resource_id for ref in find_resource_refs(inputs)}
        lanes: set[int] = set()
        for resource_id in named:
            found = await cluster.lanes_of_resource(tenant, resource_id)
            lanes |= set(found[:1])
        if len(lanes) > 1:
            raise errors.Conflict(
                errors.RESOURCE_CONFLICT,
                f"the run needs resources of several lanes: {', '.join(map(str, sorted(lanes)))}",
            )
        return next(iter(lanes), None)

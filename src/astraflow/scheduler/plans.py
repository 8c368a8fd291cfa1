"""Plans: made once for each definition, kept while they are used, and read back for runs that were stored."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from hashlib import sha256
from typing import TYPE_CHECKING, Final

import msgspec

from astraflow import errors
from astraflow.store.rows import PlanRow
from astraflow.workflow import decode_definition, plan_workflow
from astraflow.workflow.plan import Plan, decode_plan, encode_plan

if TYPE_CHECKING:
    from astraflow.store.store import Store
    from astraflow.workflow.catalog import Catalog

__all__ = ["Planned", "Plans"]

INLINE_BYTES: Final = 64 * 1024
"""A larger definition is planned in a thread: it would hold heartbeats up."""

KEPT_NODES: Final = 200_000
"""Nodes of plans that are kept beside those of active runs, about 100 MiB at the most."""


class Planned(msgspec.Struct, frozen=True):
    """A plan and what is stored of it."""

    plan: Plan
    row: PlanRow
    name: str


class Plans:
    """By the digest of their definition: equal definitions are planned once, and stored once."""

    def __init__(self, store: Store, catalog: Catalog) -> None:
        self._store = store
        self._catalog = catalog
        self._kept: OrderedDict[bytes, Planned] = OrderedDict()
        self._nodes = 0

    async def make(self, definition: bytes) -> Planned:
        """Plan a definition.

        Raises:
            InvalidDocument: with all its problems.
        """
        digest = sha256(definition).digest()
        known = self._kept.get(digest)
        if known is not None:
            self._kept.move_to_end(digest)
            return known
        if len(definition) <= INLINE_BYTES:
            planned = self._make(definition)
        else:
            planned = await asyncio.to_thread(self._make, definition)
        self._keep(digest, planned)
        return planned

    def _make(self, definition: bytes) -> Planned:
        decoded = decode_definition(definition)
        plan = plan_workflow(decoded, self._catalog)
        metadata = decoded.workflow.metadata
        name = metadata.name if metadata is not None and metadata.name else ""
        body = encode_plan(plan)
        # The same definition gives another plan when packages have changed meanwhile.
        plan_id = sha256(sha256(definition).digest() + body).hexdigest()
        return Planned(plan, PlanRow(plan_id, definition, body), name)

    async def find(self, plan_id: str) -> Plan:
        """The plan of a stored run."""
        row = await self._store.find_plan(plan_id)
        if row is None:
            raise errors.Bug(errors.INTERNAL, f"the plan of a stored run is gone: {plan_id}")
        return decode_plan(row.plan)

    def _keep(self, digest: bytes, planned: Planned) -> None:
        if digest in self._kept:
            return  # two submissions of it were planned at once
        self._kept[digest] = planned
        self._nodes += len(planned.plan.nodes)
        while self._nodes > KEPT_NODES and len(self._kept) > 1:
            _, dropped = self._kept.popitem(last=False)
            self._nodes -= len(dropped.plan.nodes)

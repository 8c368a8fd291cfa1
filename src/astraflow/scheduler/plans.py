"""Plans: made once for each definition, kept while they are used, and read back for runs that were stored."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from hashlib import sha256
from typing import TYPE_CHECKING, Final

import msgspec

from astraflow import errors
from astraflow.store.rows import PlanRow
from astraflow.workflow import (
    InvalidDocument,
    decode_definition,
    plan_workflow,
    refusal_of,
    validate,
)
from astraflow.workflow.features import EXECUTED
from astraflow.workflow.plan import Plan, decode_plan, encode_plan

if TYPE_CHECKING:
    from astraflow.scheduler.catalogs import Catalogs
    from astraflow.store.store import Store
    from astraflow.workflow.catalog import Catalog
    from astraflow.workflow.definition import Definition

__all__ = ["Planned", "Plans"]

INLINE_BYTES: Final = 64 * 1024
"""A larger definition is planned in a thread: it would hold heartbeats up."""

KEPT_NODES: Final = 200_000
"""Nodes of plans that are kept beside those of active runs, about 100 MiB at the most."""

_Key = tuple[str, int, bytes]
"""The tenant, the generation of its catalog, the digest of the definition."""


class Planned(msgspec.Struct, frozen=True):
    """A plan and what is stored of it."""

    plan: Plan
    row: PlanRow
    name: str
    inputs: frozenset[str] = frozenset()
    """The names of the inputs that the workflow declares."""


class Plans:
    """By the digest of their definition: equal definitions are planned once, and stored once.

    A tenant whose catalog has changed meanwhile may get another plan: its generation is part of the key.
    """

    def __init__(self, store: Store, catalogs: Catalogs) -> None:
        self._store = store
        self._catalogs = catalogs
        self._kept: OrderedDict[_Key, Planned] = OrderedDict()
        self._nodes = 0

    async def make(self, tenant: str, definition: bytes) -> Planned:
        """Plan a definition with the packages of a tenant.

        Raises:
            InvalidDocument: with all its problems.
        """
        digest = sha256(definition).digest()
        key = (tenant, self._catalogs.generation(tenant), digest)
        known = self._kept.get(key)
        if known is not None:
            self._kept.move_to_end(key)
            return known
        catalog = self._catalogs.of(tenant)
        if len(definition) <= INLINE_BYTES:
            planned = self._make(definition, catalog)
        else:
            planned = await asyncio.to_thread(self._make, definition, catalog)
        self._keep(key, planned)
        return planned

    def _make(self, definition: bytes, catalog: Catalog) -> Planned:
        decoded = decode_definition(definition)
        plan = _plan(decoded, catalog)
        metadata = decoded.workflow.metadata
        name = metadata.name if metadata is not None and metadata.name else ""
        body = encode_plan(plan)
        # The same definition gives another plan when packages have changed meanwhile.
        plan_id = sha256(sha256(definition).digest() + body).hexdigest()
        inputs = frozenset(decoded.workflow.inputs)
        return Planned(plan, PlanRow(plan_id, definition, body), name, inputs)

    async def find(self, plan_id: str) -> Plan:
        """The plan of a stored run."""
        row = await self._store.find_plan(plan_id)
        if row is None:
            raise errors.Bug(errors.INTERNAL, f"the plan of a stored run is gone: {plan_id}")
        return decode_plan(row.plan)

    def _keep(self, key: _Key, planned: Planned) -> None:
        if key in self._kept:
            return  # two submissions of it were planned at once
        self._kept[key] = planned
        self._nodes += len(planned.plan.nodes)
        while self._nodes > KEPT_NODES and len(self._kept) > 1:
            _, dropped = self._kept.popitem(last=False)
            self._nodes -= len(dropped.plan.nodes)


def _plan(definition: Definition, catalog: Catalog) -> Plan:
    """Raises InvalidDocument with exactly the problems that validation reports."""
    try:
        plan = plan_workflow(definition, catalog)
    except InvalidDocument:
        plan = None
    if plan is None or plan.features - EXECUTED:
        raise refusal_of(validate(definition, catalog))
    return plan

"""Plans: made once for each definition, kept while they are used, and read back for runs that were stored."""

from __future__ import annotations

import asyncio
from hashlib import sha256
from typing import TYPE_CHECKING, Final

import msgspec

from astraflow.core import errors
from astraflow.core.workflow import (
    declared_inputs,
    decode_definition,
    plan_workflow,
)
from astraflow.core.workflow.plan import DeclaredInput, Plan, walk_nodes
from astraflow.core.workflow.stored_plan import decode_plan, encode_plan
from astraflow.scheduler.byte_cache import ByteCache
from astraflow.scheduler.called_workflows import read_called
from astraflow.store.rows import PlanRow

if TYPE_CHECKING:
    from astraflow.core.workflow.callees import Documents
    from astraflow.core.workflow.catalog import Catalog
    from astraflow.scheduler.catalogs import Catalogs
    from astraflow.store.store import Store

INLINE_BYTES: Final = 64 * 1024
"""A larger definition is planned in a thread: it would hold heartbeats up."""

CACHE_BYTES: Final = 32 * 1024**2
"""What plans and their definitions take that are kept beside those of active runs."""
LARGEST_BYTES: Final = CACHE_BYTES // 2
PLAN_BYTES: Final = 2_000
NODE_BYTES: Final = 500
"""What a plan takes, and each of its nodes, beside their bytes."""

_Key = tuple[str, int, bytes]
"""The tenant, the generation of its catalog, the digest of the definition and of those that it calls."""


class Planned(msgspec.Struct, frozen=True):
    """A plan and what is stored of it."""

    plan: Plan
    row: PlanRow
    name: str
    inputs: tuple[DeclaredInput, ...] = ()
    """The inputs that the workflow declares."""
    has_secrets: bool = False
    """Whether any node refers to one."""


class Plans:
    """By the digest of their definition: equal definitions are planned once, and stored once.

    A tenant whose catalog has changed meanwhile may get another plan: its generation is part of the key.
    """

    def __init__(self, store: Store, catalogs: Catalogs) -> None:
        self._store = store
        self._catalogs = catalogs
        self._cache: ByteCache[_Key, Planned] = ByteCache(CACHE_BYTES, LARGEST_BYTES)

    async def make(self, tenant: str, definition: bytes) -> Planned:
        """Plan a definition with the packages of a tenant.

        Raises:
            InvalidDocument: with all its problems.
        """
        called = await read_called(self._store, tenant, definition)
        digest = sha256(definition)
        for document in called.values():
            digest.update(sha256(document.raw).digest())
        key = (tenant, self._catalogs.generation(tenant), digest.digest())
        known = self._cache.find(key)
        if known is not None:
            return known
        catalog = self._catalogs.of(tenant)
        if len(definition) <= INLINE_BYTES:
            planned = self._make(definition, catalog, called)
        else:
            planned = await asyncio.to_thread(self._make, definition, catalog, called)
        self._cache.put(key, planned, _size(planned))
        return planned

    def _make(self, definition: bytes, catalog: Catalog, called: Documents) -> Planned:
        decoded = decode_definition(definition)
        plan = plan_workflow(decoded, catalog, called)
        metadata = decoded.workflow.metadata
        name = metadata.name if metadata is not None and metadata.name else ""
        body = encode_plan(plan)
        # The same definition gives another plan when packages have changed meanwhile.
        plan_id = sha256(sha256(definition).digest() + body).hexdigest()
        inputs = declared_inputs(decoded.workflow)
        has_secrets = any(node.secrets for node in walk_nodes(plan))
        return Planned(plan, PlanRow(plan_id, definition, body), name, inputs, has_secrets)

    async def find(self, plan_id: str) -> Plan:
        """The plan of a stored run."""
        row = await self._store.find_plan(plan_id)
        if row is None:
            raise errors.Bug(errors.INTERNAL, f"the plan of a stored run is gone: {plan_id}")
        return decode_plan(row.plan)


def plan_bytes(plan: Plan) -> int:
    """What a plan takes in memory, by estimate."""
    return PLAN_BYTES + sum(NODE_BYTES + len(node.parameters) for node in walk_nodes(plan))


def _size(planned: Planned) -> int:
    row = planned.row
    return len(row.definition) + len(row.plan) + plan_bytes(planned.plan)

"""The audit chains of all tenants: gives each audit row its number and its hash.

The row writer has them, so that they are discarded with a batch that was not committed. One chain per tenant: what one
scheduler writes of its tenants never waits for another's.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from astraflow.core.security.audit_chain import ChainHead, hash_of
from astraflow.store.rows import AuditHeadRow, AuditRow

MAX_CHAINS: Final = 10_000
"""Anybody can be refused under any tenant that they make up. Beyond so many chains that begins no other: such a refusal
goes to the chain of no tenant."""
NO_TENANT: Final = ""


class AuditChains:
    """Where the chain of each tenant ends."""

    def __init__(self, heads: Iterable[AuditHeadRow]) -> None:
        self._heads = {row.tenant: ChainHead(row.number, row.hash) for row in heads}

    def head(self, tenant: str) -> ChainHead:
        return self._heads.get(tenant, ChainHead())

    def heads(self) -> list[tuple[str, ChainHead]]:
        return list(self._heads.items())

    def link(self, row: AuditRow) -> AuditRow:
        """The row as the next one of its chain."""
        is_refusal = row.code is not None
        if is_refusal and row.tenant not in self._heads and len(self._heads) >= MAX_CHAINS:
            row = _of_no_tenant(row)
        last = self.head(row.tenant)
        number = last.number + 1
        digest = hash_of(last.hash, number, row)
        self._heads[row.tenant] = ChainHead(number, digest)
        return msgspec.structs.replace(row, chain_number=number, previous=last.hash, hash=digest)

    def heads_of(self, rows: Iterable[AuditRow]) -> list[AuditHeadRow]:
        """The ends of the chains that these rows belong to."""
        found = []
        for tenant in dict.fromkeys(row.tenant for row in rows):
            head = self._heads[tenant]
            found.append(AuditHeadRow(tenant, head.number, head.hash))
        return found


def _of_no_tenant(row: AuditRow) -> AuditRow:
    detail = {**msgspec.json.decode(row.detail), "tenant": row.tenant}
    return msgspec.structs.replace(row, tenant=NO_TENANT, detail=msgspec.json.encode(detail))

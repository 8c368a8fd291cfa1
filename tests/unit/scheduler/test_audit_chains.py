"""Refusals under tenants that somebody makes up do not begin chains without end."""

from __future__ import annotations

import json

from astraflow.scheduler.audit_chains import MAX_CHAINS, AuditChains
from astraflow.store.rows import AuditRow


def refusal(tenant: str) -> AuditRow:
    return AuditRow(tenant, 1, "w", "login", None, "E.AUTH.INVALID_TOKEN", b'{"worker":"w"}')


def test_beyond_a_number_of_chains_a_refusal_belongs_to_no_tenant() -> None:
    chains = AuditChains(())
    for number in range(MAX_CHAINS):
        assert chains.link(refusal(f"t{number}")).chain_number == 1
    row = chains.link(refusal("another"))
    assert (row.tenant, row.chain_number) == ("", 1)
    assert json.loads(row.detail) == {"worker": "w", "tenant": "another"}
    assert chains.link(refusal("t7")).chain_number == 2
    done = chains.link(AuditRow("real", 1, "ann", "login"))
    assert (done.tenant, done.chain_number) == ("real", 1)
    assert [head.tenant for head in chains.heads_of([row, done, row])] == ["", "real"]

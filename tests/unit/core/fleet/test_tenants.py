"""Tenants: their states and their policies."""

from __future__ import annotations

import pytest

from astraflow.core.fleet.facts import NoTransition
from astraflow.core.fleet.tenants import (
    TenantConfigured,
    TenantPolicy,
    TenantRecord,
    TenantResumed,
    TenantSuspended,
    TenantTable,
)

POLICY = TenantPolicy(weight=2.0, max_runs=3)


def test_a_tenant_that_nobody_configured_has_the_defaults() -> None:
    table = TenantTable()
    assert table.find("acme") is None
    assert table.policy("acme") == TenantPolicy()
    assert not table.is_suspended("acme")
    assert list(table) == []


def test_a_tenant_keeps_who_made_it_when_it_is_changed() -> None:
    table = TenantTable()
    made = table.apply(TenantConfigured("acme", 1, POLICY, "ann"))
    assert made == TenantRecord(
        tenant="acme", policy=POLICY, created_at=1, created_by="ann", updated_at=1
    )
    changed = table.apply(TenantConfigured("acme", 2, TenantPolicy(), "bob"))
    assert (changed.created_at, changed.created_by, changed.updated_at) == (1, "ann", 2)
    assert table.policy("acme") == TenantPolicy()
    assert list(table) == [changed] == [table.find("acme")]


def test_a_tenant_is_suspended_until_it_is_resumed_whatever_else_changes() -> None:
    table = TenantTable()
    table.apply(TenantConfigured("acme", 1, POLICY))
    for _ in range(2):
        assert table.apply(TenantSuspended("acme", 2)).is_suspended
    table.apply(TenantConfigured("acme", 3, TenantPolicy()))
    assert table.is_suspended("acme")
    for _ in range(2):
        assert not table.apply(TenantResumed("acme", 4)).is_suspended
    assert not table.is_suspended("acme")


def test_nobody_suspends_what_is_not_there() -> None:
    with pytest.raises(NoTransition):
        TenantTable().apply(TenantSuspended("acme", 1))

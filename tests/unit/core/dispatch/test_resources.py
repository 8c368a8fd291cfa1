"""The table of what workers hold."""

from __future__ import annotations

from astraflow.core.dispatch.resources import Holding, ResourceTable


def holding(worker: str = "w1", resource: str = "r1", scope: str = "run1") -> Holding:
    made = Holding("acme", worker, resource, 0)
    made.scope = scope
    return made


def test_a_resource_is_found_by_id_by_worker_and_by_scope() -> None:
    table = ResourceTable()
    one, other = holding(), holding("w2")
    table.add(one)
    table.add(other)
    table.check()
    assert table.find("acme", "r1", "w1") is one
    assert table.holders("acme", "r1") == [one, other]
    assert table.of_worker("acme", "w2") == [other]
    assert table.of_scope("acme", "run1") == [one, other]
    assert (len(table), list(table)) == (2, [one, other])


def test_another_tenants_is_not_there() -> None:
    table = ResourceTable()
    table.add(holding())
    assert table.find("other", "r1", "w1") is None
    assert table.of_worker("other", "w1") == table.of_scope("other", "run1") == []


def test_what_was_removed_leaves_nothing_behind() -> None:
    table = ResourceTable()
    one, other = holding(), holding(resource="r2")
    table.add(one)
    table.add(other)
    table.remove(one)
    table.check()
    assert list(table) == [other]
    table.remove(other)
    assert (len(table), table.holders("acme", "r2")) == (0, [])

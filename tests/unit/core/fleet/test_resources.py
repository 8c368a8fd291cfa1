"""Resources: their states, and the table of them."""

from __future__ import annotations

import msgspec
import pytest

from astraflow.core.fleet.facts import NoTransition
from astraflow.core.fleet.resources import (
    ResourceClosed,
    ResourceCopied,
    ResourceGone,
    ResourceListed,
    ResourceRecord,
    ResourceRegistered,
    ResourceTable,
    ResourceUpdated,
)

R1 = ("acme", 0, "w1", "r1")


def record(worker: str = "w1", resource: str = "r1", scope: str = "run1") -> ResourceRecord:
    return ResourceRecord(
        tenant="acme", worker_id=worker, resource_id=resource, scope=scope, created_at=0
    )


def table(*records: ResourceRecord) -> ResourceTable:
    made = ResourceTable()
    for one in records:
        made.apply(ResourceRegistered("acme", 0, one.worker_id, one.resource_id, one))
    made.check()
    return made


def test_a_resource_is_found_by_id_by_worker_and_by_scope() -> None:
    one, other = record(), record("w2")
    resources = table(one, other)
    assert resources.find("acme", "r1", "w1") is one
    assert resources.holders("acme", "r1") == [one, other]
    assert resources.of_worker("acme", "w2") == [other]
    assert resources.of_scope("acme", "run1") == [one, other]
    assert (len(resources), list(resources)) == (2, [one, other])


def test_another_tenants_is_not_there() -> None:
    resources = table(record())
    assert resources.find("other", "r1", "w1") is None
    assert resources.of_worker("other", "w1") == resources.of_scope("other", "run1") == []


def test_what_is_gone_leaves_nothing_behind() -> None:
    resources = table(record(), record(resource="r2"))
    resources.set_adrift(record())
    gone = resources.apply(ResourceGone(*R1, "released"))
    resources.check()
    assert gone == msgspec.structs.replace(record(), state="released")
    assert list(resources) == [record(resource="r2")]
    assert not resources.is_adrift(record())


def test_an_id_that_is_registered_again_is_another_resource() -> None:
    resources = table(record())
    resources.apply(ResourceCopied(*R1, "blob"))
    resources.set_adrift(record())
    another = record(scope="session:a")
    resources.apply(ResourceRegistered(*R1, another))
    resources.check()
    assert resources.find("acme", "r1", "w1") == another
    assert resources.of_scope("acme", "run1") == []
    assert not resources.is_adrift(another)


def test_each_fact_changes_its_own_part() -> None:
    resources = table(record())
    resources.apply(ResourceUpdated(*R1, size_bytes=7))
    resources.apply(ResourceUpdated(*R1, expires_at=9))
    resources.apply(ResourceListed(*R1))
    resources.apply(ResourceCopied(*R1, "blob"))
    after = resources.apply(ResourceClosed(*R1))
    assert after == msgspec.structs.replace(
        record(), size_bytes=7, expires_at=9, is_artifact=True, blob="blob", state="evicting"
    )
    resources.check()


@pytest.mark.parametrize(
    "fact",
    [ResourceUpdated(*R1), ResourceListed(*R1), ResourceClosed(*R1), ResourceGone(*R1, "evicted")],
)
def test_nothing_happens_to_what_is_not_there(fact: ResourceUpdated) -> None:
    with pytest.raises(NoTransition):
        table().apply(fact)


def test_a_worker_that_is_back_has_its_resources_again() -> None:
    resources = table(record(), record("w2"))
    for one in resources:
        resources.set_adrift(one)
    resources.worker_is_back("acme", "w1")
    assert [resources.is_adrift(one) for one in resources] == [False, True]

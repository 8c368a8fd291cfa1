"""Several items of a map lose what they wait for at once: the first ends the map, and the run with it."""

from __future__ import annotations

from typing import Any

import msgspec

from astraflow.core.protocol import business
from astraflow.core.runs.facts import RunFinished, TaskCancelled, TaskFailed
from astraflow.core.workflow.plan import AffinityHint, BodyStep, ControlStep, MapStep, Plan
from tests.unit.core.engine.rig import Rig
from tests.unit.core.engine.test_callbacks import PoolRig
from tests.unit.core.engine.test_packages import INSTALLS, TEXT, published, tell
from tests.unit.core.engine.test_resources import ready, ref
from tests.unit.core.engine.test_resources import tell as tell_resource
from tests.unit.plans import make_plan


def mapped(item: object = 1, **inner: Any) -> Plan:
    over = MapStep(path=("list",), target=("item",))
    body = BodyStep(
        plan=make_plan(1, nodes={0: {**inner, "takes_item": True}}), map=over, policy="stop"
    )
    given = msgspec.json.encode({"list": [item] * 3})
    return make_plan(1, nodes={0: {"control": ControlStep(body=body), "parameters": given}})


def ended(rig: Rig) -> tuple[list[int], list[int]]:
    """The tasks that failed and those that were cancelled in the run, which has ended."""
    facts = rig.facts()
    assert isinstance(facts[-1], RunFinished)
    assert "run1" not in rig.active()
    return (
        [fact.task for fact in facts if isinstance(fact, TaskFailed)],
        [fact.task for fact in facts if isinstance(fact, TaskCancelled)],
    )


def test_the_worker_that_holds_what_all_need_does_not_come_back() -> None:
    rig = Rig(resource_grace_s=10.0)
    rig.worker("w1")
    rig.submit(mapped(ref("gone")))
    rig.wait(10.2)
    assert ended(rig) == ([1, 0], [2, 3])
    assert rig.counted("pinned worker lost") == 1


def test_the_resource_that_all_need_is_evicted() -> None:
    rig = Rig()
    holder = rig.worker("w1", slots=1)
    tell_resource(holder, ready())
    rig.submit(make_plan(1), "busy")
    rig.submit(mapped(ref("w1")))
    tell_resource(holder, business.ResourceEvent("r1", "evicted"))
    assert ended(rig) == ([1, 0], [2, 3])


def test_the_worker_of_the_affinity_key_does_not_come_back() -> None:
    rig = Rig(affinity_grace_s=10.0)
    first = rig.worker("w1")
    sticky = {"affinity": AffinityHint("k", "sticky"), "on_resource_lost": "fail"}
    rig.submit(make_plan(1, nodes={0: sticky}), "first")
    first.finish()
    first.crash()
    rig.submit(mapped(**sticky))
    rig.wait(40.0)
    assert ended(rig) == ([1, 0], [2, 3])


def test_the_package_cannot_be_installed() -> None:
    rig = published()
    worker = rig.worker("w1", features=INSTALLS)
    rig.submit(mapped(**TEXT))
    tell(worker, "failed", code="E.PKG.INVALID", message="bad zip")
    rig.wait(1.5)
    assert ended(rig) == ([1, 0], [2, 3])


def test_nobody_starts_what_was_pushed_to_a_pool() -> None:
    rig = PoolRig(max_parallel=3)
    rig.submit(mapped())
    for _ in range(8):
        rig.wait(30.0)
    failed, cancelled = ended(rig)
    assert failed[-1] == 0
    assert sorted((*failed, *cancelled)) == [0, 1, 2, 3]


def test_an_item_that_would_have_it_made_again_says_why_it_is_not() -> None:
    rig = Rig(resource_grace_s=10.0)
    rig.worker("w1")
    rig.submit(mapped(ref("gone"), on_resource_lost="rebuild"))
    rig.wait(10.2)
    [failed] = [one for one in rig.facts() if isinstance(one, TaskFailed) and one.task == 1]
    assert "it cannot be made again within a container, a call or a map" in failed.error.message

"""Values that are stored by reference: copied before their result comes, and read by any worker."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from astraflow.core.engine.commands import CloseResource, NoteCopy
from astraflow.core.expressions.stored_value import VALUE_TYPE
from astraflow.core.ids import RunId
from astraflow.core.protocol import business
from astraflow.core.runs.facts import TaskFailed
from tests.unit.core.engine.rig import TENANT, Rig, Worker
from tests.unit.core.engine.test_resources import R1, asked, tell
from tests.unit.plans import make_plan

METADATA = msgspec.Raw(b'{"durable":true,"mime":"application/json"}')
REF: dict[str, Any] = {
    "resourceRef": {"resourceId": "r1", "workerId": "w1", "type": VALUE_TYPE, "sizeBytes": 7}
}
ARTIFACT = business.ResultArtifact("r1", "w1", VALUE_TYPE, 7, metadata=METADATA)


def made() -> business.ResourceEvent:
    return business.ResourceEvent(
        "r1",
        "ready",
        type=VALUE_TYPE,
        run_id=RunId("run1"),
        scope="run1",
        size_bytes=7,
        metadata=METADATA,
    )


def stored(**settings: Any) -> tuple[Rig, Worker]:
    """A node has stored a large value, and a second one waits to read it: its worker has no slot for that."""
    rig = Rig(keeps_copies=True, **settings)
    maker = rig.worker("w1", per_node_limits={"t.use": 0})
    rig.submit(make_plan(2, [(0, 1)], nodes={1: {"type": "t.use"}}, reads=True))
    tell(maker, made())
    rig.execute(NoteCopy(**R1, blob="blob"))
    maker.finish(value=REF, artifacts=(ARTIFACT,))
    return rig, maker


def test_it_is_copied_before_its_result_comes() -> None:
    rig = Rig(keeps_copies=True)
    maker = rig.worker("w1")
    rig.submit(make_plan(1))
    tell(maker, made())
    [export] = asked(maker, business.ResourceExport)
    assert export.resource_id == "r1"
    maker.crash()
    maker.boot()
    rig.wait(1.0)
    assert len(asked(maker, business.ResourceExport)) == 2, (
        "and asked for again in the next session"
    )


def test_any_worker_reads_it_from_its_copy() -> None:
    rig, maker = stored()
    reader = rig.worker("w2")
    assert reader.tasks() == [("run1.1", 1)]
    [wired] = reader.started[0].resource_refs
    assert (wired.resource_id, wired.worker_id, wired.type) == ("r1", "w2", VALUE_TYPE)
    assert bytes(wired.metadata) == b'{"copyUrl":"https://down.example/r1"}'
    assert len(asked(maker, business.ResourceExport)) == 1


def test_what_a_worker_has_read_is_not_copied_again() -> None:
    rig, _ = stored()
    reader = rig.worker("w2")
    tell(reader, made())
    assert len(asked(reader, business.ResourceExport)) == 1
    reader.finish()
    assert rig.active() == []


@pytest.mark.parametrize("state", ["evicted", "released"])
def test_it_is_there_when_its_worker_has_let_it_go(state: Any) -> None:
    rig, maker = stored()
    tell(maker, business.ResourceEvent("r1", state))
    reader = rig.worker("w2")
    assert reader.tasks() == [("run1.1", 1)]
    assert rig.engine.view.resources.find(TENANT, "r1", "w1") is not None


def test_it_is_there_when_its_worker_does_not_come_back() -> None:
    rig, maker = stored(resource_grace_s=5.0)
    maker.crash()
    rig.wait(300.0)
    assert rig.worker("w2").tasks() == [("run1.1", 1)]


def test_one_that_no_result_refers_to_goes_with_its_run() -> None:
    rig = Rig(keeps_copies=True)
    maker = rig.worker("w1")
    rig.submit(make_plan(1))
    tell(maker, made())
    rig.execute(NoteCopy(**R1, blob="blob"))
    maker.fail()
    assert rig.active() == []
    tell(maker, business.ResourceEvent("r1", "evicted"))
    assert rig.engine.view.resources.find(TENANT, "r1", "w1") is None


def test_one_that_somebody_closes_is_gone_at_once() -> None:
    rig, maker = stored()
    rig.execute(CloseResource(**R1, by="ann"))
    assert rig.engine.view.resources.find(TENANT, "r1", "w1") is None
    assert [one.resource_id for one in asked(maker, business.ResourceCleanup)] == ["r1"]
    assert rig.engine.ask.resources_of_type(VALUE_TYPE) == []


def test_the_schema_of_a_node_does_not_judge_what_is_not_there() -> None:
    schema = b'{"properties":{"from0":{"type":"string"}}}'
    plan = make_plan(2, [(0, 1)], nodes={1: {"parameters_schema": 0}}, reads=True)
    rig = Rig(keeps_copies=True)
    maker = rig.worker("w1")
    rig.submit(msgspec.structs.replace(plan, schemas=(schema,)))
    tell(maker, made())
    rig.execute(NoteCopy(**R1, blob="blob"))
    maker.finish(value=REF, artifacts=(ARTIFACT,))
    assert len(maker.started) == 2


def test_an_edge_cannot_read_a_part_of_it() -> None:
    plan = make_plan(2, [(0, 1)], reads=True)
    [edge] = plan.nodes[1].inputs
    inside = msgspec.structs.replace(edge, read=(*(edge.read or ()), "items", "0"))
    node = msgspec.structs.replace(plan.nodes[1], inputs=(inside,))
    rig = Rig(keeps_copies=True)
    maker = rig.worker("w1")
    rig.submit(msgspec.structs.replace(plan, nodes=(plan.nodes[0], node)))
    tell(maker, made())
    rig.execute(NoteCopy(**R1, blob="blob"))
    maker.finish(value=REF, artifacts=(ARTIFACT,))
    [failed] = [fact for fact in rig.facts() if isinstance(fact, TaskFailed)]
    assert failed.error.code == "E.TASK.EXPRESSION"
    assert "results.v.items.0 is inside a large value" in failed.error.message

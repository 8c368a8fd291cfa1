"""Values of maps that the scheduler itself stores or reads."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from astraflow.core import errors
from astraflow.core.engine.commands import CloseResource, NoteCopy, NoteList, NoteValue
from astraflow.core.engine.effects import ReadList, StoreValue
from astraflow.core.ids import SCHEDULER_ID, RunId
from astraflow.core.runs import scope_rules
from astraflow.core.runs.facts import RunFinished, ScopeOpened, TaskDecided, TaskFailed, TaskFailure
from astraflow.core.workflow.plan import BodyStep, ControlStep, MapStep, Plan
from tests.unit.core.engine.rig import TENANT, Rig, Worker
from tests.unit.core.engine.test_resources import R1, tell
from tests.unit.core.engine.test_stored_values import ARTIFACT, REF, made
from tests.unit.plans import make_plan

WHERE: dict[str, Any] = {"tenant": TENANT, "run_id": RunId("run1"), "by": "scheduler"}
LOST = TaskFailure(errors.RESOURCE_LOST.code, "INFRASTRUCTURE", "gone", retryable=False)


def over_list(path: str, **fields: Any) -> dict[str, Any]:
    """A node that runs once for each item of the list at this place of its parameters."""
    step = MapStep(path=(path,), target=("item",))
    body = BodyStep(plan=make_plan(1, nodes={0: {"takes_item": True}}), map=step, policy="stop")
    return {"control": ControlStep(body=body), **fields}


def reading(**fields: Any) -> Plan:
    """A node makes a list, and a map goes over it."""
    return make_plan(2, [(0, 1)], nodes={1: over_list("from0", **fields)}, reads=True)


def stored(**fields: Any) -> tuple[Rig, Worker]:
    """The list is stored by reference, and its result has come."""
    rig = Rig(keeps_copies=True)
    worker = rig.worker("w1")
    rig.submit(reading(**fields))
    tell(worker, made())
    rig.execute(NoteCopy(**R1, blob="blob"))
    worker.finish(value=REF, artifacts=(ARTIFACT,))
    return rig, worker


def wanted(rig: Rig) -> list[ReadList]:
    return [effect for effect in rig.shell_effects if isinstance(effect, ReadList)]


def note(rig: Rig, items: Any = None, failure: TaskFailure | None = None, of: str = "r1") -> None:
    encoded = msgspec.json.encode(items)
    rig.execute(NoteList(**WHERE, task=1, resource_id=of, items=encoded, failure=failure))


def test_a_map_reads_its_list_from_the_copy() -> None:
    rig, worker = stored()
    assert wanted(rig) == [ReadList(TENANT, RunId("run1"), 1, "r1", "blob")]
    assert len(worker.started) == 1
    note(rig, [1, 2, 3])
    assert [one.task_id for one in worker.started[1:]] == ["run1.2", "run1.3", "run1.4"]
    note(rig, [1, 2, 3])
    assert rig.counted("list of a map is not waited for") == 1
    for number in (1, 2, 3):
        worker.finish(number)
    assert rig.active() == []


def test_a_restarted_scheduler_reads_it_again() -> None:
    rig, worker = stored()
    rig.shell_effects.clear()
    rig.restart()
    rig.run()
    assert [(one.task, one.resource_id) for one in wanted(rig)] == [(1, "r1")]
    note(rig, [1])
    rig.wait(1.0)
    assert len(worker.started) == 2


def test_a_list_that_cannot_be_read_fails_the_map() -> None:
    rig, _ = stored()
    note(rig, failure=TaskFailure("E.STORE.UNAVAILABLE", "INFRASTRUCTURE", "away"))
    [failed] = [fact for fact in rig.facts() if isinstance(fact, TaskFailed)]
    assert (failed.task, failed.error.code) == (1, "E.STORE.UNAVAILABLE")
    assert isinstance(rig.facts()[-1], RunFinished)
    with pytest.raises(errors.NotFound):
        note(rig, [1])


def test_a_list_that_is_gone_fails_the_map_or_is_made_again() -> None:
    rig, _ = stored()
    note(rig, failure=LOST)
    [failed] = [fact for fact in rig.facts() if isinstance(fact, TaskFailed)]
    assert failed.error.code == "E.RESOURCE.LOST"

    rig, worker = stored(on_resource_lost="rebuild")
    rig.shell_effects.clear()
    rig.execute(CloseResource(**R1, by="ann"))
    note(rig, failure=LOST)
    assert worker.tasks()[-1] == ("run1.0", 2), "the node that made it runs again"
    note(rig, [1, 2])
    assert rig.counted("list of a map is not waited for") == 1, "this was the list that is gone"
    worker.finish(value=[7])
    assert wanted(rig) == [], "the new list came with its result"
    worker.finish()
    assert rig.active() == []


def test_a_reference_to_nothing_is_read_without_a_copy() -> None:
    rig = Rig(keeps_copies=True)
    worker = rig.worker("w1")
    rig.submit(reading())
    worker.finish(value=REF)
    assert wanted(rig) == [ReadList(TENANT, RunId("run1"), 1, "r1", None)]


# -- what maps collect ---------------------------------------------------------------------------


def collecting() -> Plan:
    """A map over two items; the next node reads what the map collected, and has it made again if it is lost."""
    given = msgspec.json.encode({"list": [1, 2]})
    nodes = {0: over_list("list", parameters=given), 1: over_list("v", on_resource_lost="rebuild")}
    plan = make_plan(2, [(0, 1)], nodes=nodes, reads=True)
    [edge] = plan.nodes[1].inputs
    whole = msgspec.structs.replace(edge, read=("items",), write=("v",))
    reader = msgspec.structs.replace(plan.nodes[1], inputs=(whole,))
    return msgspec.structs.replace(plan, nodes=(plan.nodes[0], reader))


def kept(rig: Rig) -> str:
    """Store what is to be stored, as the shell does. Returns: the id of the resource."""
    effect = next(one for one in reversed(rig.shell_effects) if isinstance(one, StoreValue))
    rig.execute(NoteValue(**WHERE, task=effect.task, size_bytes=len(effect.value), blob="blob"))
    decided = [fact for fact in rig.facts() if isinstance(fact, TaskDecided)]
    ref = msgspec.json.decode(decided[-1].result)["items"]["resourceRef"]
    assert (ref["workerId"], ref["sizeBytes"]) == (SCHEDULER_ID, len(effect.value))
    return str(ref["resourceId"])


def test_a_map_that_is_made_again_has_another_value(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scope_rules, "MAX_COLLECTED_BYTES", 20)
    rig = Rig(keeps_copies=True)
    worker = rig.worker("w1")
    rig.submit(collecting())
    worker.finish(0, value="first")
    worker.finish(1, value="first")
    first = kept(rig)
    assert [one.resource_id for one in wanted(rig)] == [first]
    note(rig, failure=LOST, of=first)
    assert len(worker.started) == 4, "both items run again"
    worker.finish(2, value="second")
    worker.finish(3, value="second")
    second = kept(rig)
    assert second != first
    assert [one.resource_id for one in wanted(rig)] == [first, second]
    opened = [fact.task for fact in rig.facts() if isinstance(fact, ScopeOpened)]
    assert opened == [0, 0]


def test_a_value_that_cannot_be_stored_fails_its_map(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scope_rules, "MAX_COLLECTED_BYTES", 20)
    rig = Rig(keeps_copies=True)
    worker = rig.worker("w1")
    rig.submit(collecting())
    worker.finish(0, value="first")
    worker.finish(1, value="first")
    rig.execute(NoteValue(**WHERE, task=0, size_bytes=9, blob=None, problem="the bucket is away"))
    [failed] = [fact for fact in rig.facts() if isinstance(fact, TaskFailed)]
    assert failed.error.code == "E.RESULT.NOT_STORED"
    assert "the bucket is away" in failed.error.message

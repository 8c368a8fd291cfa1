"""Requests for a part of a machine: what is counted, what is given back, and what is held for a large one."""

from __future__ import annotations

from typing import Any

from astraflow.core.engine.wait_reasons import Reason, Reasons
from astraflow.core.fleet.workers import WorkerEntry
from astraflow.core.protocol.wire import MachineAmounts
from astraflow.core.runs.facts import TaskWaiting, WaitReason
from astraflow.core.workflow.amounts import NOTHING, Amounts
from tests.unit.core.engine.rig import Rig
from tests.unit.plans import make_plan

HAS = MachineAmounts(4.0, 1_000, 1)


def asking(cpu: float = 0, memory: int = 0, gpu: int = 0) -> dict[str, Any]:
    return {"resources": Amounts.of(cpu, memory, gpu)}


def entry(rig: Rig, name: str = "w1") -> WorkerEntry:
    worker = rig.engine.view.workers.find("acme", name)
    assert worker is not None
    return worker


def test_only_as_much_is_given_as_the_machine_has(rig: Rig) -> None:
    worker = rig.worker(slots=8, has=HAS)
    rig.submit(make_plan(3, nodes=dict.fromkeys(range(3), asking(2, 100))))
    assert worker.tasks() == [("run1.0", 1), ("run1.1", 1)]
    assert entry(rig).reserved == Amounts(4_000, 200)
    assert Reasons(rig.engine.view).of(rig.run_of("run1"), 2) == Reason(
        "slot",
        "worker w1 has 0 cpu, 800 bytes of memory free of the 2 cpu, 100 bytes of memory asked for",
    )
    worker.finish(0)
    assert worker.tasks()[2:] == [("run1.2", 1)]
    worker.finish(1)
    worker.finish(2)
    assert entry(rig).reserved == NOTHING


def test_a_dispatch_says_what_was_asked_for(rig: Rig) -> None:
    worker = rig.worker(has=HAS)
    rig.submit(make_plan(2, nodes={0: asking(0.5, 10, 1)}))
    asked, plain = worker.started
    assert asked.constraints.resources == MachineAmounts(0.5, 10, 1)
    assert plain.constraints.resources is None


def test_nodes_that_ask_for_nothing_go_beside_it(rig: Rig) -> None:
    worker = rig.worker(slots=8, has=HAS)
    rig.submit(make_plan(4, nodes={0: asking(4)}))
    assert len(worker.tasks()) == 4


def test_what_a_lost_worker_had_is_free_again(rig: Rig) -> None:
    worker = rig.worker(has=HAS)
    rig.submit(make_plan(1, nodes={0: asking(4)}))
    worker.crash()
    rig.wait(120.0)
    assert entry(rig).reserved == NOTHING


def test_a_failed_attempt_gives_back_what_it_had(rig: Rig) -> None:
    worker = rig.worker(has=HAS)
    rig.submit(make_plan(1, nodes={0: asking(4)}))
    worker.fail()
    assert entry(rig).reserved == NOTHING


def test_a_restarted_scheduler_counts_what_runs() -> None:
    rig = Rig()
    worker = rig.worker(slots=8, has=HAS)
    rig.submit(make_plan(2, nodes=dict.fromkeys(range(2), asking(3))))
    rig.restart()
    assert entry(rig).reserved == Amounts(3_000)
    rig.wait(3.0)
    assert worker.tasks() == [("run1.0", 1)]
    worker.finish()
    assert worker.tasks()[1:] == [("run1.1", 1)]


def test_a_worker_that_comes_back_smaller_gets_nothing_until_it_has_room(rig: Rig) -> None:
    worker = rig.worker(slots=8, has=HAS)
    rig.submit(make_plan(2, nodes=dict.fromkeys(range(2), asking(3))))
    free = entry(rig)
    free.offer = free.offer.__class__(8, free.offer.packages, capacity=Amounts(3_000))
    assert free.free == Amounts(0)
    worker.finish()
    assert worker.tasks() == [("run1.0", 1), ("run1.1", 1)]


def test_what_no_worker_could_hold_is_said_as_a_fact(rig: Rig) -> None:
    rig.worker(has=HAS)
    rig.submit(make_plan(1, nodes={0: asking(64)}))
    rig.wait(1.1)
    said = [fact.waiting_for for fact in rig.new_facts() if isinstance(fact, TaskWaiting)]
    assert said == [WaitReason("capacity", "64 cpu asked for; worker w1 has 4 cpu")]
    rig.worker("w2", has=MachineAmounts(64.0))
    assert rig.workers["acme/w2"].tasks() == [("run1.0", 1)]


class TestHolding:
    def test_a_large_request_is_not_passed_over_for_ever(self) -> None:
        """Small ones end one by one and are followed by others: there is never room for the large one by itself."""
        rig = Rig(hold_after_s=5.0)
        worker = rig.worker(slots=8, has=HAS)
        rig.submit(make_plan(60, nodes=dict.fromkeys(range(60), asking(1))), "small")
        rig.submit(make_plan(1, nodes={0: asking(4)}), "large")
        ended = 0
        while ended < 30 and ("large.0", 1) not in worker.tasks():
            rig.wait(1.0)
            worker.finish(ended)
            ended += 1
        assert worker.tasks()[-1] == ("large.0", 1)
        assert ended > 5, "it has waited, and small ones went before it"
        assert entry(rig).held_for is None
        worker.finish()
        assert len(worker.tasks()) == ended + 5

    def test_the_worker_that_lacks_least_is_held(self) -> None:
        rig = Rig(hold_after_s=5.0)
        for name, cpu in (("w1", 3), ("w2", 2)):
            rig.worker(name, slots=8, has=HAS)
            rig.submit(make_plan(1, nodes={0: asking(cpu)}), f"on-{name}")
        rig.submit(make_plan(1, nodes={0: asking(4)}), "large")
        rig.wait(8.0)
        held = [name for name in ("w1", "w2") if entry(rig, name).held_for is not None]
        used = {name: entry(rig, name).reserved.milli_cpu for name in ("w1", "w2")}
        assert [used[name] for name in held] == [min(used.values())]

    def test_a_hold_ends_with_what_it_is_for(self) -> None:
        rig = Rig(hold_after_s=5.0)
        worker = rig.worker(slots=8, has=HAS)
        rig.submit(make_plan(1, nodes={0: asking(2)}), "first")
        rig.submit(make_plan(1, nodes={0: asking(4)}), "large")
        rig.wait(8.0)
        rig.submit(make_plan(1, nodes={0: asking(1)}), "small")
        assert worker.tasks() == [("first.0", 1)]
        rig.cancel("large")
        rig.wait(2.0)
        assert entry(rig).held_for is None
        assert worker.tasks()[1:] == [("small.0", 1)]

    def test_a_worker_that_is_gone_is_not_held(self) -> None:
        rig = Rig(hold_after_s=5.0)
        gone = rig.worker(slots=8, has=HAS)
        rig.submit(make_plan(1, nodes={0: asking(2)}), "first")
        rig.submit(make_plan(1, nodes={0: asking(4)}), "large")
        rig.wait(8.0)
        assert entry(rig).held_for is not None
        gone.crash()
        rig.wait(60.0)
        assert entry(rig).held_for is None

    def test_there_may_be_nobody_to_hold(self) -> None:
        rig = Rig(hold_after_s=5.0)
        rig.worker(slots=8, has=HAS)
        rig.submit(make_plan(1, nodes={0: asking(2)}), "first")
        rig.submit(make_plan(1, nodes={0: asking(4)}), "large")
        rig.submit(make_plan(1, nodes={0: asking(3)}), "other")
        rig.wait(9.0)
        assert entry(rig).held_for is not None
        assert len(rig.engine.view.placing.holds()) == 1

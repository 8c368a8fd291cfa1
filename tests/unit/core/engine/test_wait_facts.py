"""What waiting tasks say for good, and what they do not."""

from __future__ import annotations

from typing import Any

import pytest

from astraflow.core.engine import wait_facts
from astraflow.core.protocol import business
from astraflow.core.runs.facts import WaitReason
from tests.unit.core.engine.rig import RawWorker, Rig
from tests.unit.core.engine.test_placing import _waiting_for, waits
from tests.unit.plans import make_plan

BUSY = WaitReason("slot", "worker w1 is busy")
KEYED = {"concurrency_key": "printer"}


class TestWaiting:
    @pytest.mark.parametrize(
        ("node", "reason"),
        [
            ({"package_name": "x"}, WaitReason("package", "no worker online offers x 1.0")),
            (
                {"runtime": "node"},
                WaitReason("worker", "no worker with pkg 1.0 has the runtime node"),
            ),
        ],
        ids=["package", "runtime"],
    )
    def test_a_task_without_a_place_says_why_and_says_it_once(
        self, node: dict[str, Any], reason: WaitReason, rig: Rig
    ) -> None:
        rig.worker()
        rig.submit(make_plan(1, nodes={0: node}))
        rig.wait(1.1)
        assert waits(rig) == [reason]
        rig.wait(10.0)
        assert waits(rig) == []
        assert rig.task().waiting_for == reason

    def test_a_task_that_needs_what_a_lost_worker_holds_says_so(self) -> None:
        rig = _waiting_for("gone")
        rig.wait(1.1)
        assert waits(rig) == [WaitReason("resource", "worker gone is away")]

    def test_a_new_reason_is_said(self, rig: Rig) -> None:
        rig.submit(make_plan(1))
        rig.wait(1.1)
        assert waits(rig) == [WaitReason("worker", "no worker is online")]
        rig.worker(packages={"other": "1.0"})
        rig.wait(1.1)
        assert waits(rig) == [WaitReason("package", "no worker online offers pkg 1.0")]

    def test_a_short_wait_for_a_slot_or_a_key_is_normal_and_is_not_said(self, rig: Rig) -> None:
        rig.worker(slots=1)
        rig.submit(make_plan(2), "run1")
        rig.submit(make_plan(2, nodes={0: KEYED, 1: KEYED}), "run2")
        rig.wait(4.0)
        assert waits(rig) == []

    def test_only_so_many_say_it_in_one_round(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(wait_facts, "SAID_AT_ONCE", 2)
        rig = Rig()
        for number in range(4):
            rig.submit(make_plan(1), f"run{number}")
        rig.wait(0.5)
        said = [len(waits(rig))]
        for _ in range(2):
            rig.wait(1.0)
            said.append(len(waits(rig)))
        assert said == [1, 2, 1]

    def test_a_task_that_could_be_placed_in_the_meantime_says_nothing(self, rig: Rig) -> None:
        """Its class sleeps until somebody wakes it; asked why, it finds a place and waits for a slot."""
        raw = RawWorker(rig, slots=1)
        rig.submit(make_plan(2))
        entry = rig.engine.view.workers.find("acme", "w1")
        assert entry is not None
        rig.engine.view.workers.free_slot(entry, "t.node")
        rig.turn(1.5)
        wait_facts.record_wait_reasons(rig.engine.view)
        rig.engine.view.workers.take_slot(entry, "t.node")
        assert waits(rig) == []
        assert len(raw.of(business.Dispatch)) == 1


class TestLasting:
    def test_a_wait_for_a_slot_that_lasts_is_said_once_by_one_task_of_the_run(self) -> None:
        rig = Rig()
        rig.worker(slots=1)
        rig.submit(make_plan(50))
        rig.wait(8.0)
        assert waits(rig) == [BUSY]
        rig.wait(30.0)
        assert waits(rig) == []
        assert rig.task(1).waiting_for == BUSY
        assert rig.task(2).waiting_for is None

    def test_a_fan_out_that_moves_says_nothing(self) -> None:
        rig = Rig()
        worker = rig.worker(slots=1)
        rig.submit(make_plan(12))
        for _ in range(11):
            rig.wait(2.0)
            worker.finish()
        assert waits(rig) == []

    def test_a_wait_for_a_key_that_lasts_names_the_holder(self) -> None:
        rig = Rig()
        rig.worker(slots=4)
        rig.submit(make_plan(3, nodes=dict.fromkeys(range(3), KEYED)))
        rig.wait(8.0)
        said = WaitReason(
            "key", "node n0 of this run has the concurrency key printer", held_by=("run1", "n0")
        )
        assert waits(rig) == [said]

    def test_another_kind_of_wait_is_said_when_it_lasts(self) -> None:
        rig = Rig()
        rig.submit(make_plan(2))
        rig.wait(1.5)
        assert [one.kind for one in waits(rig)] == ["worker"]
        rig.worker(slots=1)
        rig.wait(8.0)
        assert [one.kind for one in waits(rig)] == ["slot"]

    def test_only_so_many_are_said_in_one_round(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(wait_facts, "SAID_AT_ONCE", 2)
        rig = Rig()
        rig.worker(slots=1)
        for number in range(6):
            rig.submit(make_plan(1), f"run{number}")
        said = []
        for _ in range(9):
            rig.wait(1.0)
            said.append(len(waits(rig)))
        assert sum(said) == 5
        assert max(said) == 2

    def test_only_so_many_are_watched(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(wait_facts, "WATCHED", 3)
        rig = Rig()
        rig.worker(slots=1)
        rig.submit(make_plan(1), "first")
        for number in range(4):
            rig.submit(make_plan(1, nodes={0: KEYED}), f"key{number}")
            rig.submit(make_plan(1), f"run{number}")
        rig.wait(10.0)
        assert len(waits(rig)) == 3

    def test_a_run_that_is_cancelled_says_nothing(self) -> None:
        rig = Rig()
        rig.worker(slots=1)
        rig.submit(make_plan(3))
        rig.wait(2.0)
        rig.cancel()
        rig.wait(10.0)
        assert waits(rig) == []

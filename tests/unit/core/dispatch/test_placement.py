"""Where a task goes, in order of preference, and what it says when it goes nowhere."""

from __future__ import annotations

from typing import Any

import pytest

from astraflow.core.dispatch import placement
from astraflow.core.dispatch.demand import Demand
from astraflow.core.dispatch.placement import (
    LOOKED_AT,
    NoPlace,
    choose,
    find_place,
    is_offered,
    offers,
)
from astraflow.core.fleet.pools import PoolPackage, PoolRecord
from astraflow.core.fleet.workers import (
    Offer,
    PoolConfigured,
    WorkerDegraded,
    WorkerDrainChanged,
    WorkerEntry,
    WorkerLeft,
    WorkerLost,
    WorkerPressureChanged,
    WorkerRegistered,
    WorkerTable,
)
from astraflow.core.ids import SessionId
from astraflow.core.runs.facts import WaitReason
from astraflow.core.workflow.amounts import Amounts
from tests.tables import each_row

PKG = {"pkg": frozenset({"1.0"})}


def demand(**fields: Any) -> Demand:
    return Demand("acme", "pkg", "1.0", "t.node", **fields)


class Pool:
    """Some workers."""

    def __init__(self, *names: str, slots: int = 4, **fields: Any) -> None:
        self.table = WorkerTable()
        for name in names:
            self.add(name, slots, **fields)

    def add(self, name: str, slots: int = 4, **fields: Any) -> WorkerEntry:
        packages = fields.pop("packages", PKG)
        tenant = fields.pop("tenant", "acme")
        return self.table.apply(
            WorkerRegistered(
                tenant, 0, name, SessionId(f"s-{name}"), 1, True, Offer(slots, packages, **fields)
            )
        )

    def fill(self, name: str, count: int = 1) -> None:
        worker = self.table.find("acme", name)
        assert worker is not None
        for _ in range(count):
            self.table.take_slot(worker, "t.node")

    def chosen(self, wanted: Demand, bound_to: str | None = None) -> str | WaitReason:
        place = find_place(wanted, self.table, [] if bound_to is None else [bound_to])
        self.table.check()
        if place is not None:
            return place.worker_id
        nowhere = choose(wanted, self.table)
        assert isinstance(nowhere, NoPlace)
        return nowhere.waiting_for


class TestOffers:
    @each_row(
        ("wanted", "fits"),
        [
            (demand(), True),
            (demand(runtime="python"), True),
            (demand(runtime="node"), False),
            (demand(labels=(("zone", "eu"),)), True),
            (demand(labels=(("zone", "us"),)), False),
            (demand(labels=(("zone", "eu"), ("gpu", "yes"))), False),
            (Demand("acme", "pkg", "2.0", "t.node"), False),
            (Demand("acme", "other", "1.0", "t.node"), False),
        ],
    )
    def test_package_version_runtime_and_labels_must_all_fit(
        self, wanted: Demand, fits: bool
    ) -> None:
        worker = Pool().add("w1", runtimes=frozenset({"python"}), labels={"zone": "eu"})
        assert offers(worker, wanted) == fits


class TestFreeChoice:
    def test_the_least_loaded_worker_is_chosen(self) -> None:
        pool = Pool("w1", "w2", "w3")
        pool.fill("w1", 2)
        pool.fill("w3", 1)
        assert pool.chosen(demand()) == "w2"

    def test_load_is_the_share_of_slots_in_use(self) -> None:
        pool = Pool()
        pool.add("small", 2)
        pool.add("large", 10)
        pool.fill("small", 1)
        pool.fill("large", 2)
        assert pool.chosen(demand()) == "large"

    def test_equally_loaded_workers_take_turns(self) -> None:
        pool = Pool("w1", "w2", "w3")
        order = []
        for _ in range(6):
            name = pool.chosen(demand())
            assert isinstance(name, str)
            order.append(name)
            pool.fill(name)
        assert order == ["w1", "w2", "w3", "w1", "w2", "w3"]

    def test_only_the_next_few_are_compared(self) -> None:
        pool = Pool(*(f"w{number}" for number in range(LOOKED_AT)))
        for number in range(LOOKED_AT):
            pool.fill(f"w{number}")
        pool.add("idle")
        # The idle one is the ninth in line: it is not looked at for this task, but is for the next.
        assert pool.chosen(demand()) == "w0"
        pool.fill("w0")
        assert pool.chosen(demand()) == "idle"

    def test_a_rare_label_is_not_looked_for_among_all(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        looks: list[str] = []
        offers = placement.offers

        def counted(worker: WorkerEntry, wanted: Demand) -> bool:
            looks.append(worker.worker_id)
            return offers(worker, wanted)

        monkeypatch.setattr(placement, "offers", counted)
        pool = Pool()
        for number in range(1_000):
            pool.add(f"w{number}", labels={"pool": f"p{number}", "zone": "eu"})
        for labels in ((("pool", "p990"),), (("zone", "eu"), ("pool", "p990"))):
            looks.clear()
            assert pool.chosen(demand(labels=labels)) == "w990"
            assert looks == ["w990"]
        pool.fill("w990", 4)
        looks.clear()
        assert find_place(demand(labels=(("pool", "p990"),)), pool.table) is None
        assert is_offered(demand(labels=(("pool", "p990"),)), pool.table)
        assert looks == ["w990"]
        looks.clear()
        assert find_place(demand(labels=(("zone", "eu"),)), pool.table) is not None
        assert len(looks) == LOOKED_AT

    def test_workers_with_a_rare_label_take_turns(self) -> None:
        pool = Pool("w1", "w2", labels={"gpu": "yes"})
        pool.add("plain")
        order = []
        for _ in range(4):
            name = pool.chosen(demand(labels=(("gpu", "yes"),)))
            assert isinstance(name, str)
            order.append(name)
            pool.fill(name)
            worker = pool.table.find("acme", name)
            assert worker is not None
            pool.table.free_slot(worker, "t.node")
        assert order == ["w1", "w2", "w1", "w2"]

    def test_a_label_that_a_worker_no_longer_has_does_not_find_it(self) -> None:
        pool = Pool("w1", labels={"gpu": "yes"})
        pool.add("w1", labels={"gpu": "no"})
        assert not pool.table.labelled("acme", "gpu", "yes")
        assert list(pool.table.labelled("acme", "gpu", "no")) == ["w1"]
        assert isinstance(pool.chosen(demand(labels=(("gpu", "yes"),))), WaitReason)

    def test_a_worker_without_room_for_the_node_type_is_passed_over(self) -> None:
        pool = Pool()
        pool.add("w1", per_node_limits={"t.node": 1})
        pool.add("w2")
        pool.fill("w1", 1)
        pool.fill("w2", 2)
        assert pool.chosen(demand()) == "w2"

    def test_the_worker_that_the_run_used_for_the_package_comes_before_a_less_loaded_one(
        self,
    ) -> None:
        pool = Pool("w1", "w2")
        pool.fill("w1", 3)
        assert pool.chosen(demand(), bound_to="w1") == "w1"

    def test_a_binding_to_a_busy_or_unknown_worker_does_not_hold_a_task_up(self) -> None:
        pool = Pool("w1", "w2", slots=1)
        pool.fill("w1")
        assert pool.chosen(demand(), bound_to="w1") == "w2"
        assert pool.chosen(demand(), bound_to="w9") == "w2"

    def test_a_binding_to_a_worker_that_does_not_fit_is_ignored(self) -> None:
        pool = Pool()
        pool.add("w1")
        pool.add("w2", labels={"zone": "eu"})
        assert pool.chosen(demand(labels=(("zone", "eu"),)), bound_to="w1") == "w2"


class TestAffinity:
    def test_the_preferred_are_tried_in_their_order(self) -> None:
        pool = Pool("w1", "w2", "w3", slots=1)
        assert find_place(demand(), pool.table, ["w2", "w1"]) is pool.table.find("acme", "w2")
        pool.fill("w2")
        assert find_place(demand(), pool.table, ["w2", "w1"]) is pool.table.find("acme", "w1")
        assert find_place(demand(), pool.table, ["w3"]) is pool.table.find("acme", "w3")

    def test_a_sticky_affinity_waits_for_its_busy_worker(self) -> None:
        pool = Pool("w1", "w2", slots=1)
        wanted = demand(sticky="w2")
        assert pool.chosen(wanted) == "w2"
        pool.fill("w2")
        assert pool.chosen(wanted) == WaitReason("slot", "worker w2 is busy")

    def test_a_sticky_affinity_waits_for_its_lost_worker(self) -> None:
        pool = Pool("w1", "w2")
        worker = pool.table.find("acme", "w2")
        assert worker is not None
        pool.table.apply(WorkerLost("acme", 0, worker.worker_id))
        assert pool.chosen(demand(sticky="w2")) == WaitReason("affinity", "worker w2 is away")


class TestPins:
    def test_a_pinned_task_goes_to_the_holder_whatever_its_load(self) -> None:
        pool = Pool("w1", "w2")
        pool.fill("w2", 3)
        assert pool.chosen(demand(pin="w2"), bound_to="w1") == "w2"

    def test_a_pin_comes_before_a_sticky_affinity(self) -> None:
        assert Pool("w1", "w2").chosen(demand(pin="w2", sticky="w1")) == "w2"

    def test_a_pin_to_a_worker_that_is_gone_waits_for_the_resource(self) -> None:
        assert Pool("w1").chosen(demand(pin="w9")) == WaitReason("resource", "worker w9 is away")

    def test_a_pin_to_a_worker_without_the_package_waits_for_the_package(self) -> None:
        pool = Pool("w1", packages={"other": frozenset({"1.0"})})
        waiting = WaitReason("package", "pkg 1.0 on worker w1")
        assert pool.chosen(demand(pin="w1")) == waiting

    def test_a_pin_to_a_worker_full_of_that_type_waits_for_a_slot(self) -> None:
        pool = Pool("w1", per_node_limits={"t.node": 1})
        pool.fill("w1")
        waiting = WaitReason("slot", "worker w1 runs as many t.node as it may")
        assert pool.chosen(demand(pin="w1")) == waiting

    def test_the_worker_of_another_tenant_is_no_place(self) -> None:
        pool = Pool()
        pool.add("w1", tenant="other")
        assert pool.chosen(demand(pin="w1")) == WaitReason("resource", "worker w1 is away")


class TestNoPlace:
    def test_no_worker_is_online(self) -> None:
        pool = Pool("w1")
        worker = pool.table.find("acme", "w1")
        assert worker is not None
        pool.table.apply(WorkerLeft("acme", 0, worker.worker_id))
        assert pool.chosen(demand()) == WaitReason("worker", "no worker is online")
        assert Pool().chosen(demand()) == WaitReason("worker", "no worker is online")

    def test_no_worker_offers_the_version(self) -> None:
        pool = Pool("w1", packages={"pkg": frozenset({"2.0"})})
        waiting = WaitReason("package", "no worker online offers pkg 1.0")
        assert pool.chosen(demand()) == waiting

    def test_no_worker_with_the_package_has_runtime_and_labels(self) -> None:
        waiting = WaitReason(
            "worker", "no worker with pkg 1.0 has the runtime node and the label zone=eu"
        )
        wanted = demand(runtime="node", labels=(("zone", "eu"),))
        assert Pool("w1").chosen(wanted) == waiting

    def test_all_workers_are_busy(self) -> None:
        pool = Pool("w1", "w2", "w3", slots=1)
        for name in ("w1", "w2", "w3"):
            pool.fill(name)
        named = "worker w1 is busy; worker w2 is busy; worker w3 is busy"
        assert pool.chosen(demand()) == WaitReason("slot", named)
        pool.add("w4", slots=1)
        pool.fill("w4")
        assert pool.chosen(demand()) == WaitReason("slot", "all 4 workers with pkg 1.0 are busy")

    def test_workers_that_are_there_and_take_nothing_are_named(self) -> None:
        pool = Pool("w1", "w2", "w3")
        one, two, three = (pool.table.find("acme", name) for name in ("w1", "w2", "w3"))
        assert one is not None
        assert two is not None
        assert three is not None
        pool.table.apply(WorkerPressureChanged("acme", 0, one.worker_id, is_pressed=True))
        pool.table.apply(WorkerDrainChanged("acme", 0, two.worker_id, is_draining=True))
        pool.table.apply(WorkerDegraded("acme", 0, three.worker_id))
        short = WaitReason("slot", "worker w1 is short of memory or disk")
        assert pool.chosen(demand()) == short
        pool.table.apply(WorkerLost("acme", 0, one.worker_id))
        named = "worker w2 is draining; worker w3 is degraded"
        assert pool.chosen(demand()) == WaitReason("worker", named)
        assert pool.chosen(demand(pin="w2")) == WaitReason("resource", "worker w2 is draining")


class TestIsOffered:
    def test_a_busy_worker_offers_what_it_has_no_room_for(self) -> None:
        pool = Pool("w1", slots=1)
        pool.fill("w1")
        assert is_offered(demand(), pool.table)

    def test_a_worker_without_the_labels_does_not(self) -> None:
        assert not is_offered(demand(labels=(("zone", "eu"),)), Pool("w1").table)

    def test_a_worker_that_is_away_does_not(self) -> None:
        pool = Pool("w1")
        worker = pool.table.find("acme", "w1")
        assert worker is not None
        pool.table.apply(WorkerLost("acme", 0, worker.worker_id))
        assert not is_offered(demand(), pool.table)

    def test_a_worker_that_no_longer_has_the_package_does_not(self) -> None:
        pool = Pool("w1")
        pool.add("w1", packages={"other": frozenset({"1.0"})})
        assert not is_offered(demand(), pool.table)
        pool.table.check()


def _has(cpu: float = 0, memory: int = 0, gpu: int = 0) -> Amounts:
    return Amounts.of(cpu, memory, gpu)


class TestRequests:
    def test_a_request_goes_where_so_much_is_free(self) -> None:
        pool = Pool()
        pool.add("small", capacity=_has(2, 8))
        pool.add("large", capacity=_has(8, 64))
        assert pool.chosen(demand(request=_has(4))) == "large"
        assert pool.chosen(demand(request=_has(1, 16))) == "large"

    def test_the_tightest_fit_is_chosen_so_that_large_ones_keep_their_place(self) -> None:
        pool = Pool()
        pool.add("large", capacity=_has(8, 64))
        pool.add("small", capacity=_has(2, 16))
        assert pool.chosen(demand(request=_has(1, 4))) == "small"

    def test_graphics_cards_are_left_for_those_that_ask_for_one(self) -> None:
        pool = Pool()
        pool.add("cards", capacity=_has(2, 16, 1))
        pool.add("plain", capacity=_has(64, 512))
        assert pool.chosen(demand(request=_has(1))) == "plain"
        assert pool.chosen(demand(request=_has(1, 0, 1))) == "cards"

    def test_what_runs_counts_until_it_has_ended(self) -> None:
        pool = Pool()
        worker = pool.add("w1", capacity=_has(2, 16))
        pool.table.take_slot(worker, "t.node", _has(1.5, 4))
        wanted = demand(request=_has(1))
        assert pool.chosen(wanted) == WaitReason(
            "slot", "worker w1 has 0.5 cpu free of the 1 cpu asked for"
        )
        assert pool.chosen(demand()) == "w1"
        pool.table.free_slot(worker, "t.node", _has(1.5, 4))
        assert pool.chosen(wanted) == "w1"

    def test_a_request_that_no_machine_could_hold_says_so_with_the_numbers(self) -> None:
        pool = Pool()
        pool.add("w1", capacity=_has(2, 16))
        pool.add("w2")
        assert pool.chosen(demand(request=_has(4, 8))) == WaitReason(
            "capacity",
            "4 cpu, 8 bytes of memory asked for; worker w1 has 2 cpu, 16 bytes of memory; "
            "worker w2 does not say what it has",
        )
        for name in ("w3", "w4"):
            pool.add(name, capacity=_has(1))
        assert pool.chosen(demand(request=_has(4))) == WaitReason(
            "capacity", "4 cpu asked for; none of 4 workers with pkg has so much"
        )

    def test_a_label_that_nobody_has_is_told_before_the_size(self) -> None:
        pool = Pool()
        pool.add("w1", capacity=_has(2))
        wanted = demand(request=_has(4), labels=(("zone", "eu"),))
        assert pool.chosen(wanted) == WaitReason(
            "worker", "no worker with pkg 1.0 has the label zone=eu"
        )

    def test_the_one_worker_that_will_do_must_be_large_enough(self) -> None:
        pool = Pool()
        pool.add("w1", capacity=_has(2))
        assert pool.chosen(demand(pin="w1", request=_has(2))) == "w1"
        assert pool.chosen(demand(pin="w1", request=_has(4))) == WaitReason(
            "capacity", "4 cpu asked for; worker w1 has 2 cpu"
        )

    def test_a_worker_that_is_held_takes_no_other_request(self) -> None:
        pool = Pool()
        worker = pool.add("w1", capacity=_has(4))
        large, small = demand(request=_has(4)), demand(request=_has(1))
        worker.held_for = large
        assert pool.chosen(small) == WaitReason("slot", "worker w1 is held for a larger request")
        assert pool.chosen(large) == "w1"
        assert pool.chosen(demand()) == "w1"

    def test_a_full_worker_is_busy_whatever_is_asked_for(self) -> None:
        pool = Pool()
        pool.add("w1", 1, capacity=_has(4))
        pool.fill("w1")
        assert pool.chosen(demand(request=_has(1))) == WaitReason("slot", "worker w1 is busy")

    def test_an_http_pool_takes_any_request_after_the_workers(self) -> None:
        pool = Pool()
        record = PoolRecord(
            tenant="acme",
            name="cloud",
            url="http://127.0.0.1:1",
            packages=(PoolPackage("pkg", "1.0"),),
        )
        pool.table.apply(PoolConfigured("acme", 0, record.worker_id, record))
        wanted = demand(request=_has(64))
        assert pool.chosen(wanted) == record.worker_id
        pool.add("w1", capacity=_has(64))
        assert pool.chosen(wanted) == "w1"


@each_row(
    ("labels", "said"),
    [
        ((("zone", "eu"), ("disk", "ssd")), "the label disk=ssd"),
        ((("zone", "eu"), ("size", "large")), "the label zone=eu and the label size=large"),
        ((("disk", "ssd"), ("cpu", "arm")), "the label disk=ssd and the label cpu=arm"),
    ],
)
def test_a_task_says_what_nobody_has_and_not_what_somebody_has(
    labels: tuple[tuple[str, str], ...], said: str
) -> None:
    pool = Pool()
    pool.add("w1", labels={"zone": "eu"})
    pool.add("w2", labels={"size": "large"})
    assert pool.chosen(demand(labels=labels)) == WaitReason(
        "worker", f"no worker with pkg 1.0 has {said}"
    )

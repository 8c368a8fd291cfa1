"""Which lane a request goes to."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from astraflow.core.cluster.lanes import (
    LaneSeen,
    lane_name,
    lane_of_key,
    lighter_lane,
    needs_home,
    open_lanes,
    packages_of,
    tenant_of_lane,
)
from astraflow.core.workflow.amounts import Amounts
from astraflow.core.workflow.definition import Signal
from astraflow.core.workflow.plan import AffinityHint, BodyStep, ControlStep, Feature
from tests.unit.plans import make_plan


def test_the_name_of_a_lane_says_its_tenant() -> None:
    assert lane_name("acme", 0) == "acme"
    assert lane_name("acme", 12) == "acme/12"
    for lane in (0, 1, 63):
        assert tenant_of_lane(lane_name("acme", lane)) == "acme"


def test_only_open_lanes_take_runs_and_the_home_always_does() -> None:
    lanes = [
        LaneSeen(0, 4, "closing"),
        LaneSeen(3, 1),
        LaneSeen(2, 5, "closing"),
        LaneSeen(1, 2, "opening"),
        LaneSeen(4, 3),
    ]
    assert open_lanes(lanes) == [0, 3, 4]


def test_a_key_always_goes_to_the_same_lane_and_keys_go_to_all() -> None:
    lanes = [0, 1, 2, 5]
    for key in ("a", "\ud800", "ä" * 500):
        assert lane_of_key(key, lanes) == lane_of_key(key, lanes)
    assert {lane_of_key(f"key {number}", lanes) for number in range(100)} == set(lanes)


def test_of_two_lanes_the_one_where_less_waits_is_taken() -> None:
    rng = Random(1)
    assert lighter_lane([0], {0: 10**6}, rng) == 0
    taken = [lighter_lane([0, 1, 2], {0: 50, 1: 7}, rng) for _ in range(300)]
    assert taken.count(0) == 0, "one of any two has less"
    assert set(taken) == {1, 2}, "of a lane that nobody tells of nothing waits"


@pytest.mark.parametrize(
    "fields",
    [
        {"concurrency_key": "k"},
        {"affinity": AffinityHint("k", "sticky")},
        {"secrets": ("token",)},
        {"resources": Amounts(milli_cpu=1000)},
        {"control": ControlStep(signal=Signal("done", secret_ref="of-sender"))},
    ],
)
def test_what_one_engine_must_know_goes_home(fields: dict[str, Any]) -> None:
    assert not needs_home(make_plan(2))
    assert not needs_home(make_plan(1, nodes={0: {"control": ControlStep(signal=Signal("done"))}}))
    assert needs_home(make_plan(2, nodes={1: fields}))
    inside = BodyStep(plan=make_plan(1, nodes={0: fields}))
    assert needs_home(make_plan(2, nodes={0: {"control": ControlStep(body=inside)}}))


@pytest.mark.parametrize("feature", [Feature.APPROVAL, Feature.KEY_EXPRESSION])
def test_approvals_and_keys_that_are_computed_go_home(feature: Feature) -> None:
    assert needs_home(make_plan(1, features=frozenset({feature})))


def test_the_packages_of_a_plan_are_those_that_workers_need() -> None:
    inside = BodyStep(plan=make_plan(1, nodes={0: {"package_name": "inner"}}))
    nodes: dict[int, dict[str, Any]] = {
        0: {"control": ControlStep(body=inside), "package_name": "core"},
        1: {"package_version": "2.0"},
        2: {"package_name": "off", "disabled": True},
    }
    assert packages_of(make_plan(4, nodes=nodes)) == {
        ("inner", "1.0"),
        ("pkg", "2.0"),
        ("pkg", "1.0"),
    }

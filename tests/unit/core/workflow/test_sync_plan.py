from __future__ import annotations

from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from astraflow.core.workflow.sync_plan import plan_sync
from tests.tables import each_row

STATES = st.dictionaries(st.sampled_from("abcd"), st.sampled_from(["1", "2", "3"]))


def one(state: str | None) -> dict[str, str]:
    return {} if state is None else {"w": state}


@each_row(
    "here, there, agreed, action, reason",
    [
        ("1", None, None, "push", "new here"),
        (None, "1", None, "pull", "new on the server"),
        ("1", "2", None, "conflict", "in both, never synchronized, and different"),
        ("2", "1", "1", "push", "changed here"),
        ("1", "2", "1", "pull", "changed on the server"),
        ("2", "3", "1", "conflict", "changed here and changed on the server"),
        (None, "1", "1", "leave", "deleted here"),
        ("1", None, "1", "leave", "deleted on the server"),
        (None, "2", "1", "conflict", "deleted here and changed on the server"),
        ("2", None, "1", "conflict", "changed here and deleted on the server"),
    ],
)
def test_each_state_has_its_step(
    here: str | None, there: str | None, agreed: str | None, action: str, reason: str
) -> None:
    (step,) = plan_sync(one(here), one(there), one(agreed))
    assert (step.action, step.reason) == (action, reason)


def test_what_is_equal_needs_no_step() -> None:
    for agreed in (None, "1", "2"):
        assert plan_sync(one("1"), one("1"), one(agreed)) == []
        assert plan_sync({}, {}, one(agreed)) == []


def test_a_deletion_is_followed_only_if_asked_for() -> None:
    (there,) = plan_sync({}, one("1"), one("1"), is_deleting=True)
    (here,) = plan_sync(one("1"), {}, one("1"), is_deleting=True)
    assert (there.action, here.action) == ("delete_remote", "delete_local")


def test_a_conflict_is_decided_for_a_side() -> None:
    both = (one("2"), one("3"), one("1"))
    assert plan_sync(*both, prefer="local")[0].action == "push"
    assert plan_sync(*both, prefer="remote")[0].action == "pull"
    gone: tuple[dict[str, str], ...] = ({}, one("2"), one("1"))
    assert plan_sync(*gone, prefer="local")[0].action == "leave"
    assert plan_sync(*gone, prefer="local", is_deleting=True)[0].action == "delete_remote"
    assert plan_sync(*gone, prefer="remote")[0].action == "pull"


@given(STATES, STATES, STATES)
def test_after_the_plan_is_carried_out_there_is_nothing_to_do(
    here: dict[str, str], there: dict[str, str], base: dict[str, str]
) -> None:
    for prefer in ("local", "remote"):
        local, remote, agreed = dict(here), dict(there), dict(base)
        steps = plan_sync(local, remote, agreed, is_deleting=True, prefer=prefer)
        for step in steps:
            known = step.workflow_id
            source, target = (
                (local, remote) if step.action in ("push", "delete_remote") else (remote, local)
            )
            if step.action.startswith("delete"):
                del target[known]
                agreed.pop(known, None)
            else:
                target[known] = agreed[known] = source[known]
        assert plan_sync(local, remote, agreed, is_deleting=True) == []


@given(STATES, STATES, STATES)
def test_without_being_asked_nothing_that_only_one_side_has_is_lost(
    here: dict[str, str], there: dict[str, str], base: dict[str, str]
) -> None:
    for step in plan_sync(here, there, base):
        known = step.workflow_id
        if step.action == "push":
            assert there.get(known) == base.get(known)
        if step.action == "pull":
            assert here.get(known) == base.get(known)
        assert not step.action.startswith("delete")


def test_every_combination_has_a_step_or_is_equal() -> None:
    for here, there, agreed in product((None, "1", "2", "3"), repeat=3):
        steps = plan_sync(one(here), one(there), one(agreed))
        assert bool(steps) == (here != there)

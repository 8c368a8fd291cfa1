"""Secrets on their way to an attempt, and what a worker holds."""

from __future__ import annotations

import msgspec

from astraflow.core.ids import RunId, TaskId
from astraflow.core.protocol.v1.frames import LeasedAttempt
from astraflow.core.runs.facts import TaskFailed
from tests.unit.core.engine.rig import TENANT, Rig, Worker
from tests.unit.plans import make_plan


def test_a_dispatch_names_its_secrets_and_the_shell_adds_the_values(
    rig: Rig, worker: Worker
) -> None:
    rig.submit(make_plan(2, nodes={0: {"secrets": ("one", "two")}}))
    given = {dispatch.node_id: dispatch.secrets for dispatch in worker.started}
    assert given == {"n0": {"one": f"one of {TENANT}", "two": f"two of {TENANT}"}, "n1": None}


def test_no_value_is_in_what_is_committed(rig: Rig, worker: Worker) -> None:
    rig.submit(make_plan(1, nodes={0: {"secrets": ("one",)}}))
    assert worker.started
    kept = b"".join(msgspec.json.encode(fact) for fact in rig.facts())
    assert f"one of {TENANT}".encode() not in kept


def test_an_attempt_whose_secret_is_gone_fails_and_is_not_sent(rig: Rig, worker: Worker) -> None:
    rig.submit(make_plan(1, nodes={0: {"secrets": ("gone",)}}))
    assert worker.started == []
    failed = [fact for fact in rig.facts() if isinstance(fact, TaskFailed)]
    assert [fact.error.code for fact in failed] == ["E.SECRET.NOT_FOUND"]


def test_what_a_worker_holds_is_what_it_has_acknowledged(rig: Rig, worker: Worker) -> None:
    rig.submit(make_plan(2, nodes={0: {"timeout_s": 5.0}}))
    assert rig.engine.ask.held_by(TENANT, worker.worker_id) == [], "not acknowledged yet"
    rig.wait(0.1)
    held = rig.engine.ask.held_by(TENANT, worker.worker_id)
    assert sorted(held) == [
        LeasedAttempt(RunId("run1"), TaskId("run1.0"), 1, has_timeout=True),
        LeasedAttempt(RunId("run1"), TaskId("run1.1"), 1, has_timeout=False),
    ]
    assert rig.engine.ask.held_by(TENANT, "another") == []

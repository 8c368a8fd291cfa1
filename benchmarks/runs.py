"""A run: deciding and folding the whole life of a task, within a fan-out of 5,000 nodes."""

from __future__ import annotations

import gc
from random import Random

import msgspec

from astraflow.core.ids import RunId
from astraflow.core.runs import RunRecord, accept, decide
from astraflow.core.runs.commands import LeaseTask, OutcomeStatus, Report, Start
from astraflow.core.runs.facts import RunAccepted, TaskFailure, encode_fact
from astraflow.core.workflow import StaticCatalog, core_manifest, decode_definition, plan_workflow
from astraflow.core.workflow.plan import Plan
from benchmarks.figures import Figure, cpu_seconds
from benchmarks.plan_scaling import document

NODES = 5_000
ROUNDS = 5
AT = 1_800_000_000_000
RESULT = msgspec.Raw(b'{"n":1}')
ERROR = TaskFailure("E.RUNNER.FAILURE", "USER_CODE", "boom")

BUDGET_US = 40.0
RETRY_BUDGET_US = 80.0
"""Two attempts instead of one."""


def planned(**fields: object) -> Plan:
    definition = decode_definition(document("fan-out", NODES, **fields))
    return plan_workflow(definition, StaticCatalog([core_manifest()]))


def live(plan: Plan, failures: int, stored: list[bytes] | None = None) -> RunRecord:
    """A run from its acceptance to its end; each task fails so many times before it succeeds."""
    rng = Random(1)
    decision = accept(plan, RunAccepted(AT, RunId("01J8ZQ5T9GQ4X7V2N3M1K0HABC"), "acme", "wf"), rng)
    run = decision.run
    for task in range(len(plan.nodes)):
        for attempt in range(1, failures + 2):
            is_last = attempt == failures + 1
            status: OutcomeStatus = "SUCCEEDED" if is_last else "FAILED"
            error = None if is_last else ERROR
            for command in (
                LeaseTask(task, "w1", 1, 30_000),
                Start(task, attempt, "w1"),
                Report(task, attempt, "w1", status, RESULT, (), 1, error),
            ):
                facts = decide(run, command, AT, rng).facts
                if stored is not None:
                    stored.extend(map(encode_fact, facts))
    assert run.status == "succeeded"
    return run


def best(plan: Plan, failures: int, is_stored: bool = False) -> float:
    """Microseconds a task."""
    times = []
    for _ in range(ROUNDS):
        gc.collect()
        times.append(cpu_seconds(lambda: live(plan, failures, [] if is_stored else None)))
    return min(times) / NODES * 1e6


def figures() -> list[Figure]:
    plain = planned()
    retrying = planned(retry={"maxAttempts": 2})
    return [
        Figure(
            "decide and fold a task: leased, started, succeeded", best(plain, 0), "µs", BUDGET_US
        ),
        Figure(
            "the same, with its facts encoded for the store", best(plain, 0, True), "µs", BUDGET_US
        ),
        Figure("the same, with a failure and a retry", best(retrying, 1), "µs", RETRY_BUDGET_US),
    ]

"""Memory: what an active task takes in the view of an engine, plan included."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable
from random import Random
from typing import Any

from astraflow.core.engine.batch import Batch
from astraflow.core.engine.placing import place
from astraflow.core.engine.settings import EngineSettings
from astraflow.core.engine.view import View
from astraflow.core.fleet.workers import Offer, WorkerDrainChanged, WorkerRegistered
from astraflow.core.ids import RunId, SessionId
from astraflow.core.runs import accept
from astraflow.core.runs.facts import RunAccepted
from astraflow.core.workflow import StaticCatalog, core_manifest, decode_definition, plan_workflow
from benchmarks.figures import Figure
from benchmarks.plan_scaling import document

HALF = 10_000
BUDGET_BYTES = 2_048.0
AT = 1_800_000_000_000
RUN_ID = "01J8ZQ5T9GQ4X7V2N3M1K0HABC"


def grown(make: Callable[[], Any]) -> tuple[Any, int]:
    """What `make` made, and the bytes that are still in use because of it."""
    gc.collect()
    tracemalloc.start()
    made = make()
    gc.collect()
    after, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return made, after


def view_with(tasks: int, slots: int) -> View:
    """A view with one run of `tasks` tasks, of which as many as there are slots are leased."""
    catalog = StaticCatalog([core_manifest()])
    view = View(EngineSettings(), Random(1), 0.0)
    packages = {"core": frozenset({core_manifest().version})}
    offer = Offer(max(1, slots), packages, frozenset({"python"}))
    worker = view.workers.apply(
        WorkerRegistered("acme", AT, "w1", SessionId("session"), 1, True, offer)
    )
    worker.since = "2026-01-15T10:00:00.000Z"
    if not slots:
        view.workers.apply(WorkerDrainChanged("acme", AT, "w1", is_draining=True))
    plan = plan_workflow(decode_definition(document("alone", tasks)), catalog)
    decision = accept(plan, RunAccepted(AT, RunId(RUN_ID), "acme", plan.workflow_id), view.rng)
    view.runs.add(decision.run)
    view.apply(decision)
    place(view)
    view.batch = Batch()  # committed and sent
    assert len(view.leases) == slots
    assert len(view.queue) == tasks - slots
    return view


def figures() -> list[Figure]:
    both, mixed = grown(lambda: view_with(2 * HALF, HALF))
    del both
    kept, waiting = grown(lambda: view_with(HALF, 0))
    del kept
    leased = mixed - waiting
    return [
        Figure(
            f"an active task, of {HALF:,} waiting and {HALF:,} leased",
            mixed / (2 * HALF),
            "bytes",
            BUDGET_BYTES,
        ),
        Figure("a waiting task", waiting / HALF, "bytes", BUDGET_BYTES),
        Figure("a leased task", leased / HALF, "bytes", BUDGET_BYTES),
    ]

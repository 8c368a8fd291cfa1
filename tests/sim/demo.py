"""`make run`: one workflow in a simulated world, told as it happens.

There is no server to start yet, but the engine, the sessions and the agents are the real ones: the scheduler is killed
in the middle, a worker is cut off, and the run ends all the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TextIO

from astraflow.core.runs.facts import (
    AttemptProgressed,
    CancelRequested,
    RunAccepted,
    RunFinished,
    RunStarted,
    TaskFact,
)
from astraflow.core.runs.timeline import describe_fact
from tests.sim.config import Config
from tests.sim.simulation import Simulation

if TYPE_CHECKING:
    from astraflow.core.engine.batch import Batch
    from astraflow.core.runs.facts import Fact

__all__ = ["demo"]


def demo(out: TextIO) -> int:
    """Tell one run from its acceptance to its end; 0 if it succeeded."""
    config = Config(
        seed=11, workers=3, slots=2, runs=1, tasks=8, handlers=("ok", "slow", "chatty"), chains=True
    )
    simulation = Simulation(config)
    world = simulation.world
    ended: list[str] = []

    def say(line: str) -> None:
        print(f"{world.now:7.2f} s  {line}", file=out)

    def on_commit(batch: Batch) -> None:
        for one in batch.facts:
            if isinstance(one.fact, RunFinished):
                ended.append(one.fact.status)
            line = _line(one.fact)
            if line is not None:
                say(line)

    def crash() -> None:
        say("!! kill -9 of the scheduler: everything in its memory is gone")
        simulation.schedulers[0].crash()
        world.after(1.5, restart)

    def restart() -> None:
        say("!! the scheduler starts again from what it had committed")
        simulation.schedulers[0].start()

    def split() -> None:
        say("!! worker-1 is cut off from the network for 20 s")
        for direction in (0, 1):
            simulation.network.block(simulation.workers[1], direction, 20.0)

    simulation.store.on_commit.append(on_commit)
    simulation.client.start()
    for scheduler in simulation.schedulers:
        scheduler.start()
    for worker in simulation.workers:
        worker.boot()
    world.run_until(200.0, stop=lambda: bool(simulation.store.runs))
    world.after(1.0, crash)
    world.after(6.0, split)
    world.run_until(400.0, stop=lambda: bool(ended))
    say(f"the run has {ended[0] if ended else 'not ended'}; every line above was committed first")
    return 0 if ended == ["succeeded"] else 1


def _line(fact: Fact) -> str | None:
    if isinstance(fact, AttemptProgressed):
        return None
    if isinstance(fact, RunAccepted):
        return f"run {fact.run_id[-6:]} was accepted"
    if isinstance(fact, RunStarted):
        return "the run has started"
    if isinstance(fact, RunFinished):
        return f"the run has ended: {fact.status}"
    if isinstance(fact, TaskFact):
        return f"task {fact.task} {describe_fact(fact)}"
    assert isinstance(fact, CancelRequested)
    return describe_fact(fact)

"""A package that tasks want is installed on more workers while they wait for a slot."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.definitions import node, workflow
from tests.packages.archives import write_adapter
from tests.processes.system import running
from tests.processes.waiting import until

TASKS = 12

ADAPTER = """
    import pathlib
    import time

    class Adapter:
        def wait(self, ctx):
            while not pathlib.Path(ctx.parameters["gate"]).exists():
                time.sleep(0.05)
            return {"worker": ctx.worker_id}
"""


GATE = {"parameters": {"type": "object", "properties": {"gate": {"type": "string"}}}}


def gated(gate: Path) -> dict[str, Any]:
    given = {"package": {"name": "gated", "version": "1.0.0"}, "parameters": {"gate": str(gate)}}
    return workflow(*(node("gated.wait", f"n{number}", **given) for number in range(TASKS)))


def test_tasks_that_wait_for_a_slot_bring_their_package_to_idle_workers(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    slots = {"ASTRA_WORKER_CONCURRENCY_MAX_PARALLEL": "2"}
    with running(tmp_path / "site", 3, environ=slots) as site:
        site.rest.publish(write_adapter(tmp_path / "gated", "gated", "wait", ADAPTER, schema=GATE))
        run_id = site.rest.submit(gated(gate))

        def used() -> set[str]:
            nodes = site.rest.nodes(run_id).values()
            return {node["workerId"] for node in nodes if node["status"] == "running"}

        try:
            # Nobody ends before all three have some.
            until(lambda: len(used()) == 3, "tasks on all three workers")
        finally:
            gate.touch()
        run = site.rest.finished(run_id)
    assert run["status"] == "succeeded", run
    assert len({node["result"]["worker"] for node in run["nodes"]}) == 3

"""A package that tasks want is installed on more workers while they wait for a slot."""

from __future__ import annotations

import json
import textwrap
import uuid
from pathlib import Path
from typing import Any

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


def write_package(folder: Path) -> Path:
    (folder / "gated_nodes").mkdir(parents=True)
    (folder / "gated_nodes" / "__init__.py").write_text(textwrap.dedent(ADAPTER))
    adapter = {
        "name": "gated",
        "runtime": "python",
        "entrypoint": "gated_nodes:Adapter",
        "capabilities": ["gated.wait"],
    }
    manifest = {
        "name": "gated",
        "version": "1.0.0",
        "schemaVersion": "1.0.0",
        "adapters": [adapter],
        "nodes": [
            {
                "type": "gated.wait",
                "runtimes": {"python": {"handler": "wait"}},
                "schema": {
                    "parameters": {"type": "object", "properties": {"gate": {"type": "string"}}}
                },
            }
        ],
    }
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return folder


def workflow(gate: Path) -> dict[str, Any]:
    nodes = [
        {
            "id": str(uuid.uuid4()),
            "type": "gated.wait",
            "label": f"n{number}",
            "package": {"name": "gated", "version": "1.0.0"},
            "parameters": {"gate": str(gate)},
        }
        for number in range(TASKS)
    ]
    return {"id": str(uuid.uuid4()), "nodes": nodes, "edges": []}


def test_tasks_that_wait_for_a_slot_bring_their_package_to_idle_workers(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    slots = {"ASTRA_WORKER_CONCURRENCY_MAX_PARALLEL": "2"}
    with running(tmp_path / "site", 3, environ=slots) as site:
        site.rest.publish(write_package(tmp_path / "gated"))
        run_id = site.rest.submit(workflow(gate))

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

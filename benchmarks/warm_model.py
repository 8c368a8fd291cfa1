"""What it is worth to bring the work to the model: a node on the worker that has it warm, against one that loads it."""

from __future__ import annotations

import uuid
from pathlib import Path
from time import perf_counter
from typing import Any

import httpx

from astraflow.bench.processes import System, running
from astraflow.packages.building import build_archive
from benchmarks.figures import Figure
from benchmarks.packages import ended, opened_client, wait

ROOT = Path(__file__).resolve().parent.parent
TIMES = 7


def figures() -> list[Figure]:
    with running() as system, opened_client(system) as client:
        _publish(system, client)
        _embed(client)  # installed on demand; the host and the model are there from here on
        warm = sorted(_embed(client) for _ in range(TIMES))[TIMES // 2]
        cold = sorted(_cold(client) for _ in range(3))[1]
    return [
        Figure("embed a text where the model is warm", warm * 1000, "ms"),
        Figure("embed a text where it has to be loaded", cold * 1000, "ms"),
        Figure("the warm worker is faster by", cold / warm, "times"),
    ]


def _publish(system: System, client: httpx.Client) -> None:
    archive = build_archive(ROOT / "packages" / "embeddings", system.folder / "dist")
    client.post(
        "/api/v1/packages",
        content=archive.path.read_bytes(),
        headers={"Content-Type": "application/zip"},
    ).raise_for_status()


def _embed(client: httpx.Client) -> float:
    return _timed(client, {"texts": ["How long does it take?"]})


def _cold(client: httpx.Client) -> float:
    """Close the warm model: the next node has to load it again."""
    load = _run(client, "embeddings.load", {})
    resource_id = load["nodes"][0]["result"]["model"]["resourceRef"]["resourceId"]
    wait(lambda: _is_gone(client, resource_id))
    return _timed(client, {"texts": ["How long does it take?"]})


def _is_gone(client: httpx.Client, resource_id: str) -> bool:
    state: str = client.get(f"/api/v1/resources/{resource_id}").json()["state"]
    return state in ("released", "evicted")


def _timed(client: httpx.Client, parameters: dict[str, Any]) -> float:
    started = perf_counter()
    run = _run(client, "embeddings.embed", parameters)
    assert run["status"] == "succeeded", run
    return perf_counter() - started


def _run(client: httpx.Client, kind: str, parameters: dict[str, Any]) -> dict[str, Any]:
    node = {"id": str(uuid.uuid4()), "type": kind, "parameters": parameters}
    workflow = {"id": str(uuid.uuid4()), "nodes": [node], "edges": []}
    run_id = client.post("/api/v1/runs", json={"workflow": workflow}).json()["runId"]
    run: dict[str, Any] = wait(lambda: ended(client, run_id))
    return run

"""Packages and artifacts: what an install takes when everything is at hand, and what a large file costs in memory."""

from __future__ import annotations

import json
import shutil
import tempfile
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter, sleep
from typing import Any

import httpx

from astraflow.bench.processes import TOKEN, System, running
from astraflow.packages.building import build_archive
from benchmarks.figures import Figure
from benchmarks.usage import rss_mib

ROOT = Path(__file__).resolve().parent.parent
GIB = 1024**3
INSTALLS = 5


def figures() -> list[Figure]:
    with running() as system, opened_client(system) as client:
        return [*_installs(system, client), *_large_file(system, client)]


@contextmanager
def opened_client(system: System) -> Iterator[httpx.Client]:
    headers = {"Authorization": f"Bearer {TOKEN}"}
    url = f"http://127.0.0.1:{system.port}"
    with httpx.Client(base_url=url, headers=headers, timeout=300) as client:
        yield client


# -- packages ---------------------------------------------------------------------------------


def _installs(system: System, client: httpx.Client) -> list[Figure]:
    """Package `core` under other names: published, told to the worker, offered by it."""
    worker_id = wait(lambda: _workers(client))[0]["workerId"]
    took = []
    with tempfile.TemporaryDirectory() as folder:
        for number in range(INSTALLS + 1):
            source = _copy_of_core(Path(folder) / f"source{number}", f"core{number}")
            archive = build_archive(source, Path(folder) / "dist")
            client.post(
                "/api/v1/packages",
                content=archive.path.read_bytes(),
                headers={"Content-Type": "application/zip"},
            ).raise_for_status()
            started = perf_counter()
            body = {"type": "pkg.install", "name": f"core{number}", "version": "1.0.0"}
            client.post(f"/api/v1/workers/{worker_id}/commands", json=body).raise_for_status()
            wait(lambda number=number: _offers(client, f"core{number}"))
            took.append(perf_counter() - started)
    warm = sorted(took[1:])
    return [Figure("install of a package like core, warm", warm[len(warm) // 2], "s", 2)]


def _copy_of_core(folder: Path, name: str) -> Path:
    shutil.copytree(ROOT / "packages" / "core", folder)
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["name"] = name
    for node in manifest["nodes"]:
        node["type"] = node["type"].replace("core.", f"{name}.")
    manifest["adapters"][0]["capabilities"] = [node["type"] for node in manifest["nodes"]]
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return folder


def _workers(client: httpx.Client) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = client.get("/api/v1/workers").json()["items"]
    return [one for one in items if one["status"] == "online"]


def _offers(client: httpx.Client, name: str) -> bool:
    packages = _workers(client)[0]["packages"]
    return any(one["name"] == name and one["status"] == "installed" for one in packages)


def wait(found: Any) -> Any:
    while not (value := found()):
        sleep(0.01)
    return value


# -- artifacts --------------------------------------------------------------------------------


class _Peak:
    """The most that processes hold while something happens, above what they held before."""

    def __init__(self, **pids: int) -> None:
        self._pids = pids
        self._before = {name: rss_mib(pid) for name, pid in pids.items()}
        self._most = dict(self._before)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch)

    def __enter__(self) -> _Peak:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._over.wait(0.02):
            for name, pid in self._pids.items():
                self._most[name] = max(self._most[name], rss_mib(pid))

    def growth(self) -> dict[str, float]:
        return {name: self._most[name] - self._before[name] for name in self._pids}


def _large_file(system: System, client: httpx.Client) -> list[Figure]:
    """A file of a GiB: made by one node, read by another where it lies, exported and downloaded."""
    assert system.scheduler is not None
    _run(client, 1024)  # hosts are started, everything is loaded
    with _Peak(scheduler=system.scheduler.pid, worker=system.workers[0].pid) as peak:
        started = perf_counter()
        resource_id = _run(client, GIB)
        made = perf_counter() - started
        started = perf_counter()
        with client.stream("GET", f"/api/v1/artifacts/{resource_id}") as answer:
            answer.raise_for_status()
            size = sum(len(piece) for piece in answer.iter_bytes(1024**2))
        downloaded = perf_counter() - started
    assert size == GIB, size
    growth = peak.growth()
    return [
        Figure("a file of 1 GiB, made and read", made, "s"),
        Figure("exported and downloaded", downloaded, "s"),
        Figure("growth of the scheduler", growth["scheduler"], "MiB", 32),
        Figure("growth of the worker", growth["worker"], "MiB", 32),
    ]


def _run(client: httpx.Client, size: int) -> str:
    """Make a file and read it; the id of the file."""
    make, read = str(uuid.uuid4()), str(uuid.uuid4())
    workflow = {
        "id": str(uuid.uuid4()),
        "nodes": [
            {
                "id": make,
                "type": "core.file",
                "parameters": {"name": "large.bin", "sizeBytes": size},
            },
            {"id": read, "type": "core.read_file"},
        ],
        "edges": [
            {"source": {"node": make, "port": "file"}, "target": {"node": read, "port": "file"}}
        ],
    }
    run_id = client.post("/api/v1/runs", json={"workflow": workflow}).json()["runId"]
    run = wait(lambda: ended(client, run_id))
    assert run["status"] == "succeeded", run
    assert run["nodes"][1]["result"]["sizeBytes"] == size
    return str(run["artifacts"][0]["resourceId"])


def ended(client: httpx.Client, run_id: str) -> dict[str, Any] | None:
    view: dict[str, Any] = client.get(f"/api/v1/runs/{run_id}").json()
    return view if view["status"] in ("succeeded", "failed") else None

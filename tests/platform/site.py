"""A scheduler and workers as processes, as somebody who installs them would have them, and a client for tests."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from astraflow.packages.building import build_archive

__all__ = ["ROOT", "Site", "until"]

ROOT = Path(__file__).resolve().parents[2]
TOKEN = "a token for tests of the platform"
WAIT_S = 90.0
"""A first install fetches wheels over the network."""

# Quick to notice a dead worker: lost after 1.5 s, its leases over after three.
QUICK = {
    "ASTRA_SCHEDULER_HEARTBEAT_INTERVAL_MS": "500",
    "ASTRA_SCHEDULER_LEASE_TTL_MS": "3000",
    "ASTRA_SCHEDULER_RESOURCE_GRACE_SECONDS": "3",
}


def until(condition: Callable[[], Any], what: str, seconds: float = WAIT_S) -> Any:
    """Wait for something that will be so."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = condition()
        if found:
            return found
        time.sleep(0.05)
    raise AssertionError(f"did not come about in {seconds} s: {what}")


class Site:
    """One installation in a folder of its own."""

    def __init__(self, folder: Path, **environ: str) -> None:
        self.folder = folder
        self.environ = {
            **os.environ,
            "ASTRA_SCHEDULER_BOOTSTRAP_TOKEN": TOKEN,
            "ASTRA_WORKER_AUTH_TOKEN": TOKEN,
            **environ,
        }
        self.url = ""
        self.scheduler: subprocess.Popen[str] | None = None
        self.workers: dict[str, subprocess.Popen[str]] = {}
        self._http: httpx.Client | None = None

    # -- processes --------------------------------------------------------------------------

    def start_scheduler(self) -> None:
        folder = self.folder / "scheduler"
        self.scheduler = self._start(
            "scheduler", "server", "--port", "0", "--data-dir", str(folder)
        )
        assert self.scheduler.stdout is not None
        line = self.scheduler.stdout.readline()
        assert line.startswith("listening on "), line
        self.url = line.split()[-1]
        headers = {"Authorization": f"Bearer {TOKEN}"}
        # No connection is kept: a test that opens one must not seem to leave it behind.
        limits = httpx.Limits(max_keepalive_connections=0)
        self._http = httpx.Client(base_url=self.url, headers=headers, timeout=60, limits=limits)

    def start_worker(self, name: str) -> None:
        url = f"ws{self.url.removeprefix('http')}/ws/worker"
        folder = self.folder / name
        self.workers[name] = self._start(
            name, "worker", "--scheduler-url", url, "--data-dir", str(folder), "--name", name
        )

    def kill_worker(self, name: str) -> None:
        """kill -9, as the kernel does when memory is short. Its hosts end with it."""
        self.workers[name].kill()
        self.ended_worker(name)

    def ended_worker(self, name: str) -> int:
        """Wait for the end of a worker; its exit code."""
        process = self.workers.pop(name)
        code = process.wait(60)
        assert process.stdout is not None
        process.stdout.close()
        return code

    def stop(self) -> None:
        everybody = [*self.workers.values()]
        if self.scheduler is not None:
            everybody.append(self.scheduler)
        for process in everybody:
            process.send_signal(signal.SIGTERM)
        for process in everybody:
            process.wait(60)
            assert process.stdout is not None
            process.stdout.close()
        if self._http is not None:
            self._http.close()

    def _start(self, name: str, *arguments: str) -> subprocess.Popen[str]:
        self.folder.mkdir(parents=True, exist_ok=True)
        with open(self.folder / f"{name}.log", "a") as log:
            return subprocess.Popen(
                [sys.executable, "-m", "astraflow", *arguments],
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env=self.environ,
            )

    # -- what a user does -------------------------------------------------------------------

    @property
    def http(self) -> httpx.Client:
        assert self._http is not None
        return self._http

    def get(self, path: str, **query: Any) -> Any:
        answer = self.http.get(f"/api/v1/{path}", params=query)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def publish(self, folder: Path, **built: Any) -> str:
        """Build and publish a package; its version."""
        archive = build_archive(folder, self.folder / "dist", **built)
        answer = self.http.post(
            "/api/v1/packages",
            content=archive.path.read_bytes(),
            headers={"Content-Type": "application/zip"},
        )
        assert answer.status_code in (200, 201), answer.text
        return str(answer.json()["version"])

    def install(self, name: str, version: str) -> None:
        """On every worker."""
        for worker in self.online():
            body = {"type": "pkg.install", "name": name, "version": version}
            answer = self.http.post(f"/api/v1/workers/{worker['workerId']}/commands", json=body)
            assert answer.status_code == 202, answer.text
        until(lambda: all(_has(one, name, version) for one in self.online()), f"{name} on all")

    def online(self) -> list[dict[str, Any]]:
        return [one for one in self.get("workers")["items"] if one["status"] == "online"]

    def submit(self, workflow: dict[str, Any], **body: Any) -> str:
        answer = self.http.post("/api/v1/runs", json={"workflow": workflow, **body})
        assert answer.status_code == 202, answer.text
        return str(answer.json()["runId"])

    def finished(self, run_id: str, seconds: float = WAIT_S) -> dict[str, Any]:
        """The run, when it has ended."""

        def ended() -> dict[str, Any] | None:
            view: dict[str, Any] = self.get(f"runs/{run_id}")
            return view if view["status"] in ("succeeded", "failed", "cancelled") else None

        found: dict[str, Any] = until(ended, f"the end of {self.nodes(run_id)}", seconds)
        return found

    def nodes(self, run_id: str) -> dict[str, dict[str, Any]]:
        """The nodes of a run by their labels."""
        view = self.get(f"runs/{run_id}")
        return {node["label"]: node for node in view["nodes"]}

    def story(self, run_id: str, node_id: str) -> str:
        return "\n".join(self.get(f"runs/{run_id}/nodes/{node_id}")["story"])

    def name_of(self, worker_id: str) -> str:
        return str(self.get(f"workers/{worker_id}")["name"])


def _has(worker: dict[str, Any], name: str, version: str) -> bool:
    wanted = {"name": name, "version": version, "status": "installed"}
    return any({**one, **wanted} == one for one in worker["packages"])


@contextmanager
def running(folder: Path, workers: int, **environ: str) -> Iterator[Site]:
    site = Site(folder, **environ)
    try:
        site.start_scheduler()
        for number in range(workers):
            site.start_worker(f"worker-{number + 1}")
        until(lambda: len(site.online()) == workers, "all workers online")
        yield site
    finally:
        site.stop()


def load(name: str) -> dict[str, Any]:
    """An example of the project."""
    document: dict[str, Any] = json.loads((ROOT / "examples" / name).read_text())
    return document

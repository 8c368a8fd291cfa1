"""A scheduler as a process of its own, and what can be asked of it from outside."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tests.chaos.proc import die_with_parent, rss_mib
from tests.chaos.supervisor import free_port

__all__ = ["NODE", "TOKEN", "Server", "running"]

TOKEN = "a token for hostile peers"
WAIT_S = 30.0
"""For what must come about; never waited out unless something is broken."""
LOOK_S = 0.05
NODE = "3f2b6d1e-7c0a-4d65-9a54-0d5f6a1c2b3e"
LISTS = (
    "runs",
    "workers",
    "resources",
    "workflows",
    "audit",
    "packages",
    "catalog/nodes",
)


class Server:
    """`astra server` on a port of its own. `program`: another that runs it, with a fault in it."""

    def __init__(
        self,
        folder: Path,
        *,
        database_url: str | None = None,
        program: list[str] | None = None,
        heartbeat_ms: int = 1000,
    ) -> None:
        self.folder = folder
        self.port = free_port()
        self.is_durable = database_url != "memory://"
        self._program = program or ["-m", "astraflow"]
        self._popen: subprocess.Popen[bytes] | None = None
        self._environ = {
            **os.environ,
            "ASTRA_SCHEDULER_BOOTSTRAP_TOKEN": TOKEN,
            "ASTRA_SCHEDULER_SECRET": "a secret for hostile peers, long enough to sign",
            "ASTRA_SCHEDULER_HEARTBEAT_INTERVAL_MS": str(heartbeat_ms),
            "ASTRA_SCHEDULER_LEASE_TTL_MS": str(6 * heartbeat_ms),
            "ASTRA_SCHEDULER_SHARD_LEASE_MS": str(3 * heartbeat_ms),
        }
        if database_url is not None:
            self._environ["ASTRA_SCHEDULER_DATABASE_URL"] = database_url

    @property
    def pid(self) -> int:
        assert self._popen is not None
        return self._popen.pid

    @property
    def rss_mib(self) -> float:
        return rss_mib(self.pid)

    @property
    def log(self) -> str:
        return (self.folder / "server.log").read_text(errors="replace")

    def start(self) -> None:
        arguments = ["server", "--port", str(self.port), "--data-dir", str(self.folder / "data")]
        with (self.folder / "server.log").open("ab") as log:
            self._popen = subprocess.Popen(
                [sys.executable, *self._program, *arguments],
                env=self._environ,
                cwd=self.folder,
                stdout=log,
                stderr=log,
                preexec_fn=die_with_parent,
            )
        self.until(lambda: self.status("/readyz") == 200)

    def is_alive(self) -> bool:
        return self._popen is not None and self._popen.poll() is None

    def freeze(self) -> None:
        os.kill(self.pid, signal.SIGSTOP)

    def thaw(self) -> None:
        os.kill(self.pid, signal.SIGCONT)

    def kill(self) -> None:
        assert self._popen is not None
        self._popen.kill()
        self._popen.wait()

    def restart(self) -> None:
        """As after a `kill -9`."""
        self.kill()
        self.start()

    def until(self, holds: Callable[[], bool]) -> None:
        """Wait until something holds, while the process lives."""
        end = time.monotonic() + WAIT_S
        while not holds():
            assert self.is_alive(), self.log[-4000:]
            assert time.monotonic() < end, self.log[-4000:]
            time.sleep(LOOK_S)

    # -- REST -------------------------------------------------------------------------------

    def ask(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}{path}",
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"},
        )
        try:
            with urllib.request.urlopen(request, timeout=WAIT_S) as answer:
                return answer.status, _read(answer.read())
        except urllib.error.HTTPError as error:
            with error:
                return error.code, _read(error.read())

    def status(self, path: str) -> int:
        try:
            return self.ask("GET", path)[0]
        except OSError:
            return 0

    def get(self, path: str) -> Any:
        status, body = self.ask("GET", f"/api/v1/{path}")
        assert status == 200, (path, status, body)
        return body

    def read_everything(self) -> None:
        """Every list, and every run and resource that is in one, can be shown."""
        for name in LISTS:
            self.get(name)
        for run in self.get("runs")["items"]:
            for part in ("", "/logs", "/artifacts", "/definition"):
                self.get(f"runs/{run['runId']}{part}")
        for row in self.get("resources")["items"]:
            quoted = urllib.parse.quote(row["resourceId"], safe="")
            self.get(f"resources/{quoted}?workerId={urllib.parse.quote(row['workerId'])}")
        for worker in self.get("workers")["items"]:
            self.get(f"workers/{urllib.parse.quote(worker['workerId'], safe='')}")
        assert self.status("/metrics") == 200

    def submit(self, value: Any = "x") -> str:
        """A run of one node, `core.echo`; returns its id."""
        definition = {
            "id": "6b1f7e52-0c1d-4f7a-8a9e-2d3c4b5a6f70",
            "metadata": {"name": "one"},
            "nodes": [{"id": NODE, "type": "core.echo", "parameters": {"value": value}}],
            "edges": [],
        }
        status, body = self.ask("POST", "/api/v1/runs", {"workflow": definition})
        assert status in (201, 202), (status, body)
        return str(body["runId"])

    def run_status(self, run_id: str) -> str:
        return str(self.get(f"runs/{run_id}")["status"])

    def worker_status(self, name: str) -> str:
        return str(self.get(f"workers/{name}")["status"])

    def metric(self, name: str) -> float:
        """The sum of all series of a counter."""
        text = self.ask("GET", "/metrics")[1]
        lines = [line for line in str(text).splitlines() if line.startswith(name)]
        return sum(float(line.rpartition(" ")[2]) for line in lines)


def _read(raw: bytes) -> Any:
    try:
        return json.loads(raw)
    except ValueError:
        return raw.decode()


@contextlib.contextmanager
def running(folder: Path, **more: Any) -> Iterator[Server]:
    server = Server(folder, **more)
    server.start()
    try:
        yield server
        assert server.is_alive(), server.log[-4000:]
        assert "Traceback" not in server.log or "program" in more, server.log[-4000:]
    finally:
        if server.is_alive():
            server.kill()

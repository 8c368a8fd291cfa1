"""A worker that somebody else wrote from ADR-023: it takes pushes over HTTP and reports with plain requests.

It knows nothing of AstraFlow's code. What arrives is kept until the test does something with it.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import jsonschema_rs

from tests.processes.waiting import WAIT_S, until

SCHEMAS = Path(__file__).resolve().parent.parent.parent / "schemas" / "http"


def check(name: str, value: Any) -> None:
    """What the scheduler sends is as its schema says."""
    jsonschema_rs.validate(json.loads((SCHEMAS / f"{name}.schema.json").read_text()), value)


def check_answer(what: str, answer: httpx.Response) -> None:
    what = what.partition("?")[0]
    is_accepted = answer.status_code == 200
    accepted = "accepted" if what == "started" else f"{what}.accepted"
    check(accepted if is_accepted else "refused", answer.json())


class Task:
    """One delivery of one attempt."""

    def __init__(self, envelope: dict[str, Any], headers: dict[str, str]) -> None:
        check("envelope", envelope)
        self.envelope = envelope
        self.headers = headers
        self.token = str(envelope["taskToken"])
        self.worker_id = f"foreign-{id(self)}"

    @property
    def task_id(self) -> str:
        return str(self.envelope["taskId"])

    @property
    def attempt(self) -> int:
        return int(self.envelope["attempt"])

    def post(self, what: str, *, prefix: str = "/v1", **body: Any) -> httpx.Response:
        """Report; what the body lacks is filled in, None leaves it out."""
        whole = {"attempt": self.attempt, "workerId": self.worker_id, **body}
        whole = {name: value for name, value in whole.items() if value is not None}
        return self.send(what, json.dumps(whole).encode(), prefix=prefix)

    def send(
        self,
        what: str,
        raw: bytes,
        *,
        prefix: str = "/v1",
        token: str | None = None,
        path: str = "",
    ) -> httpx.Response:
        base = str(self.envelope["callbackBaseUrl"])
        url = f"{base}{prefix}/tasks/{path or self.task_id}/{what}"
        given = self.token if token is None else token
        headers = {"Content-Type": "application/json"}
        if given:
            headers["Authorization"] = f"Bearer {given}"
        answer = httpx.post(url, content=raw, headers=headers, timeout=30)
        check_answer(what, answer)
        return answer

    def start(self) -> httpx.Response:
        return self.post("started", startedAt="2026-01-15T10:00:00Z")

    def succeed(self, **output: Any) -> httpx.Response:
        return self.post("completed", outcome="SUCCEEDED", output=output)

    def fail(self, category: str = "USER_CODE", **more: Any) -> httpx.Response:
        error = {"category": category, "message": "it broke", **more}
        return self.post("completed", outcome="FAILED", error=error)


class ForeignPool:
    """The URL of a pool. `answers`: the statuses of the next deliveries, then 202."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.tasks: list[Task] = []
        self.answers: list[int] = []
        self._lock = threading.Lock()

    def take(self, raw: bytes, headers: dict[str, str]) -> int:
        with self._lock:
            status = self.answers.pop(0) if self.answers else 202
            if status == 202:
                self.tasks.append(Task(json.loads(raw), headers))
            return status

    def next(self, seen: int = 0, within_s: float = WAIT_S) -> Task:
        """The delivery after so many."""
        until(lambda: len(self.tasks) > seen, f"delivery {seen + 1}", within_s)
        return self.tasks[seen]


@contextmanager
def foreign_pool() -> Iterator[ForeignPool]:
    """A pool that listens on loopback."""
    holder: list[ForeignPool] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            raw = self.rfile.read(int(self.headers["Content-Length"]))
            headers = {name.lower(): value for name, value in self.headers.items()}
            self.send_response(holder[0].take(raw, headers))
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    pool = ForeignPool(f"http://127.0.0.1:{server.server_port}/tasks")
    holder.append(pool)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield pool
    finally:
        server.shutdown()
        server.server_close()
        thread.join()

"""PostgreSQL away: who asks for a run is answered in bounded time, and a run is made once, whatever was answered."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.definitions import node, workflow
from tests.processes.postgres import PostgresProcess, postgres_process
from tests.processes.rest import Rest
from tests.processes.system import running
from tests.processes.waiting import until

ASKED_S = 30.0
"""For one answer. The bound of the scheduler is far below; one that hangs fails by this one."""
BODY = {"workflow": workflow(node("core.noop"))}


@contextmanager
def stopped(postgres: PostgresProcess) -> Iterator[None]:
    postgres.stop()
    try:
        yield
    finally:
        postgres.start()


def _submit(rest: Rest, key: str) -> httpx.Response:
    began = time.monotonic()
    headers = {"Idempotency-Key": key}
    answer = rest.http.post("/api/v1/runs", json=BODY, headers=headers, timeout=ASKED_S)
    print(f"{time.monotonic() - began:6.2f} s  {key}: {answer.status_code}")
    return answer


def _later(answer: httpx.Response) -> dict[str, Any]:
    assert answer.status_code == 503, answer.text
    assert int(answer.headers["retry-after"]) >= 1
    body: dict[str, Any] = answer.json()
    return body


@pytest.mark.timeout(240)
@pytest.mark.parametrize("away", [PostgresProcess.frozen, stopped])
def test_a_submission_while_postgresql_is_away_is_answered_and_makes_one_run(
    tmp_path: Path, away: Callable[[PostgresProcess], AbstractContextManager[None]]
) -> None:
    with (
        postgres_process() as postgres,
        running(tmp_path, heartbeat_ms=None, database_url=postgres.url) as system,
    ):
        _ask_while_away(system.rest, away(postgres))


def _ask_while_away(rest: Rest, away: AbstractContextManager[None]) -> None:
    assert _submit(rest, "before").status_code == 202
    with away:
        first = _later(_submit(rest, "first"))
        assert first["code"] in ("E.STORE.UNAVAILABLE", "E.SCHEDULER.NOT_READY")
        if first["code"] == "E.STORE.UNAVAILABLE":
            assert first["outcome"] == "unknown"
            assert "Idempotency-Key" in first["detail"]
        until(lambda: rest.status("/readyz") == 503, "a scheduler that is not ready")
        assert "the store" in _later(rest.http.get("/readyz"))["detail"]
        second = _later(_submit(rest, "second"))
        assert second["code"] == "E.SCHEDULER.NOT_READY"
        assert rest.status("/healthz") == 200
    rest.ask("GET", "/readyz")
    made: dict[str, str] = {}
    for key in ("before", "first", "second", "first", "second"):
        answer = _submit(rest, key)
        assert answer.status_code in (200, 202), answer.text
        run_id = answer.json()["runId"]
        assert made.setdefault(key, run_id) == run_id
    assert sorted(one["runId"] for one in rest.get("runs")["items"]) == sorted(made.values())

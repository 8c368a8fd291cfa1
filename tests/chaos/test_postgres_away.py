"""PostgreSQL away: who asks for a run is answered in bounded time, and a run is made once, whatever was answered."""

from __future__ import annotations

import asyncio
import contextlib
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.chaos.postgres import PostgresProcess, postgres_process
from tests.chaos.supervisor import TOKEN, Supervisor
from tests.chaos.workload import run_of

WITHIN_S = 60.0
ASKED_S = 30.0
"""For one answer. The bound of the scheduler is far below; one that hangs fails by this one."""


@contextmanager
def stopped(postgres: PostgresProcess) -> Iterator[None]:
    postgres.stop()
    try:
        yield
    finally:
        postgres.start()


class Client:
    """Asks one scheduler, each request with a time limit."""

    def __init__(self, http: httpx.AsyncClient) -> None:
        self._http = http
        node = {"id": str(uuid.uuid4()), "type": "core.noop"}
        self._body = run_of([node], [])

    async def get(self, path: str) -> httpx.Response:
        return await self._http.get(path)

    async def submit(self, key: str) -> httpx.Response:
        began = time.monotonic()
        answer = await self._http.post(
            "/api/v1/runs", json=self._body, headers={"Idempotency-Key": key}
        )
        print(f"{time.monotonic() - began:6.2f} s  {key}: {answer.status_code}")
        return answer

    async def until(self, path: str, status: int) -> httpx.Response:
        async with asyncio.timeout(WITHIN_S):
            while True:
                with contextlib.suppress(httpx.TransportError):
                    answer = await self.get(path)
                    if answer.status_code == status:
                        return answer
                await asyncio.sleep(0.05)

    async def runs(self) -> list[str]:
        items: list[dict[str, Any]] = (await self.get("/api/v1/runs")).json()["items"]
        return [one["runId"] for one in items]


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
    async def case(postgres: PostgresProcess) -> None:
        supervisor = Supervisor(tmp_path, database_url=postgres.url)
        supervisor.scheduler.environ.update(
            {
                "ASTRA_SCHEDULER_LEASE_TTL_MS": "30000",
                "ASTRA_SCHEDULER_SHARD_LEASE_MS": "8000",
            }
        )
        await supervisor.start_scheduler()
        headers = {"Authorization": f"Bearer {TOKEN}"}
        try:
            async with httpx.AsyncClient(
                base_url=supervisor.base_url, headers=headers, timeout=ASKED_S
            ) as http:
                await _ask_while_away(Client(http), away(postgres))
        finally:
            await supervisor.close()

    with postgres_process() as postgres:
        asyncio.run(case(postgres))


async def _ask_while_away(client: Client, away: AbstractContextManager[None]) -> None:
    assert (await client.submit("before")).status_code == 202
    with away:
        first = _later(await client.submit("first"))
        assert first["code"] in ("E.STORE.UNAVAILABLE", "E.SCHEDULER.NOT_READY")
        if first["code"] == "E.STORE.UNAVAILABLE":
            assert first["outcome"] == "unknown"
            assert "Idempotency-Key" in first["detail"]
        ready = _later(await client.until("/readyz", 503))
        assert "the store" in ready["detail"]
        second = _later(await client.submit("second"))
        assert second["code"] == "E.SCHEDULER.NOT_READY"
        assert (await client.get("/healthz")).status_code == 200
    await client.until("/readyz", 200)
    made: dict[str, str] = {}
    for key in ("before", "first", "second", "first", "second"):
        answer = await client.submit(key)
        assert answer.status_code in (200, 202), answer.text
        run_id = answer.json()["runId"]
        assert made.setdefault(key, run_id) == run_id
    assert sorted(await client.runs()) == sorted(made.values())

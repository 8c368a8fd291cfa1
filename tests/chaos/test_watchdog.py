"""A node whose event loop is blocked ends itself, and another has its tenants."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import httpx
import pytest

from astraflow.chaos import VARIABLE
from tests.definitions import node, workflow
from tests.processes.postgres import postgres_server
from tests.processes.system import System
from tests.processes.waiting import until


@pytest.fixture
def system(tmp_path: Path) -> Iterator[System]:
    with postgres_server() as url:
        made = System(tmp_path, heartbeat_ms=None, database_url=url)
        try:
            yield made
        finally:
            made.close()


@pytest.mark.timeout(180)
def test_a_node_whose_loop_is_blocked_ends_and_says_where_it_was(system: System) -> None:
    blocked = system.scheduler
    blocked.start(**{VARIABLE: "after-commit:3:block"})
    system.until_ready()
    other = system.new_scheduler().start()
    body = {"workflow": workflow(node("core.noop"))}
    with suppress(httpx.TransportError):  # the answer to the one that blocks it
        for _ in range(10):
            system.rest.http.post("/api/v1/runs", json=body)
    until(lambda: not blocked.is_alive(), "the end of a node that is blocked")
    assert blocked.code == 1
    assert "the event loop has been blocked for 3 s" in blocked.said()
    assert 'chaos.py", line' in blocked.said()
    system.hand_over(other)
    answer = system.rest.ask("POST", "/api/v1/runs", json=body)
    assert answer.status_code == 202, answer.text

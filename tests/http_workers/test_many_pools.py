"""As many pools as a tenant may have: made, listed in pages, there after a restart, and given work by name."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.http_workers.foreign import ForeignPool
from tests.http_workers.workflows import node, put_pool, workflow
from tests.processes.rest import TOKEN
from tests.processes.system import System, running

POOLS = 1_000


@pytest.fixture
def system(tmp_path: Path) -> Iterator[System]:
    with running(tmp_path) as system:
        yield system


def listed(system: System, count: int) -> list[list[str]]:
    """The names of all pools, page by page."""
    pages: list[list[str]] = []
    query: dict[str, Any] = {"limit": count}
    while True:
        page = system.rest.get("pools", **query)
        pages.append([one["name"] for one in page["items"]])
        if page.get("nextCursor") is None:
            return pages
        query["cursor"] = page["nextCursor"]


def test_a_thousand_pools(system: System, pool: ForeignPool) -> None:
    names = [f"p{number}" for number in range(POOLS)]
    body = {"url": pool.url, "packages": [{"name": "core"}], "maxParallel": 1}
    headers = {"Authorization": f"Bearer {TOKEN}"}
    with httpx.Client(base_url=system.url, headers=headers, timeout=60) as client:
        for name in names:
            answer = client.put(f"/api/v1/pools/{name}", json=body)
            assert answer.status_code == 200, answer.text
    put_pool(system, pool, "one-too-many", wanted=422)
    put_pool(system, pool, "p0", maxParallel=2)
    for _ in range(2):
        pages = listed(system, 150)
        assert [len(page) for page in pages] == [150] * 6 + [100]
        assert [name for page in pages for name in page] == sorted(names)
        system.restart()
    run_id = system.rest.submit(workflow(*(node(f"p{number}") for number in (999, 500, 0))))
    for number in range(3):
        assert pool.next(number).succeed().status_code == 200
    run = system.rest.finished(run_id)
    assert run["status"] == "succeeded"
    assert [one["workerId"] for one in run["nodes"]] == ["pool/p999", "pool/p500", "pool/p0"]
    answer = system.rest.http.delete("/api/v1/pools/p999")
    assert answer.status_code == 204
    put_pool(system, pool, "one-more")

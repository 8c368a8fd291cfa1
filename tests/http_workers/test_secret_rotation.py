"""The secret of a site is changed while work is under way, on real processes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests import definitions
from tests.http_workers.foreign import ForeignPool
from tests.http_workers.workflows import node, put_pool, workflow
from tests.processes.system import SECRET, System, running

NEXT = "the next secret for tests, long enough to sign"
HEADER = "x-astraflow-pool-secret"


@pytest.fixture
def site(tmp_path: Path) -> Iterator[System]:
    with running(tmp_path, workers=1) as system:
        yield system


def restart(site: System, secret: str) -> None:
    site.scheduler.kill()
    site.scheduler.environ = {**site.scheduler.environ, "ASTRA_SCHEDULER_SECRET": secret}
    site.start()
    site.until(lambda: len(site.rest.online()) == 1, "the worker again")


def file_of(site: System, text: str) -> str:
    """Run a node that makes a file; a signed URL of it."""
    made = definitions.node("core.file", parameters={"name": "a", "text": text})
    run = site.rest.run(definitions.workflow(made))
    assert run["status"] == "succeeded", run
    artifact = run["artifacts"][0]["resourceId"]
    url: str = site.rest.post(f"artifacts/{artifact}", wanted=200)["url"]
    return url


def cursor_of(site: System) -> str:
    cursor: str = site.rest.get("runs", limit=1)["nextCursor"]
    return cursor


def sessions(site: System) -> Any:
    return [one.get("sessionId") for one in site.rest.online()]


def test_what_the_earlier_secret_signed_is_good_until_it_is_taken_away(
    site: System, pool: ForeignPool
) -> None:
    url, _ = file_of(site, "before"), file_of(site, "another")
    cursor = cursor_of(site)
    changed, kept = (put_pool(site, pool, secret="between us") for _ in range(2))
    runs = [site.rest.submit(workflow(node(changed))) for _ in range(2)]
    first, second = pool.next(), pool.next(1)
    assert first.start().status_code == second.start().status_code == 200
    session = sessions(site)

    restart(site, f"{NEXT}\n{SECRET}")
    assert sessions(site) == session, "the worker resumed with the token that it had"
    assert httpx.get(url).text == "before"
    assert site.rest.get("runs", limit=1, cursor=cursor)["items"]
    assert first.succeed().status_code == 200
    ended = {first.envelope["runId"]}
    assert [site.rest.finished(run)["status"] for run in runs if run in ended] == ["succeeded"]
    put_pool(site, pool, changed)  # sealed anew
    site.rest.submit(workflow(node(kept)))
    third = pool.next(2)
    assert third.headers[HEADER] == "between us", "opened with the earlier secret"
    assert third.succeed().status_code == 200
    new_url, new_cursor = file_of(site, "after"), cursor_of(site)

    restart(site, NEXT)
    assert httpx.get(url).status_code == 401
    assert httpx.get(new_url).text == "after"
    wrong = site.rest.http.get("/api/v1/runs", params={"limit": 1, "cursor": cursor})
    assert wrong.status_code == 400
    assert site.rest.get("runs", limit=1, cursor=new_cursor)["items"]
    assert second.succeed().status_code == 401
    site.rest.submit(workflow(node(changed)))
    fourth = pool.next(3)
    assert fourth.headers[HEADER] == "between us"
    assert fourth.succeed().status_code == 200

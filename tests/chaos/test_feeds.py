"""Readers of event streams stay on the node that they reached, whoever owns the shard: each sees every event once, in
order, and a node asks the owner for one stream for all of them."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.chaos.test_nodes import Nodes
from tests.definitions import link, node, workflow
from tests.processes.postgres import ask, postgres_server
from tests.processes.process import Process
from tests.processes.rest import TOKEN
from tests.processes.system import System
from tests.processes.waiting import until

READERS = 50
OWNER = (
    "SELECT json_build_array(l.shard, n.url) FROM astraflow.lanes AS l JOIN astraflow.shards AS s USING (shard) "
    "JOIN astraflow.nodes AS n ON n.node_id = s.owner WHERE l.tenant = '{tenant}' AND l.lane = {lane}"
)
WAITS = """
import os, time

def main(path):
    while not os.path.exists(path):
        time.sleep(0.02)
    return 1
"""


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[Nodes]:
    with postgres_server() as url:
        environ = {"ASTRA_SCHEDULER_SEVERAL_LANES": "true"}
        system = System(tmp_path, heartbeat_ms=None, database_url=url, environ=environ)
        made = Nodes(system)
        try:
            made.start()
            yield made
        finally:
            made.close()
            system.close()


def _owner_of(nodes: Nodes, tenant: str, lane: int = 0) -> int:
    """The number of the node that owns a lane."""
    query = OWNER.format(tenant=tenant, lane=lane)
    found = until(lambda: ask(nodes.system.database_url or "", query), "an owner")
    _, url = json.loads(found)
    return [nodes.url(0), nodes.url(1)].index(url)


class Reader:
    """A stream that is read in a thread of its own, as it comes."""

    def __init__(self, url: str, path: str, token: str, last_id: str = "") -> None:
        self.ids: list[str] = []
        self.data: list[dict[str, Any]] = []
        self.status = 0
        self.has_ended = False
        headers = {"authorization": f"Bearer {token}"}
        if last_id:
            headers["last-event-id"] = last_id
        self._http = httpx.Client(base_url=url, headers=headers, timeout=60)
        self._path = path
        self._response: httpx.Response | None = None
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        try:
            with self._http.stream("GET", self._path) as response:
                self._response = response
                self.status = response.status_code
                last = ""
                for line in response.iter_lines():
                    if line.startswith("id:"):
                        last = line[3:].strip()
                    if line.startswith("data:") and last:
                        self.data.append(json.loads(line[5:]))
                        self.ids.append(last)
                        last = ""
        except (httpx.HTTPError, httpx.StreamError, OSError, ValueError, AttributeError):
            pass
        self.has_ended = True

    def close(self) -> None:
        self._http.close()


@contextmanager
def reading(*readers: Reader) -> Iterator[None]:
    try:
        yield
    finally:
        for reader in readers:
            reader.close()


def _chain(length: int, first: dict[str, Any]) -> dict[str, Any]:
    """A node that waits, and a chain behind it."""
    rest = [node("core.noop") for _ in range(length)]
    steps = [node("core.python", parameters={"code": WAITS, "inputs": first}), *rest]
    edges = [link(one, other) for one, other in pairwise(steps)]
    return workflow(*steps, edges=edges)


def _numbered(reader: Reader) -> list[int]:
    return [int(one) for one in reader.ids]


def _feeds_at(nodes: Nodes, number: int) -> float:
    """How many internal streams other nodes have open at this one."""
    said = nodes.at(number).http.get("/metrics").text
    lines = [one for one in said.splitlines() if one.startswith("astraflow_node_feeds ")]
    return float(lines[0].split()[1])


@pytest.mark.timeout(300)
@pytest.mark.parametrize("end", ["kill", "stop", "freeze"])
def test_readers_of_the_other_node_see_each_event_once_while_the_owner_changes(
    nodes: Nodes, end: str
) -> None:
    tenant = "acme"
    owner = _owner_of(nodes, tenant)
    other = 1 - owner
    nodes.start_worker(tenant, other, owner)
    rest = nodes.at(other, tenant)
    until(lambda: len(rest.online()) == 1, "the worker")
    gates = [nodes.system.folder / name for name in ("first", "second")]
    runs = [rest.submit(_chain(20, {"path": str(gate)})) for gate in gates]
    token, url = nodes.tokens[tenant], nodes.url(other)
    of_runs = [Reader(url, f"/api/v1/events?runId={run}", token) for run in runs]
    of_tenant = Reader(url, "/api/v1/events?lastEventId=0", token)
    mixed = Reader(url, f"/api/v1/stream?runs={','.join(runs)}&lastEventId=0", token)
    at_owner = Reader(nodes.url(owner), f"/api/v1/events?runId={runs[1]}", token)
    with reading(*of_runs, of_tenant, mixed, at_owner):
        until(lambda: all(len(one.ids) >= 4 for one in of_runs), "the starts of both runs")
        until(lambda: len(at_owner.ids) >= 4, "the stream at the owner")
        assert _feeds_at(nodes, owner) == 1
        gates[0].touch()  # this run goes on while the owner ends
        gone: Process = nodes.nodes[owner]
        if end == "kill":
            gone.kill()
        elif end == "stop":
            assert gone.stop() == 0
        if end == "freeze":
            with gone.frozen():
                until(lambda: _owner_of(nodes, tenant) == other, "the next owner")
                gates[1].touch()
                until(lambda: all(one.has_ended for one in of_runs), "the ends of the streams")
            # It is not the owner any more: its reader is told what the next one has committed.
            until(lambda: at_owner.has_ended, "the end of the stream at the former owner")
            assert at_owner.data == of_runs[1].data
        else:
            gates[1].touch()
            until(lambda: all(one.has_ended for one in of_runs), "the ends of the streams")
        for run, reader in zip(runs, of_runs, strict=True):
            again = Reader(url, f"/api/v1/events?runId={run}", token)
            until(lambda again=again: again.has_ended, "the run once more")  # type: ignore[misc]
            assert reader.data == again.data
            assert _numbered(reader) == list(range(1, len(reader.ids) + 1))
            assert reader.data[-1]["data"]["status"] == "succeeded"
        ended = [{"runId": run, "status": "succeeded"} for run in runs]
        until(
            lambda: all(one in [e["data"] for e in of_tenant.data] for one in ended),
            "the ends of the runs in the stream of the tenant",
        )
        assert not of_tenant.has_ended
        assert not mixed.has_ended
        assert _numbered(of_tenant) == list(range(1, len(of_tenant.ids) + 1))
        _check_mixed(mixed, runs, [len(one.ids) for one in of_runs])


def _check_mixed(mixed: Reader, runs: list[str], counts: list[int]) -> None:
    def events() -> list[dict[str, Any]]:
        return [event for batch in mixed.data for event in batch["events"]]

    for run, count in zip(runs, counts, strict=True):
        until(
            lambda run=run, count=count: (  # type: ignore[misc]
                len([one for one in events() if one.get("runId") == run]) >= count
            ),
            "the run in the mixed stream",
        )
        seen = [one["id"] for one in events() if one.get("runId") == run]
        assert seen == list(range(1, count + 1))
    of_tenant = [one["id"] for one in events() if "runId" not in one]
    assert of_tenant == list(range(1, len(of_tenant) + 1))


@pytest.mark.timeout(240)
def test_fifty_readers_of_the_other_node_cost_the_owner_one_stream(nodes: Nodes) -> None:
    tenant = "globex"
    owner = _owner_of(nodes, tenant)
    rest = nodes.at(1 - owner, tenant)
    runs = [rest.submit(workflow(node("core.noop"))) for _ in range(5)]
    url, token = nodes.url(1 - owner), nodes.tokens[tenant]
    paths = ["/api/v1/events?lastEventId=0", *(f"/api/v1/events?runId={run}" for run in runs)]
    readers = [Reader(url, paths[number % len(paths)], token) for number in range(READERS)]
    with reading(*readers):
        until(lambda: all(one.ids for one in readers), "all streams")
        assert _feeds_at(nodes, owner) == 1
        assert _feeds_at(nodes, 1 - owner) == 0
        said = nodes.at(owner).http.get("/metrics").text
        mine = [one for one in said.splitlines() if one.startswith("astraflow_sse_readers{")]
        assert not any(f'tenant="{tenant}"' in one and not one.endswith(" 0.0") for one in mine)
        for run in runs:
            rest.http.post(f"/api/v1/runs/{run}/cancel").raise_for_status()
        of_runs = [one for one in readers if "runId" in one._path]
        until(lambda: all(one.has_ended for one in of_runs), "the ends of the streams")
        for reader in of_runs:
            assert _numbered(reader) == list(range(1, len(reader.ids) + 1))
            assert reader.data[-1]["data"]["status"] == "cancelled"
    until(lambda: _feeds_at(nodes, owner) == 0, "the end of a stream that nobody needs")


@pytest.mark.timeout(240)
def test_a_stream_at_the_other_node_is_refused_and_ended_as_at_the_owner(nodes: Nodes) -> None:
    tenant, stranger = "acme", "globex"
    owner = _owner_of(nodes, tenant)
    run_id = nodes.at(owner, tenant).submit(workflow(node("core.noop")))
    other = nodes.at(1 - owner, tenant).http
    for http in (nodes.at(owner, tenant).http, other):
        for path, status in (
            ("/api/v1/events?runId=nope", 404),
            (f"/api/v1/events?runId={run_id}&lastEventId=999", 400),
            ("/api/v1/events?lastEventId=99999", 400),
            ("/api/v1/stream?lastEventId=99999", 400),
            ("/api/v1/stream?runs=a&nonsense=1", 400),
        ):
            assert http.get(path).status_code == status, path
        assert http.get("/api/v1/events", headers={"authorization": "Bearer x"}).status_code == 401
    strangers = nodes.at(1 - owner, stranger).http
    assert strangers.get(f"/api/v1/events?runId={run_id}").status_code == 404
    made = nodes.at(owner).post(
        "tokens", {"tenant": tenant, "role": "viewer", "ttlSeconds": 3600}, wanted=201
    )
    url = nodes.url(1 - owner)
    reader = Reader(url, f"/api/v1/events?runId={run_id}", made["token"])
    kept = Reader(url, f"/api/v1/events?runId={run_id}", nodes.tokens[tenant])
    with reading(reader, kept):
        until(lambda: reader.ids and kept.ids, "both streams")
        gone = nodes.at(owner, tenant).http.delete(f"/api/v1/tokens/{made['tokenId']}")
        assert gone.status_code == 204, gone.text
        until(lambda: reader.has_ended, "the end of the stream of the revoked token")
        assert not kept.has_ended
        suspended = nodes.at(owner).http.post(f"/api/v1/tenants/{tenant}/suspend")
        assert suspended.status_code == 200, suspended.text
        until(lambda: kept.has_ended, "the end of the stream of the suspended tenant")


@pytest.mark.timeout(240)
def test_nobody_but_a_node_is_told_what_nodes_tell_one_another(nodes: Nodes) -> None:
    for number in (0, 1):
        site, nobody = nodes.at(number).http, httpx.Client(base_url=nodes.url(number))
        with nobody:
            for http in (site, nobody):
                for forged in ({}, {"x-astra-node": "1;00"}, {"x-astra-node": f"x;{TOKEN}"}):
                    for path in ("feed?shard=0", "snapshot?shard=0&tenant=acme&run=a", "loads?x=1"):
                        refused = http.get(f"/internal/v1/{path}", headers=forged)
                        assert refused.status_code == 403, refused.text
                    changed = http.post("/internal/v1/feed/0?shard=0", headers=forged)
                    assert changed.status_code == 403
                # Neither does it help to ask for a grant: that counts beside a hop only.
                asked = http.get("/api/v1/events?runId=a", headers={"x-astra-grant": "1"})
                assert asked.status_code in (401, 404)


def _with_two_lanes(nodes: Nodes, tenant: str) -> None:
    given = nodes.at(0).http.put(f"/api/v1/tenants/{tenant}/lanes", json={"count": 2})
    assert given.status_code == 200, given.text

    def placed() -> bool:
        shown = [nodes.at(one).get(f"tenants/{tenant}/lanes")["lanes"] for one in (0, 1)]
        return all(
            len(one) == 2 and all(lane["node"] and lane["state"] == "open" for lane in one)
            for one in shown
        )

    until(placed, "owners of both lanes")


@pytest.mark.timeout(300)
def test_the_stream_of_a_tenant_with_several_lanes_has_the_events_of_all(nodes: Nodes) -> None:
    tenant = "initech"
    rest = nodes.at(0, tenant)
    first = rest.submit(workflow(node("core.noop")))
    plain = Reader(nodes.url(0), "/api/v1/events?lastEventId=0", nodes.tokens[tenant])
    mixed = Reader(nodes.url(1), "/api/v1/stream?lastEventId=0", nodes.tokens[tenant])
    until(lambda: plain.ids and len(mixed.ids) >= 2, "the stream of one lane")
    assert all(one.isdigit() for one in (*plain.ids, *mixed.ids))
    _with_two_lanes(nodes, tenant)
    until(lambda: plain.has_ended and mixed.has_ended, "the ends of streams of one lane")
    token = nodes.tokens[tenant]
    readers = [
        Reader(nodes.url(number), "/api/v1/events", token, plain.ids[-1]) for number in (0, 1)
    ]
    both = [Reader(nodes.url(number), "/api/v1/stream", token, mixed.ids[-1]) for number in (0, 1)]
    with reading(*readers, *both):
        runs = _in_both_lanes(nodes, rest, tenant)
        runs |= {_submit(rest, f"then-{number}") for number in range(12)}
        for reader in readers:
            until(lambda reader=reader: runs <= _runs_of(reader.data), "all runs")  # type: ignore[misc]
            assert {one.get("lane", 0) for one in reader.data} == {0, 1}
            for lane in (0, 1):
                numbers = [one["id"] for one in reader.data if one.get("lane", 0) == lane]
                assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
                assert numbers[0] == (1 if lane else int(plain.ids[-1]) + 1)
        for reader in both:
            until(
                lambda reader=reader: (  # type: ignore[misc]
                    runs <= _runs_of([e for b in reader.data for e in b["events"]])
                ),
                "all runs in the mixed stream",
            )
        assert first not in _runs_of(readers[0].data)
        # From any position on, at any node, the rest comes once.
        whole = {(one.get("lane", 0), one["id"]) for one in readers[0].data}
        for number, at in ((0, 3), (1, 7)):
            again = Reader(nodes.url(number), "/api/v1/events", token, readers[0].ids[at])
            rest_of = {(one.get("lane", 0), one["id"]) for one in readers[0].data[at + 1 :]}
            with reading(again):
                until(lambda again=again, rest_of=rest_of: len(again.ids) >= len(rest_of), "it")  # type: ignore[misc]
                assert {(one.get("lane", 0), one["id"]) for one in again.data} >= rest_of
                seen = {(one.get("lane", 0), one["id"]) for one in readers[0].data[: at + 1]}
                assert not seen & {(one.get("lane", 0), one["id"]) for one in again.data}
        assert whole
        for run in runs:
            follow = Reader(nodes.url(1), f"/api/v1/stream?runs={run}", token)
            with reading(follow):
                until(lambda follow=follow: len(follow.ids) >= 2, "the run")  # type: ignore[misc]
                rest.http.post(f"/api/v1/runs/{run}/cancel").raise_for_status()
                until(
                    lambda follow=follow, run=run: any(  # type: ignore[misc]
                        one.get("runId") == run and one["data"].get("status") == "cancelled"
                        for batch in follow.data
                        for one in batch["events"]
                    ),
                    "the end of a run, whatever its lane",
                )


def _pause() -> dict[str, Any]:
    """A run that needs no worker: one that needs a package goes home while no worker of another lane has it."""
    return workflow(node("core.wait", wait={"seconds": 3600}))


@pytest.mark.timeout(300)
def test_orders_about_many_runs_are_carried_out_in_all_lanes(nodes: Nodes) -> None:
    tenant = "umbrella"
    _with_two_lanes(nodes, tenant)
    rest = nodes.at(1, tenant)
    runs = _in_both_lanes(nodes, rest, tenant)
    for number in (0, 1):
        listed = nodes.at(number, tenant).get("runs", limit=50)["items"]
        assert {one["runId"] for one in listed} == runs
        assert {one["status"] for one in listed} == {"running"}
        for run in runs:
            assert nodes.at(number, tenant).get(f"runs/{run}")["status"] == "running"
    done = rest.http.post("/api/v1/runs/cancel", json={"limit": 50})
    assert done.status_code == 200, done.text
    assert {one["runId"] for one in done.json()["items"]} == runs
    assert not [one for one in done.json()["items"] if "code" in one], done.text
    for run in runs:
        assert rest.finished(run)["status"] == "cancelled"
    again = rest.http.post(
        "/api/v1/runs/rerun", json={"status": "cancelled", "mode": "all", "limit": 50}
    )
    assert again.status_code == 200, again.text
    assert not [one for one in again.json()["items"] if "code" in one], again.text
    made = {one["runId"]: one["newRunId"] for one in again.json()["items"]}
    assert set(made) == runs
    query = f"SELECT json_object_agg(run_id, lane) FROM astraflow.runs WHERE tenant = '{tenant}'"
    lanes = json.loads(ask(nodes.system.database_url or "", query))
    assert {run: lanes[run] for run in made} == {run: lanes[new] for run, new in made.items()}
    left = {one["runId"] for one in rest.get("runs", status="running", limit=50)["items"]}
    assert left == set(made.values())
    snapshots = [
        Reader(
            nodes.url(n),
            f"/api/v1/stream?runs={','.join(left)}&snapshot=true",
            nodes.tokens[tenant],
        )
        for n in (0, 1)
    ]
    with reading(*snapshots):
        for reader in snapshots:
            until(lambda reader=reader: len(_snapshots(reader)) == len(left), "all snapshots")  # type: ignore[misc]
            for shown in _snapshots(reader):
                (waiting,) = shown["nodes"]
                assert waiting["waitingFor"]["kind"] == "time", shown


def _snapshots(reader: Reader) -> list[dict[str, Any]]:
    events = [one for batch in reader.data for one in batch["events"]]
    return [one["data"] for one in events if one["type"] == "run.snapshot"]


def _submit(rest: Any, key: str) -> str:
    made = rest.http.post(
        "/api/v1/runs",
        json={"workflow": _pause()},
        headers={"idempotency-key": key},
    )
    assert made.status_code == 202, made.text
    return str(made.json()["runId"])


def _in_both_lanes(nodes: Nodes, rest: Any, tenant: str) -> set[str]:
    """Runs of which some are in each lane. They go home until a worker has told the new lane of its packages."""
    query = f"SELECT json_agg(DISTINCT lane) FROM astraflow.runs WHERE tenant = '{tenant}' AND finished_at IS NULL"
    runs: set[str] = set()

    def is_spread() -> bool:
        runs.add(_submit(rest, f"key-{len(runs)}"))
        found: list[int] = json.loads(ask(nodes.system.database_url or "", query))
        return found == [0, 1]

    until(is_spread, "runs in both lanes")
    return runs


def _runs_of(events: list[dict[str, Any]]) -> set[str]:
    return {
        one["data"]["runId"]
        for one in events
        if one["type"] == "run.status" and "runId" in one["data"]
    }

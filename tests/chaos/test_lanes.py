"""A tenant with two lanes on two nodes: real schedulers, real workers, one PostgreSQL."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from astraflow.core.cluster.lanes import lane_of_key
from tests.chaos.test_nodes import WAITS
from tests.definitions import node, workflow
from tests.e2e.test_versions import SIX, clashing, write_package
from tests.processes.command_line import astra
from tests.processes.postgres import ask, postgres_server
from tests.processes.rest import TOKEN, Rest
from tests.processes.system import SECRET, System, port_of
from tests.processes.waiting import until

LANES_OF_RUNS = (
    "SELECT coalesce(json_agg(json_build_array(run_id, lane)), '[]') FROM astraflow.runs"
)
URLS = (
    "SELECT coalesce(json_agg(json_build_array(l.lane, n.url)), '[]') FROM astraflow.lanes AS l "
    "JOIN astraflow.shards AS s USING (shard) JOIN astraflow.nodes AS n ON n.node_id = s.owner "
    "WHERE l.tenant = 'default' AND s.leased_until > now()"
)
KEYED = """
import os, time

def main(folder, name):
    path = os.path.join(folder, "held")
    os.mkdir(path)  # fails if another one holds the key
    time.sleep(0.2)
    os.rmdir(path)
    return name
"""


class Site:
    """Two nodes, the tenant `default` with two lanes that different nodes own, and workers that know both."""

    def __init__(self, system: System) -> None:
        self.system = system
        self.nodes = [system.scheduler, system.new_scheduler()]
        self._clients: list[Rest] = []

    def start(self, workers: int = 1, slots: int = 4) -> None:
        self.system.start()
        self.nodes[1].start()
        until(lambda: self.at(1).status("/readyz") == 200, "the second node")
        self.set_lanes(2)
        until(lambda: len(set(self.owners().values())) == 2, "a node for each lane", 120)
        for number in range(workers):
            self.start_worker(number, slots)
        until(lambda: len(self.at(0).online()) == workers, "the workers")
        until(lambda: self._takes_runs(1), "a worker of the further lane: runs go home until then")

    def _takes_runs(self, lane: int) -> bool:
        made = _submit(self.at(0), workflow(node("core.noop")), key_of(lane, str(uuid4())))
        return self.lane_of_runs()[made] == lane

    def at(self, number: int) -> Rest:
        rest = Rest(self.url(number))
        self._clients.append(rest)
        return rest

    def url(self, number: int) -> str:
        return f"http://127.0.0.1:{port_of(self.nodes[number])}"

    def set_lanes(self, count: int) -> None:
        answer = self.at(0).http.put("/api/v1/tenants/default/lanes", json={"count": count})
        assert answer.status_code == 200, answer.text
        until(lambda: "opening" not in self.states(), "lanes that are open")

    def lanes(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.at(0).get("tenants/default/lanes")["lanes"]
        return found

    def states(self) -> list[str]:
        return [one["state"] for one in self.lanes()]

    def owners(self) -> dict[int, str]:
        """Where the owner of each lane is reached."""
        return dict(json.loads(ask(self.system.database_url or "", URLS)))

    def start_worker(self, number: int, slots: int) -> None:
        urls = [f"ws://127.0.0.1:{port_of(one)}/ws/worker" for one in self.nodes]
        settings = {"ASTRA_WORKER_CONCURRENCY_MAX_PARALLEL": str(slots)}
        self.system.new_worker(f"lanes-{number}", url=",".join(urls), **settings).start()

    def node_of(self, lane: int) -> int:
        """The number of the node that owns a lane."""
        urls = [self.url(number) for number in range(len(self.nodes))]
        return urls.index(self.owners()[lane])

    def lane_of_runs(self) -> dict[str, int]:
        return dict(json.loads(ask(self.system.database_url or "", LANES_OF_RUNS)))

    def close(self) -> None:
        for client in self._clients:
            client.close()


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with postgres_server() as url:
        system = System(
            tmp_path,
            heartbeat_ms=None,
            database_url=url,
            environ={"ASTRA_SCHEDULER_SEVERAL_LANES": "true"},
        )
        made = Site(system)
        try:
            yield made
        finally:
            made.close()
            system.close()


def _submit(rest: Rest, definition: dict[str, Any], key: str | None = None) -> str:
    headers = {} if key is None else {"Idempotency-Key": key}
    answer = rest.http.post("/api/v1/runs", json={"workflow": definition}, headers=headers)
    assert answer.status_code in (200, 201, 202), answer.text
    return str(answer.json()["runId"])


def key_of(lane: int, name: str) -> str:
    """An idempotency key that belongs to a lane."""
    return next(key for at in count() if lane_of_key(key := f"{name}-{at}", [0, 1]) == lane)


def _waiting(folder: Path, name: str) -> dict[str, Any]:
    inputs = {"folder": str(folder), "name": name}
    return workflow(node("core.python", parameters={"code": WAITS, "inputs": inputs}))


def _all_in(site: Site, *, lane: int) -> list[str]:
    """Some new runs, if all of them went to one lane."""
    made = [_submit(site.at(number % 2), workflow(node("core.noop"))) for number in range(10)]
    lanes = site.lane_of_runs()
    return made if {lanes[run_id] for run_id in made} == {lane} else []


@pytest.mark.timeout(300)
def test_the_runs_of_a_tenant_are_decided_by_both_nodes(site: Site) -> None:
    site.start()
    made = [_submit(site.at(number % 2), workflow(node("core.noop"))) for number in range(40)]
    for number, run_id in enumerate(made):
        assert site.at(number % 2).finished(run_id)["status"] == "succeeded"
    lanes = site.lane_of_runs()
    assert set(lanes.values()) == {0, 1}, Counter(lanes.values())
    for number in (0, 1):
        listed = site.at(number).get("runs", limit=100)["items"]
        assert {one["runId"] for one in listed} >= set(made)


@pytest.mark.timeout(300)
def test_a_large_run_goes_to_the_lane_of_its_key(site: Site) -> None:
    """Larger than what a node keeps of other requests."""
    site.start()
    text = "large " * 100_000
    large = workflow(*(node("core.echo", parameters={"value": text}) for _ in range(4)))
    for number in (0, 1):
        for lane in (0, 1):
            made = _submit(site.at(number), large, key_of(lane, f"large-{number}"))
            assert site.lane_of_runs()[made] == lane
            assert site.at(number).finished(made)["status"] == "succeeded"


@pytest.mark.timeout(300)
def test_a_run_gets_the_version_that_was_active_when_it_was_submitted(
    site: Site, tmp_path: Path
) -> None:
    """Whichever lane decides it, and however soon it comes."""
    site.start()
    home = site.at(site.node_of(0))
    for version in SIX:
        home.publish(write_package(tmp_path / version, version))
        assert home.run(clashing(version))["status"] == "succeeded"  # the worker has it now
    decided: Counter[int] = Counter()
    for version in (*SIX, *SIX, *SIX):
        answer = home.http.put("/api/v1/packages/clash/active", json={"version": version})
        assert answer.status_code == 200, answer.text
        made = {
            lane: _submit(home, clashing(None), key_of(lane, f"{version}-{uuid4()}"))
            for lane in (1, 0)
        }
        for lane, run_id in made.items():
            run = home.finished(run_id)
            assert [one["result"]["package"] for one in run["nodes"]] == [version], lane
        decided.update(site.lane_of_runs()[run_id] for run_id in made.values())
    assert decided[1] > 0, "a further lane decides some of them"


@pytest.mark.timeout(300)
def test_one_key_makes_one_run_and_one_holder(site: Site, tmp_path: Path) -> None:
    site.start(workers=2)

    def same(number: int) -> list[str]:
        definition = workflow(node("core.noop"))
        with ThreadPoolExecutor(6) as pool:
            asked = [
                pool.submit(_submit, site.at(one % 2), definition, f"same-{number}")
                for one in range(6)
            ]
            return [one.result() for one in asked]

    for number in range(8):
        assert len(set(same(number))) == 1
    inputs = {"folder": str(tmp_path), "name": "one"}
    keyed = node("core.python", parameters={"code": KEYED, "inputs": inputs}, concurrencyKey="k")
    made = [
        _submit(site.at(lane), workflow(keyed), key_of(lane, f"keyed-{number}"))
        for number in range(4)
        for lane in (0, 1)
    ]
    for run_id in made:
        assert site.at(0).finished(run_id)["status"] == "succeeded"
    lanes = site.lane_of_runs()
    assert {lanes[run_id] for run_id in made} == {0}


@pytest.mark.timeout(300)
def test_one_lane_uses_all_slots_while_the_other_has_nothing_to_do(
    site: Site, tmp_path: Path
) -> None:
    site.start(workers=1, slots=4)
    for lane in (1, 0):
        folder = tmp_path / f"of-{lane}"
        folder.mkdir()
        keys = [key_of(lane, f"lane-{lane}-{number}") for number in range(4)]
        made = [_submit(site.at(0), _waiting(folder, key), key) for key in keys]
        until(lambda folder=folder: len(list(folder.iterdir())) == 4, "four that run at once")  # type: ignore[misc]
        lanes = site.lane_of_runs()
        assert {lanes[run_id] for run_id in made} == {lane}
        for number in (0, 1):
            use = site.at(number).get("tenants/default")["use"]
            assert (use["runs"], use["workers"]) == (4, 1), "of all lanes; one worker is one"
        (folder / "go").touch()
        for run_id in made:
            assert site.at(1).finished(run_id)["status"] == "succeeded"


@pytest.mark.timeout(300)
@pytest.mark.parametrize("killed", [0, 1])
def test_a_killed_node_costs_neither_lane_an_attempt(
    site: Site, tmp_path: Path, killed: int
) -> None:
    site.start(workers=2, slots=4)
    keys = [key_of(lane, f"kept-{lane}-{number}") for lane in (0, 1) for number in range(3)]
    made = [_submit(site.at(0), _waiting(tmp_path, key), key) for key in keys]
    until(lambda: len(list(tmp_path.glob("kept-*"))) == 6, "attempts in both lanes")
    assert set(site.lane_of_runs().values()) == {0, 1}
    victim = site.node_of(killed)
    site.nodes[victim].kill()
    left = site.at(1 - victim)
    until(lambda: set(site.owners().values()) == {site.url(1 - victim)}, "one owner for both", 60)
    (tmp_path / "go").touch()
    for run_id in made:
        run = left.finished(run_id)
        assert run["status"] == "succeeded", run
    assert all(file.name.endswith("-1") for file in tmp_path.glob("kept-*")), "the first attempts"
    fresh = [_submit(left, workflow(node("core.noop")), key_of(lane, "fresh")) for lane in (0, 1)]
    for run_id in fresh:
        assert left.finished(run_id)["status"] == "succeeded"


@pytest.mark.timeout(300)
def test_a_lane_that_closes_ends_its_own_runs_and_gets_no_new_ones(
    site: Site, tmp_path: Path
) -> None:
    site.start()
    key = key_of(1, "own")
    definition = _waiting(tmp_path, "own")
    own = _submit(site.at(0), definition, key)
    until(lambda: list(tmp_path.glob("own-*")), "the attempt in the lane")
    site.set_lanes(1)
    assert site.states() == ["open", "closing"]
    late = until(lambda: _all_in(site, lane=0), "nodes that have looked at the lanes")
    for run_id in late:
        assert site.at(0).finished(run_id)["status"] == "succeeded"
    assert site.lane_of_runs()[own] == 1
    assert _submit(site.at(1), definition, key) == own, "the key is still known"
    (tmp_path / "go").touch()
    assert site.at(1).finished(own)["status"] == "succeeded"
    site.set_lanes(2)
    assert site.states() == ["open", "open"]
    again = site.at(0).http.post(f"/api/v1/runs/{own}/rerun", json={})
    assert again.status_code in (200, 201, 202), again.text
    assert site.lane_of_runs()[again.json()["runId"]] == 1, "a re-run stays in the lane of its run"


@pytest.mark.timeout(300)
def test_a_large_result_of_a_further_lane_is_stored_and_read(site: Site) -> None:
    """It is uploaded to the lane by whichever node is reached, and larger than what a node keeps to send it again."""
    site.start()
    write = {"code": "def main(): return {'text': 'lane ' * 600_000}"}
    read = {"code": "def main(text): return [len(text), len(set(text.split()))]"}
    make, measure = (
        node("core.python", "make", parameters=write),
        node("core.python", "measure", parameters=read),
    )
    edge = {
        "source": {"node": make["id"], "port": "result"},
        "target": {"node": measure["id"], "port": "inputs"},
    }
    for number in (0, 1):
        key = key_of(1, f"large-{number}")
        made = _submit(site.at(number), workflow(make, measure, edges=[edge]), key)
        run = site.at(number).finished(made)
        assert run["status"] == "succeeded", run
        assert site.lane_of_runs()[made] == 1
        assert run["nodes"][1]["result"]["result"] == [3_000_000, 1]


@pytest.mark.timeout(300)
def test_lanes_are_refused_where_they_cannot_be(site: Site) -> None:
    site.start()
    http = site.at(1).http
    for body, status in (
        ({"count": 17}, 409),
        ({"count": 0}, 400),
        ({"count": 65}, 400),
        ({"count": "2"}, 400),
        ({}, 400),
        ({"count": 2, "more": 1}, 400),
    ):
        answer = http.put("/api/v1/tenants/default/lanes", json=body)
        assert answer.status_code == status, (body, answer.text)
    assert http.get("/api/v1/tenants/nobody/lanes").status_code == 404


@pytest.mark.timeout(300)
def test_lanes_are_set_and_shown_by_the_command_line(site: Site, tmp_path: Path) -> None:
    site.start()
    environ = {"ASTRA_SERVER": site.url(1), "ASTRA_TOKEN": TOKEN}
    done = astra("tenants", "lanes", "default", "3", cwd=tmp_path, **environ)
    assert done.code == 0, done.err
    until(lambda: site.states() == ["open"] * 3, "three lanes that are open")
    done = astra("tenants", "lanes", "default", "--json", cwd=tmp_path, **environ)
    shown = done.json["lanes"]
    assert [(one["lane"], one["state"]) for one in shown] == [(0, "open"), (1, "open"), (2, "open")]
    assert len({one["shard"] for one in shown}) == 3
    store = {
        "ASTRA_SCHEDULER_DATABASE_URL": site.system.database_url or "",
        "ASTRA_SCHEDULER_SECRET": SECRET,
    }
    served = astra("db", "nodes", "--json", cwd=tmp_path, **store).json["nodes"]
    names = sorted(name for one in served for name in one["tenants"])
    assert names == ["default", "default/1", "default/2"]
    done = astra("tenants", "lanes", "default", "17", cwd=tmp_path, **environ)
    assert done.code != 0 and "not enough" in done.err, done.err

"""Two nodes on one PostgreSQL, and a tenant whose work ends every node that serves it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from astraflow.chaos import VARIABLE
from astraflow.core.cluster.parking import PARKED_FROM
from astraflow.core.engine.placing import PARKED
from tests.chaos.test_nodes import Nodes
from tests.definitions import node, workflow
from tests.processes.command_line import Done, astra
from tests.processes.postgres import ask, postgres_server
from tests.processes.system import SECRET, System
from tests.processes.waiting import until

POISON, OTHER = "acme", "globex"
BODY = {"workflow": workflow(node("core.noop"))}
KILLS = 6


class ParkedSite:
    """Two nodes that a supervisor starts again when they end, with a worker of a tenant that does no harm."""

    def __init__(self, nodes: Nodes, folder: Path) -> None:
        self.nodes = nodes
        self.url = nodes.system.database_url or ""
        self.ends = 0
        self._folder = folder
        self.shard = int(
            self._asked(f"SELECT shard FROM astraflow.lanes WHERE tenant = '{POISON}'")
        )

    def _asked(self, question: str) -> Any:
        return ask(self.url, question)

    def losses(self) -> dict[int, int]:
        """By shard, of those that have some."""
        found = self._asked(
            "SELECT json_object_agg(shard, cardinality(lost_at)) FROM astraflow.shards WHERE lost_at <> '{}'"
        )
        return {int(shard): int(count) for shard, count in json.loads(found or "{}").items()}

    def restart(self, **environ: str) -> None:
        """Both nodes at once, as after a loss of power."""
        for process in self.nodes.nodes:
            if process.is_alive():
                process.kill()
        for process in self.nodes.nodes:
            process.start(**environ)

    def supervise(self, losses: int, **environ: str) -> None:
        """Start nodes again that have ended by themselves, until the shard has so many losses and both are ready."""

        def is_over() -> bool:
            for process in self.nodes.nodes:
                if not process.is_alive():
                    assert process.code == 1, process.said()[-2000:]
                    self.ends += 1
                    process.start(**environ)
            if self.losses().get(self.shard, 0) < losses:
                return False
            return all(self.nodes.at(one).status("/readyz") == 200 for one in (0, 1))

        until(is_over, f"{losses} losses of shard {self.shard}", within_s=200.0)

    def until_waits(self, run_id: str) -> None:
        def waits() -> bool:
            response = self.nodes.at(0, POISON).http.get(f"/api/v1/runs/{run_id}")
            if response.status_code != 200:
                return False
            (shown,) = response.json()["nodes"]
            return (shown.get("waitingFor") or {}).get("detail") == PARKED

        until(waits, "a run that says that its shard is parked")

    def check_others(self) -> None:
        """The others work at both nodes."""
        for one in (0, 1):
            rest = self.nodes.at(one, OTHER)
            accepted = rest.ask("POST", "/api/v1/runs", json=BODY)
            assert accepted.status_code == 202, accepted.text
            assert rest.finished(accepted.json()["runId"])["status"] == "succeeded"

    def command(self, *words: str) -> Done:
        said = ("db", *words, "--database-url", self.url, "--json")
        return astra(*said, cwd=self._folder, ASTRA_SCHEDULER_SECRET=SECRET)


@pytest.fixture
def site(tmp_path: Path) -> Iterator[ParkedSite]:
    with postgres_server() as url:
        environ = {"ASTRA_SCHEDULER_NODE_WATCHDOG_SECONDS": "2"}
        system = System(tmp_path, heartbeat_ms=None, database_url=url, environ=environ)
        nodes = Nodes(system)
        try:
            nodes.start()
            nodes.start_worker(OTHER, 0, 1)
            yield ParkedSite(nodes, tmp_path)
        finally:
            nodes.close()
            system.close()


@pytest.mark.timeout(400)
def test_a_shard_whose_tasks_end_its_nodes_is_parked_and_its_next_owner_lives(
    site: ParkedSite,
) -> None:
    nodes = site.nodes
    waiting = nodes.at(0, POISON).submit(BODY["workflow"])  # it has no worker yet
    poison = {VARIABLE: f"placing/{site.shard}:1:block"}
    site.restart(**poison)
    site.supervise(PARKED_FROM, **poison)
    site.until_waits(waiting)
    site.check_others()
    assert site.losses() == {site.shard: PARKED_FROM}, "no other shard is blamed"
    assert site.ends == PARKED_FROM
    owner = nodes.owner_of(POISON)
    blocked = nodes.nodes[owner].log.read_text() + nodes.nodes[1 - owner].log.read_text()
    assert blocked.count(f"shard {site.shard} blocks the event loop: it is noted") == PARKED_FROM
    assert f"shard {site.shard} is parked" in blocked
    for one in (0, 1):
        assert nodes.at(one).metric('astraflow_shards_parked{state="parked"}') == 1.0
    # What changes something is taken.
    unwanted = nodes.at(0, POISON).submit(BODY["workflow"])
    nodes.at(1, POISON).post(f"runs/{unwanted}/cancel", wanted=200)
    assert nodes.at(0, POISON).finished(unwanted)["status"] == "cancelled"
    (shown,) = site.command("nodes").json["parkedShards"]
    assert (shown["shard"], shown["state"]) == (site.shard, "parked")
    assert shown["tenants"] == [POISON]
    _go_on(site, waiting)


def _go_on(site: ParkedSite, waiting: str) -> None:
    """Whoever owns it next keeps it parked, until somebody says that it is not."""
    nodes = site.nodes
    site.restart()  # what ends the nodes is mended
    nodes.start_worker(POISON, 0, 1)
    until(lambda: nodes.at(0, POISON).ask("GET", "/api/v1/workers").json()["items"], "its worker")
    site.until_waits(waiting)
    assert nodes.at(1, POISON).run_status(waiting) == "queued"
    done = site.command("unpark", str(site.shard))
    assert done.code == 0, done
    assert nodes.at(1, POISON).finished(waiting)["status"] == "succeeded"
    assert nodes.at(0).status("/readyz") == 200
    again = site.command("unpark", str(site.shard))
    assert (again.code, again.json["code"]) == (1, "E.SHARD.NOT_PARKED")
    missing = site.command("unpark", "4711")
    assert missing.json["code"] == "E.SHARD.NOT_PARKED"
    assert "4711" in missing.json["detail"]


@pytest.mark.timeout(300)
def test_a_shard_whose_engines_fail_again_and_again_is_parked(site: ParkedSite) -> None:
    nodes = site.nodes
    waiting = nodes.at(0, POISON).submit(BODY["workflow"])
    poison = {VARIABLE: f"placing/{site.shard}:1:fail"}
    site.restart(**poison)
    site.supervise(PARKED_FROM, **poison)
    site.until_waits(waiting)
    site.check_others()
    assert site.losses() == {site.shard: PARKED_FROM}
    assert site.ends == PARKED_FROM


@pytest.mark.timeout(400)
def test_a_shard_that_ends_nodes_although_it_is_parked_is_withheld(site: ParkedSite) -> None:
    nodes = site.nodes
    waiting = nodes.at(0, POISON).submit(BODY["workflow"])
    poison = {VARIABLE: f"restoring/{site.shard}:1:block"}
    site.restart(**poison)
    site.supervise(PARKED_FROM + 1, **poison)
    site.check_others()
    refused = nodes.at(0, POISON).http.get(f"/api/v1/runs/{waiting}")
    assert refused.status_code == 503
    assert f"shard {site.shard} of the tenant is withheld" in refused.json()["detail"]
    assert site.losses() == {site.shard: PARKED_FROM + 1}
    assert site.command("nodes").json["parkedShards"][0]["state"] == "withheld"
    site.restart()
    assert site.command("unpark", str(site.shard)).code == 0
    nodes.start_worker(POISON, 0, 1)
    until(lambda: nodes.at(1, POISON).status(f"/api/v1/runs/{waiting}") == 200, "its owner")
    assert nodes.at(1, POISON).finished(waiting)["status"] == "succeeded"


@pytest.mark.timeout(300)
def test_a_shard_that_cannot_be_restored_is_withheld_and_the_others_are_served(
    site: ParkedSite,
) -> None:
    nodes = site.nodes
    broken = nodes.at(0, POISON).submit(BODY["workflow"])
    ask(site.url, f"UPDATE astraflow.fact_segments SET body = 'no facts' WHERE run_id = '{broken}'")
    site.restart()
    site.supervise(PARKED_FROM + 1)
    site.check_others()
    assert site.losses() == {site.shard: PARKED_FROM + 1}
    assert site.ends == PARKED_FROM + 1
    ask(site.url, f"DELETE FROM astraflow.fact_segments WHERE run_id = '{broken}'")
    ask(site.url, f"DELETE FROM astraflow.runs WHERE run_id = '{broken}'")
    assert site.command("unpark", str(site.shard)).code == 0
    until(lambda: nodes.at(0, POISON).status("/api/v1/runs") == 200, "its owner")


@pytest.mark.timeout(300)
def test_owners_that_are_killed_again_and_again_park_nothing(site: ParkedSite) -> None:
    nodes = site.nodes
    nodes.start_worker(POISON, 0, 1)
    for _ in range(KILLS):
        owner = nodes.owner_of(POISON)
        nodes.nodes[owner].kill()
        rest = nodes.at(1 - owner, POISON)
        accepted = rest.ask("POST", "/api/v1/runs", json=BODY)
        assert rest.finished(accepted.json()["runId"])["status"] == "succeeded"
        nodes.nodes[owner].start()
        until(lambda owner=owner: nodes.at(owner).status("/readyz") == 200, "it is back")  # type: ignore[misc]
    assert site.losses() == {}
    assert site.command("nodes").json["parkedShards"] == []

"""Which lane a request is sent to first."""

from __future__ import annotations

import base64
import re
from collections import Counter
from random import Random
from typing import TYPE_CHECKING, Any, cast

import msgspec

from astraflow.api.app import ROUTES
from astraflow.api.lane_finder import LaneFinder, right_lane
from astraflow.api.routes import Place, Route
from astraflow.core.cluster.lanes import LaneSeen

if TYPE_CHECKING:
    from astraflow.api.asgi import Scope
    from astraflow.scheduler.cluster_node import ClusterNode
    from astraflow.store.cluster import StoredCluster


class Node:
    """A node that has seen two lanes of every tenant, and how much waits there."""

    def __init__(self) -> None:
        self.loads: dict[int, int] = {}

    def lanes_of(self, tenant: str) -> tuple[LaneSeen, ...]:
        return (LaneSeen(0, 0), LaneSeen(1, 5))

    def loads_of(self, tenant: str) -> dict[int, int]:
        return self.loads


class Cluster:
    """Every stored run and resource is in lane 1. Counts how often it was asked."""

    def __init__(self) -> None:
        self.asked = 0

    async def lane_of_run(self, tenant: str, run_id: str) -> int | None:
        self.asked += 1
        return None if run_id == "gone" else 1

    async def lanes_of_resource(self, tenant: str, resource_id: str) -> list[int]:
        self.asked += 1
        return [1]


def finder(node: Node, cluster: Cluster | None = None) -> LaneFinder:
    stored = cast("StoredCluster", cluster or Cluster())
    return LaneFinder(cast("ClusterNode", node), stored, Random(1))


def scope(method: str, path: str, query: str = "", **headers: str) -> Scope:
    made: dict[str, Any] = {
        "type": "http",
        "method": method,
        "path": path,
        "query_string": query.encode(),
        "headers": [
            (name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()
        ],
    }
    return cast("Scope", made)


async def find(found: LaneFinder, *asked: str, **headers: str) -> int:
    return await found.find("acme", scope(*asked, **headers))


async def test_a_burst_of_runs_is_divided_although_little_was_told() -> None:
    node = Node()
    node.loads = {0: 1, 1: 0}
    found = finder(node)
    sent = Counter([await find(found, "POST", "/api/v1/runs") for _ in range(40)])
    assert abs(sent[0] - sent[1]) <= 2, sent  # one was told of, and one is drawn


async def test_what_was_told_anew_counts_for_what_was_sent() -> None:
    node = Node()
    found = finder(node)
    for _ in range(10):
        await find(found, "POST", "/api/v1/runs")
    node.loads = {0: 100, 1: 3}
    assert {await find(found, "POST", "/api/v1/runs/") for _ in range(20)} == {1}


async def test_a_key_always_goes_one_way_whatever_waits() -> None:
    node = Node()
    found = finder(node)
    for number in range(20):
        node.loads = {number % 2: 1000}
        asked = [
            await find(found, "POST", "/api/v1/runs", idempotency_key=f"k{number}")
            for _ in range(3)
        ]
        assert len(set(asked)) == 1


def filled(route: Route, value: str) -> str:
    """The path of a route with a value for each of its parameters."""
    return re.sub(r"\{\w+\}", value, route.path)


def upload_grant(resource_id: str) -> str:
    body = bytes(32) + msgspec.json.encode({"resource_id": resource_id})
    return base64.urlsafe_b64encode(body).decode().rstrip("=")


async def test_each_route_is_answered_where_its_declaration_says() -> None:
    found = finder(Node())
    for route in ROUTES:
        value = upload_grant("x") if route.place is Place.UPLOAD else "r1"
        path = filled(route, value)
        query = "runId=r1" if "{" not in path and route.place is Place.RUN else ""
        wanted = 0 if route.place in (Place.HOME, Place.HERE) else 1
        if route.place is Place.NEW_RUN:
            continue
        for spelled in (path, f"{path}/", f"/{path}"):
            if route.is_deep and spelled != path:
                continue  # slashes are part of the id
            assert await find(found, route.method, spelled, query) == wanted, route.action


def test_what_names_a_run_or_a_resource_is_answered_in_its_lane() -> None:
    """The places of routes, and of those that come later."""
    by_place = {place: {one.path for one in ROUTES if one.place is place} for place in Place}
    named = {one.path for one in ROUTES if "{runId}" in one.path}
    assert by_place[Place.RUN] == named | {
        "/api/v1/events", "/api/v1/resources", "/api/v1/runs/{first}/compare/{second}",
    }  # fmt: skip
    assert by_place[Place.RESOURCE] == {"/api/v1/resources/{id}", "/api/v1/artifacts/{id}"}
    assert by_place[Place.NEW_RUN] == {"/api/v1/runs"}
    assert by_place[Place.UPLOAD] == {"/api/v1/uploads/{token}"}
    assert by_place[Place.HERE] == {"/healthz", "/readyz", "/metrics"}


async def test_what_names_nothing_that_is_known_goes_home() -> None:
    found = finder(Node())
    for method, path, query in (
        ("GET", "/api/v1/runs/gone", ""),
        ("GET", f"/api/v1/runs/{'x' * 300}", ""),
        ("GET", "/api/v1/runs/a\x00b", ""),
        ("PUT", "/api/v1/runs/r1", ""),
        ("POST", "/api/v1/runs/cancel", ""),
        ("GET", "/api/v1/events", ""),
        ("GET", "/api/v1/events", "runId="),
        ("GET", "/api/v1/events", "runId=gone"),
        ("GET", "/api/v1/resources/", ""),
        ("GET", f"/api/v1/resources/{'x' * 300}", ""),
        ("PUT", "/api/v1/uploads/%", ""),
        ("PUT", "/api/v1/uploads/" + upload_grant("")[:-2], ""),
        ("GET", "/", ""),
        ("GET", "", ""),
    ):
        assert await find(found, method, path, query) == 0, (method, path, query)


async def test_the_lane_of_a_run_is_asked_for_once() -> None:
    cluster = Cluster()
    found = finder(Node(), cluster)
    for _ in range(5):
        await find(found, "GET", "/api/v1/runs/r1")
    assert cluster.asked == 1
    for _ in range(2):
        await find(found, "GET", "/api/v1/runs/gone")
    assert cluster.asked == 3, "what is not there may come"


def test_a_refusal_names_a_lane_or_none() -> None:
    assert right_lane(b'{"lane": 3}') == 3
    for body in (
        b"",
        b"[]",
        b'{"lane": -1}',
        b'{"lane": true}',
        b'{"lane": "1"}',
        b"{",
        b"[" * 5000,
    ):
        assert right_lane(body) is None

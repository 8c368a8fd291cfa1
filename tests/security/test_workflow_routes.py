"""Items, bodies, scopes, signals, pins, triggers and re-runs: by role, and across two tenants, on a real server."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any, Final, NamedTuple

import httpx
import pytest

from tests.definitions import node, workflow
from tests.processes.system import System, running

OURS, THEIRS = "default", "umbrella"
ROLES: Final = {"viewer", "editor", "operator", "admin"}
READ: Final = frozenset(ROLES)
START: Final = frozenset(ROLES - {"viewer"})
EDIT: Final = frozenset({"editor", "admin"})

ROUTES: Final[list[tuple[frozenset[str], str, str, Any]]] = [
    (READ, "GET", "runs/{run}/nodes/{box}/items", None),
    (READ, "GET", "runs/{run}/nodes/{box}/items?status=succeeded&limit=1", None),
    (READ, "GET", "runs/{run}/nodes/{box}/body?item=1", None),
    (READ, "GET", "runs/{run}/nodes/{box}?scope={box}:1", None),
    (READ, "GET", "runs/{run}/nodes/{inner}?scope={box}:1/{box}:0", None),
    (READ, "GET", "runs/{run}/logs?scope={box}:1", None),
    (READ, "GET", "runs/{run}/artifacts?scope={box}:1", None),
    (READ, "GET", "workflows/{flow}/pins", None),
    (READ, "GET", "workflows/{flow}/triggers", None),
    (READ, "GET", "workflows/{flow}/triggers/hook", None),
    (READ, "GET", "workflows/{flow}/triggers/hook/history", None),
    (READ, "GET", "workflows/{flow}/versions", None),
    (READ, "GET", "runs/{run}/compare/{run}", None),
    (START, "GET", "runs/{run}/signals", None),
    (START, "POST", "runs/{run}/signals/paid", {"payload": 1}),
    (START, "POST", "runs/{run}/nodes/{ask}/approval", {"approved": True, "scope": "{ask}:1"}),
    (START, "POST", "runs/{run}/rerun", {"mode": "all"}),
    (START, "POST", "runs/{run}/cancel", None),
    (START, "POST", "workflows/{flow}/triggers/hook/disable", None),
    (START, "POST", "workflows/{flow}/triggers/hook/enable", None),
    (START, "POST", "workflows/{flow}/triggers/hook/run", {}),
    (EDIT, "PUT", "workflows/{flow}/pins/{box}", {"result": {"items": []}}),
    (EDIT, "DELETE", "workflows/{flow}/pins/{ask}", None),
    (EDIT, "POST", "workflows/{flow}/versions/1/restore", None),
]


class Site(NamedTuple):
    """A run of ours that waits for people and for a signal, and the tokens of two tenants."""

    system: System
    names: dict[str, str]
    tokens: dict[tuple[str, str], str]

    def ask(self, tenant: str, role: str, method: str, path: str, body: Any) -> httpx.Response:
        headers = {"Authorization": f"Bearer {self.tokens[tenant, role]}"}
        sent = {} if body is None else {"json": self.filled(body)}
        url = f"{self.system.url}/api/v1/{self.filled(path)}"
        return httpx.request(method, url, headers=headers, timeout=30, **sent)

    def filled(self, value: Any) -> Any:
        """With the names of what there is in the place of the words in braces."""
        if isinstance(value, dict):
            return {name: self.filled(one) for name, one in value.items()}
        return value.format(**self.names) if isinstance(value, str) else value

    def state(self) -> dict[str, Any]:
        """All that the routes could change."""
        rest, flow, run = self.system.rest, self.names["flow"], self.names["run"]
        return {
            "run": rest.get(f"runs/{run}"),
            "runs": [one["runId"] for one in rest.get("runs")["items"]],
            "approvals": rest.get("approvals")["items"],
            "pins": rest.get(f"workflows/{flow}/pins"),
            "triggers": rest.get(f"workflows/{flow}/triggers"),
            "versions": rest.get(f"workflows/{flow}/versions"),
            "signals": rest.get(f"runs/{run}/signals"),
        }


def _flow() -> dict[str, dict[str, Any]]:
    box = node("core.container", "Box", map={"over": "=[1, 2]"})
    inner = node("core.echo", "Inner", parent=box["id"], parameters={"value": "=item"})
    ask = node("core.approval", "Ask", approval={"message": "?"}, map={"over": "=[1, 2]"})
    wait = node("core.signal", "Wait", signal={"name": "paid", "webhook": True})
    return {"box": box, "inner": inner, "ask": ask, "wait": wait}


class Server(NamedTuple):
    """A server with two tenants, and a token of each for each role."""

    system: System
    tokens: dict[tuple[str, str], str]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with running(tmp_path_factory.mktemp("roles"), workers=1) as system:
        system.rest.post("tenants", {"tenant": THEIRS}, wanted=201)
        tokens = {
            (tenant, role): _token(system, tenant, role)
            for tenant, role in product((OURS, THEIRS), sorted(ROLES))
        }
        yield Server(system, tokens)


@pytest.fixture
def site(server: Server) -> Site:
    nodes, rest = _flow(), server.system.rest
    definition = workflow(*nodes.values(), triggers=[{"type": "webhook", "id": "hook"}])
    rest.post("workflows", definition, wanted=201)
    pin = f"/api/v1/workflows/{definition['id']}/pins/{nodes['ask']['id']}"
    assert rest.http.put(pin, json={"result": {"items": []}}).status_code == 200
    run_id = rest.post("runs", {"workflowId": definition["id"]})["runId"]

    def is_waiting() -> bool | None:
        asked = [one for one in rest.get("approvals")["items"] if one["runId"] == run_id]
        return (len(asked) == 2 and rest.nodes(run_id)["Box"]["status"] == "succeeded") or None

    server.system.until(is_waiting, "two approvals, and the end of Box")
    names = {name: one["id"] for name, one in nodes.items()}
    names |= {"run": run_id, "flow": definition["id"]}
    return Site(server.system, names, server.tokens)


def _token(system: System, tenant: str, role: str) -> str:
    body = {"role": role, "tenant": tenant, "ttlSeconds": 600}
    return str(system.rest.post("tokens", body, wanted=201)["token"])


def test_another_tenant_finds_nothing_and_who_may_not_is_told_so_first(site: Site) -> None:
    before = site.state()
    for (roles, method, path, body), role in product(ROUTES, sorted(ROLES)):
        answer = site.ask(THEIRS, role, method, path, body)
        wanted = 404 if role in roles else 403
        assert answer.status_code == wanted, (role, method, path, answer.text)
        assert not any(one in answer.text for one in ("Box", "Inner", "paid/")), answer.text
    assert site.state() == before


def test_who_may_not_write_changes_nothing(site: Site) -> None:
    before = site.state()
    for (roles, method, path, body), role in product(ROUTES, sorted(ROLES)):
        if role in roles:
            continue
        answer = site.ask(OURS, role, method, path, body)
        assert answer.status_code == 403, (role, method, path, answer.text)
    assert site.state() == before


def test_who_may_read_reads(site: Site) -> None:
    for (roles, method, path, body), role in product(ROUTES, sorted(ROLES)):
        if roles is READ:
            answer = site.ask(OURS, role, method, path, body)
            assert answer.status_code == 200, (role, path, answer.text)


def test_filters_calls_pins_and_triggers_do_not_reach_over_to_another_tenant(site: Site) -> None:
    before = site.state()
    names = site.names
    for path in ("runs/cancel", "runs/rerun"):
        answer = site.ask(THEIRS, "admin", "POST", path, {"workflowId": names["flow"]})
        assert (answer.status_code, answer.json()["items"]) == (200, []), answer.text
    assert site.ask(THEIRS, "admin", "GET", "approvals", None).json()["items"] == []
    seen = site.ask(THEIRS, "admin", "GET", "triggers", None).json()["items"]
    assert names["flow"] not in [one["workflowId"] for one in seen]
    stream = site.ask(THEIRS, "admin", "GET", "events?runId={run}", None)
    assert stream.status_code == 404

    calls = workflow(node("core.call", "Calls", call={"workflowId": names["flow"]}))
    for path, body in (("workflows/validate", calls), ("runs", {"workflow": calls})):
        refused = site.system.rest.http.post(
            f"/api/v1/{path}",
            json=body,
            headers={"Authorization": f"Bearer {site.tokens[THEIRS, 'admin']}"},
        )
        assert refused.status_code == 422, refused.text
        assert refused.json()["errors"][0]["code"] == "E.WORKFLOW.CALL"

    own = workflow(node("core.echo", "Own", parameters={"value": 1}))
    own["id"] = names["flow"]  # the same id, in a tenant of its own
    headers = {"Authorization": f"Bearer {site.tokens[THEIRS, 'admin']}"}
    saved = site.system.rest.http.post("/api/v1/workflows", json=own, headers=headers)
    assert saved.status_code == 201, saved.text
    path = f"workflows/{names['flow']}/pins/{own['nodes'][0]['id']}"
    stolen = site.ask(THEIRS, "admin", "PUT", path, {"runId": names["run"]})
    assert stolen.status_code == 404, stolen.text
    gone = site.system.rest.http.delete(f"/api/v1/workflows/{names['flow']}", headers=headers)
    assert gone.status_code == 204, gone.text
    assert site.state() == before


def test_the_end_of_a_run_starts_nothing_in_another_tenant(site: Site) -> None:
    rest = site.system.rest
    first = workflow(node("core.echo", "First", parameters={"value": 1}))
    rest.post("workflows", first, wanted=201)
    follows = [{"type": "workflow", "workflowId": first["id"], "id": "after"}]
    second = workflow(node("core.echo", "Second", parameters={"value": 2}), triggers=follows)
    headers = {"Authorization": f"Bearer {site.tokens[THEIRS, 'editor']}"}
    theirs = rest.http.post("/api/v1/workflows", json=second, headers=headers)
    assert theirs.status_code == 201, theirs.text
    rest.post("workflows", second, wanted=201)
    rest.post("runs", {"workflowId": first["id"]})
    site.system.until(
        lambda: rest.get("runs", workflowId=second["id"])["items"] or None, "our second run"
    )
    assert site.ask(THEIRS, "admin", "GET", "runs", None).json()["items"] == []


def test_those_who_may_do_it(site: Site) -> None:
    for role, method, path, body, status in (
        ("operator", "GET", "runs/{run}/signals", None, 200),
        ("operator", "POST", "runs/{run}/signals/paid", {"payload": 1}, 202),
        ("editor", "POST", "runs/{run}/nodes/{ask}/approval", {"approved": True, "scope": "{ask}:0"}, 204),
        ("operator", "POST", "runs/{run}/nodes/{ask}/approval", {"approved": True, "scope": "{ask}:1"}, 204),
        ("editor", "PUT", "workflows/{flow}/pins/{box}", {"result": {"items": []}}, 200),
        ("editor", "DELETE", "workflows/{flow}/pins/{box}", None, 204),
        ("operator", "POST", "workflows/{flow}/triggers/hook/disable", None, 200),
        ("operator", "POST", "workflows/{flow}/triggers/hook/enable", None, 200),
    ):  # fmt: skip
        answer = site.ask(OURS, role, method, path, body)
        assert answer.status_code == status, (role, path, answer.text)
    assert site.system.rest.finished(site.names["run"])["status"] == "succeeded"

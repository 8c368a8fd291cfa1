"""Every route against every kind of credential: the declaration of the route is the judge."""

from __future__ import annotations

import re
from typing import Any

import pytest

from astraflow.api.access import host_name
from astraflow.api.app import ROUTES
from astraflow.api.routes import Route
from astraflow.core.security.policy import PERSON_ROLES, Role
from tests.api.rig import NODE_A, OTHER, Rig, definition, problem_of, serving
from tests.api.scripted import token_of

BODY = {"content": b"{}", "headers": {"content-type": "application/json"}}


def path_of(route: Route, **known: str) -> str:
    return re.sub(r"\{([^}]+)\}", lambda found: known.get(found[1], "nothing"), route.path)


CHANGES_NOTHING = {
    "POST /api/v1/workflows/validate",
    "POST /api/v1/expressions/evaluate",
    "POST /api/v1/artifacts/{id}",
}
"""They read, although they are not a GET."""
OWN_ONLY = {"POST /api/v1/tokens", "DELETE /api/v1/tokens/{id}"}
"""Everybody changes what is their own."""
OWN_ONLY |= {f"POST /api/v1/auth/{one}" for one in ("links", "logout", "password")}
TO_GET_IN = {f"POST /api/v1/auth/{one}" for one in ("login", "token", "link")}
"""They check what they are sent, and nothing else."""
TO_ISSUER = {f"GET /api/v1/auth/oidc/{one}" for one in ("login", "callback")}
"""They check what the issuer of logins says; there is none here."""
TO_HOOKS = {f"{one} /api/v1/hooks/{{hookId}}" for one in ("GET", "POST", "PUT", "PATCH", "DELETE")}
TO_HOOKS |= {"POST /api/v1/signals/{runId}/{name}/{token}"}
"""The address is the key, or the signature of the body; nobody has such an address here."""
OF_WORKERS = {
    *("GET /api/v1/me", "POST /api/v1/tokens/renew"),
    *("POST /api/workers/register", "POST /api/workers/heartbeat"),
}
"""A worker asks whose its token is, and renews it."""
OF_WORKERS |= {f"POST /api/workers/{one}" for one in ("register", "heartbeat")}
MAKES_ITS_OWN = {
    "PUT /api/v1/pools/{name}",
    "PUT /api/v1/secrets/{name}",
    "PUT /api/v1/workflows/{id}/draft",
}
"""What is not there is made, in the own tenant."""


def test_who_may_only_look_changes_nothing_and_a_worker_has_only_its_own_token() -> None:
    for route in ROUTES:
        if route.access.is_public:
            is_page = route.method == "GET" and not route.path.startswith("/api/v1/")
            assert is_page or route.action in TO_GET_IN | TO_ISSUER | TO_HOOKS, route.action
            continue
        if route.access.is_task:
            assert not route.access.roles, route.action
            continue
        assert route.access.allows(Role.WORKER) == (route.action in OF_WORKERS), route.action
        assert route.access.allows(Role.METRICS) == (route.action == "GET /metrics"), route.action
        is_reading = route.method in ("GET", "HEAD") or route.action in CHANGES_NOTHING | OWN_ONLY
        assert is_reading or not route.access.allows(Role.VIEWER), route.action
        is_of_worker = route.action == "POST /api/v1/tokens/renew"
        is_admins = route.access.allows(Role.ADMIN)
        assert route.access.is_signed or is_of_worker != is_admins, route.action


async def test_every_route_answers_every_role_as_it_declares() -> None:
    async with serving() as rig:
        expected: list[tuple[str, str]] = []
        for route in ROUTES:
            if route.path in ("/api/v1/events", "/api/v1/stream"):
                continue  # an open stream does not end by itself; it has its own test
            for role in Role:
                answer = await rig.as_(role, route.method, path_of(route))
                if route.access.is_task:
                    assert answer.json()["error"] == "invalid_token"
                elif route.access.allows(role):
                    assert answer.status_code not in (401, 403), (route.action, role)
                elif route.method == "HEAD":
                    assert answer.status_code == 403  # and no body to say why
                else:
                    problem_of(answer, 403, "E.AUTH.FORBIDDEN")
                    if route.method != "GET":
                        expected.append((f"{role} of default", route.action))
        await rig.scheduler.serving.writer.barrier()
        # Of the refusals of one subject only so many are kept; what only reads is not audited at all.
        audited = await audit(rig)
        assert set(audited) <= set(expected)
        assert {who for who, _ in audited} == {who for who, _ in expected}


async def audit(rig: Rig) -> list[tuple[str, str]]:
    query = "code=E.AUTH.FORBIDDEN&limit=200"
    rows = (await rig.get(f"/api/v1/audit?{query}")).json()["items"]
    return [(row["who"], row["action"]) for row in rows if row["action"].count("/")]


async def test_the_stream_is_refused_to_those_who_may_not_read() -> None:
    async with serving() as rig:
        for role in Role:
            answer = await rig.as_(role, "GET", "/api/v1/events?runId=nope")
            expected = 404 if role in PERSON_ROLES else 403
            assert answer.status_code == expected, role


BAD: dict[str, Any] = {
    "none": {},
    "unknown": {"authorization": "Bearer nobody-knows-me"},
    "expired": {"authorization": "Bearer expired"},
    "revoked": {"authorization": "Bearer revoked"},
    "empty": {"authorization": "Bearer"},
    "basic": {"authorization": "Basic dG9rZW4tb2YtZGVmYXVsdC1hZG1pbg=="},
    "long": {"authorization": "Bearer " + "x" * 4_000},
    "bytes": {"authorization": b"Bearer \xff\xfe"},
    "bare": {"authorization": token_of(Role.ADMIN)},
}


@pytest.mark.parametrize("kind", BAD)
async def test_without_a_good_token_every_route_but_the_public_ones_is_closed(kind: str) -> None:
    async with serving() as rig:
        del rig.client.headers["authorization"]
        bodies = set()
        for route in ROUTES:
            answer = await rig.client.request(route.method, path_of(route), headers=BAD[kind])
            if route.action in TO_GET_IN:
                assert answer.status_code == 400  # it has no body
            elif route.action in TO_ISSUER | TO_HOOKS:
                assert answer.status_code == 404
            elif route.access.is_public:
                assert answer.status_code == 200
            elif route.method == "HEAD":
                assert answer.status_code == 401
            elif route.access.is_task:
                assert (answer.status_code, answer.json()["error"]) == (401, "invalid_token")
            else:
                problem_of(answer, 401, "E.AUTH.INVALID_TOKEN")
                assert answer.headers["www-authenticate"] == "Bearer"
                bodies.add(answer.content)
        assert len(bodies) == 1  # nothing tells an expired token from one that never was


async def test_two_credentials_are_none() -> None:
    async with serving() as rig:
        token = token_of(Role.ADMIN)
        answer = await rig.raw(
            f"GET /api/v1/me HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {token}\r\n"
            f"authorization: Bearer {token}\r\nconnection: close\r\n\r\n".encode()
        )
        assert answer.startswith(b"HTTP/1.1 401 ")


async def test_what_belongs_to_another_tenant_is_not_found() -> None:
    async with serving() as rig:
        run_id = await rig.submit()
        saved = await rig.post("/api/v1/workflows", json=definition())
        async with rig.worker():
            known = {"runId": run_id, "nodeId": NODE_A, "id": ""}
            headers = {"authorization": f"Bearer {token_of(Role.ADMIN, OTHER)}"}
            for route in ROUTES:
                if "{" not in route.path or not route.access.roles:
                    continue  # a signed URL is nobody's: it has its own tests
                if route.action in MAKES_ITS_OWN or route.access.is_site:
                    continue  # what is of the site is forbidden: it has its own tests
                is_worker = "/workers/" in route.path
                known["id"] = "w1" if is_worker else saved.json()["id"]
                body = {"json": {"type": "undrain"}} if is_worker else {"json": definition()}
                is_change = route.method in ("POST", "PUT") and "/runs/" not in route.path
                if route.path.endswith("/approval"):
                    body, is_change = {"json": {"approved": True}}, True
                if "/pins/" in route.path:
                    body = {"json": {"result": {"value": 1}}}
                path = path_of(route, **known)
                theirs = await rig.client.request(
                    route.method, path, headers=headers, **(body if is_change else {})
                )
                assert theirs.status_code == 404, (route.action, theirs.text)
            events = await rig.get(f"/api/v1/events?runId={run_id}", headers=headers)
            problem_of(events, 404, "E.RUN.NOT_FOUND")
            for path in ("runs", "workers", "workflows", "resources"):
                listed = await rig.get(f"/api/v1/{path}", headers=headers)
                assert listed.json()["items"] == [], path
            own = (await rig.get("/api/v1/audit", headers=headers)).json()["items"]
            assert {(row["who"], row["code"] is None) for row in own} == {
                (f"admin of {OTHER}", False)
            }
            packages = (await rig.get("/api/v1/packages", headers=headers)).json()["items"]
            mine = (await rig.get("/api/v1/packages")).json()["items"]
            assert packages == mine, "only those of the installation"
            assert len((await rig.get("/api/v1/workflows")).json()["items"]) == 1
            actions = {row["action"] for row in (await rig.get("/api/v1/audit")).json()["items"]}
            assert not actions & {"undrain", "rebind", "cancel"}


async def test_an_unknown_thing_and_another_tenants_look_the_same() -> None:
    async with serving() as rig:
        run_id = await rig.submit()
        token = token_of(Role.ADMIN, OTHER)
        headers = {"authorization": f"Bearer {token}", "x-request-id": "same"}
        theirs = await rig.get(f"/api/v1/runs/{run_id}", headers=headers)
        absent = await rig.get("/api/v1/runs/run-9999", headers=headers)
        assert theirs.text.replace(run_id, "_") == absent.text.replace("run-9999", "_")


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1", 200),
        ("127.0.0.1:8080", 200),
        ("localhost:1", 200),
        ("LOCALHOST", 200),
        ("[::1]:8080", 200),
        ("flow.example.test:443", 200),
        ("evil.example.test", 400),
        ("127.0.0.1.evil.test", 400),
        ("192.0.2.7", 400),
        ("localhost:x", 400),
        ("[::1", 400),
        ("", 400),
    ],
)
async def test_only_a_name_of_ours_is_answered(host: str, status: int) -> None:
    async with serving(allowed_hosts=("flow.example.test",)) as rig:
        answer = await rig.get("/healthz", headers={"host": host})
        assert answer.status_code == status
        if status == 400:
            problem_of(answer, 400, "E.REQUEST.INVALID")


async def test_bound_to_every_address_any_address_is_a_name_of_ours() -> None:
    async with serving(host="0.0.0.0") as rig:
        assert (await rig.get("/healthz", headers={"host": "192.0.2.7:80"})).status_code == 200
        assert (await rig.get("/healthz", headers={"host": "evil.test"})).status_code == 400


async def test_two_hosts_or_none_are_refused() -> None:
    async with serving() as rig:
        end = "connection: close\r\n\r\n"
        two = f"GET /healthz HTTP/1.1\r\nhost: localhost\r\nhost: localhost\r\n{end}"
        assert (await rig.raw(two.encode())).startswith(b"HTTP/1.1 400 ")
        none = f"GET /healthz HTTP/1.1\r\n{end}"
        assert (await rig.raw(none.encode())).startswith(b"HTTP/1.1 400 ")


async def test_no_other_origin_is_invited() -> None:
    async with serving() as rig:
        answer = await rig.get("/healthz", headers={"origin": "http://evil.test"})
        assert not [name for name in answer.headers if name.startswith("access-control")]
        asked = await rig.client.options(
            "/api/v1/runs",
            headers={"origin": "http://evil.test", "access-control-request-method": "POST"},
        )
        problem_of(asked, 405, "E.REQUEST.METHOD")


@pytest.mark.parametrize(
    ("header", "name"),
    [
        ("a", "a"),
        ("A:1", "a"),
        ("[::1]", "::1"),
        ("[::1]:2", "::1"),
        (":1", None),
        ("[::1]x", None),
    ],
)
def test_the_name_in_a_host_header(header: str, name: str | None) -> None:
    assert host_name(header) == name


async def test_only_who_may_start_runs_sees_the_address_of_a_webhook() -> None:
    async with serving() as rig:
        saved = await rig.post(
            "/api/v1/workflows", json={**definition(), "triggers": [{"type": "webhook"}]}
        )
        assert saved.status_code == 201, saved.text
        for role in Role:
            answer = await rig.as_(role, "GET", "/api/v1/triggers")
            if role in PERSON_ROLES:
                [shown] = answer.json()["items"]
                assert ("hookPath" in shown) == (role is not Role.VIEWER), role

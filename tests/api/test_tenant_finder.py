"""Whose a request is, whatever it says: a look that never fails, and never takes a name for a right."""

from __future__ import annotations

from typing import Any, cast

import pytest

from astraflow.api.tenant_finder import LOOKUPS_PER_S, TenantFinder
from astraflow.clock import SystemClock
from astraflow.core.security.bearer import digest_of
from astraflow.core.security.keys import KeyRing
from astraflow.core.security.tokens import TaskTokens
from astraflow.scheduler.signed_urls import DownloadGrant, UrlSigner
from astraflow.store.cluster import StoredCluster

SECRET = b"a secret for tests, long enough to sign"
RING = KeyRing.of_secrets([SECRET])
TOKENS = {"site-token": "default", "acme-token": "acme"}


class Cluster:
    """What is stored: two tokens, a run and a webhook."""

    def __init__(self) -> None:
        self.asked = 0

    async def tenant_of_token(self, digest: bytes) -> str | None:
        self.asked += 1
        return {digest_of(text): tenant for text, tenant in TOKENS.items()}.get(digest)

    async def tenant_of_run(self, run_id: str) -> str | None:
        return {"run-1": "globex"}.get(run_id)

    async def tenant_of_hook(self, hook_id: str) -> str | None:
        self.asked += 1
        return {"hook-1": "globex"}.get(hook_id)


def finder(cluster: Cluster | None = None) -> TenantFinder:
    return TenantFinder(cast("StoredCluster", cluster or Cluster()), RING, SystemClock())


def scope(method: str, path: str, token: str = "", query: str = "", **headers: str) -> Any:
    given = [(name.encode(), value.encode()) for name, value in headers.items()]
    if token:
        given.append((b"authorization", f"Bearer {token}".encode()))
    return {"method": method, "path": path, "query_string": query.encode(), "headers": given}


GRANT = UrlSigner([SECRET], SystemClock()).make(
    DownloadGrant(tenant="globex", exp=1, resource_id="r", worker_id="w")
)
TASK = TaskTokens(RING).mint(
    tenant="globex", workspace="w", run="r", task="t", attempt=1, wall=0.0
)[0]
DEEP = b"[" * 100_000

REQUESTS = [
    ("GET", "/api/v1/runs", "acme-token", "", b"", "acme"),
    ("GET", "/api/v1/runs", "", "", b"", "default"),
    ("GET", "/api/v1/runs", "nobody", "", b"", "default"),
    ("GET", "/api/v1/runs", "x" * 5_000, "", b"", "default"),
    # Only an admin of the site names another tenant.
    ("GET", "/api/v1/users", "site-token", "tenant=acme", b"", "acme"),
    ("GET", "/api/v1/users", "acme-token", "tenant=globex", b"", "acme"),
    ("GET", "/api/v1/tenants/globex", "site-token", "", b"", "globex"),
    ("GET", "/api/v1/tenants/globex", "acme-token", "", b"", "acme"),
    ("POST", "/api/v1/tokens", "site-token", "", b'{"tenant":"acme"}', "acme"),
    ("POST", "/api/v1/tokens", "acme-token", "", b'{"tenant":"globex"}', "acme"),
    ("POST", "/api/v1/tokens", "site-token", "", b'{"tenant":7}', "default"),
    ("POST", "/api/v1/tokens", "site-token", "", b"\xff\xfe", "default"),
    ("POST", "/api/v1/tokens", "site-token", "", DEEP, "default"),
    ("POST", "/api/v1/auth/login", "", "", b'{"tenant":"acme"}', "acme"),
    ("POST", "/api/v1/auth/login", "", "", b"{}", "default"),
    ("POST", "/api/v1/auth/link", "", "", b'{"code":"acme-token"}', "acme"),
    ("POST", "/api/v1/auth/link", "", "", b'{"code":[]}', "default"),
    # What carries a grant belongs to the tenant of the grant.
    ("GET", "/api/v1/artifacts/r/1", "", f"token={GRANT}", b"", "globex"),
    ("GET", "/api/v1/artifacts/r/1", "acme-token", f"token={GRANT}", b"", "acme"),
    ("GET", "/api/v1/artifacts/r/1", "", "token=%ff%fe", b"", "default"),
    ("GET", "/api/v1/artifacts/r/1", "", "&".join(["token=x"] * 500), b"", "default"),
    ("PUT", f"/api/v1/uploads/{GRANT}", "", "", b"", "globex"),
    ("PUT", "/api/v1/uploads/ä", "", "", b"", "default"),
    ("POST", "/v1/tasks/t/completed", TASK, "", b"", "globex"),
    ("POST", "/v1/tasks/t/completed", f"{TASK}x", "", b"", "default"),
    ("POST", "/v1/tasks/t/completed", "", "", b"", "default"),
    ("POST", "/api/v1/signals/run-1/go/token", "", "", b"", "globex"),
    ("POST", "/api/v1/signals/run-2/go/token", "", "", b"", "default"),
    ("POST", "/api/v1/hooks/hook-1/path", "", "", b"", "globex"),
    ("POST", "/api/v1/hooks/", "", "", b"", "default"),
]


@pytest.mark.parametrize("request_row", REQUESTS)
async def test_whose_a_request_is(request_row: tuple[str, str, str, str, bytes, str]) -> None:
    method, path, token, query, body, wanted = request_row
    assert await finder().find(scope(method, path, token, query), body) == wanted


async def test_a_cookie_of_somebody_else_does_not_hide_a_signed_url() -> None:
    asked = scope("GET", "/api/v1/artifacts/r/1", query=f"token={GRANT}", cookie="theme=dark")
    assert await finder().find(asked) == "globex"


async def test_two_credentials_are_none() -> None:
    asked = scope("GET", "/api/v1/runs", "acme-token")
    asked["headers"].append((b"authorization", b"Bearer site-token"))
    assert await finder().find(asked) == "default"


async def test_what_is_known_is_asked_once() -> None:
    cluster = Cluster()
    found = finder(cluster)
    for _ in range(5):
        assert await found.find(scope("GET", "/api/v1/runs", "acme-token")) == "acme"
        assert await found.find(scope("POST", "/api/v1/hooks/hook-1")) == "globex"
    assert cluster.asked == 2


async def test_somebody_who_tries_addresses_of_webhooks_is_not_looked_up_for_ever() -> None:
    cluster = Cluster()
    found = finder(cluster)
    tries = int(LOOKUPS_PER_S) * 3
    for number in range(tries):
        assert await found.find(scope("POST", f"/api/v1/hooks/{number}")) == "default"
    assert cluster.asked < tries

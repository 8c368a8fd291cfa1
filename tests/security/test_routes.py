"""The table of authorization, and the credentials that are not API tokens: each opens exactly one thing.

`tests/api/test_access.py` asks every route with every role, with bad, expired and revoked ones, and as another tenant.
Here the tokens of attempts and of sessions are tried at every route of a real scheduler.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from astraflow.api.app import ROUTES
from astraflow.api.routes import Route, route
from astraflow.core.security.policy import WORKER_SESSION, Access, Role
from tests.conftest import ROOT
from tests.http_workers.foreign import Task, foreign_pool
from tests.http_workers.workflows import node, put_pool, workflow
from tests.processes.rest import TOKEN
from tests.processes.system import System, running
from tests.rawsocket import RawSocket, frame, hello

SESSION_ROW = "open the session of a worker"
BODY = {"attempt": 2, "workerId": "w"}


def table() -> dict[str, list[str]]:
    """The cells of each row of the published table."""
    text = (ROOT / "docs" / "reference" / "authorization.md").read_text()
    rows = re.findall(r"^\| `([^`]+)` \| (.*) \|$", text, re.MULTILINE)
    return {action: [cell.strip() for cell in cells.split(" | ")] for action, cells in rows}


def cells_of(access: Access) -> list[str]:
    keys = {"yes": access.is_public, "signed URL": access.is_signed, "task token": access.is_task}
    without = next((said for said, holds in keys.items() if holds), "")
    said = "of the site" if access.is_site else "yes"
    return [without, *(said if access.allows(role) else "" for role in Role)]


def test_every_route_has_its_row_and_every_row_its_route() -> None:
    declared = {one.action: one.access for one in ROUTES} | {SESSION_ROW: WORKER_SESSION}
    assert table() == {action: cells_of(access) for action, access in declared.items()}
    assert len(declared) == len(ROUTES) + 1, "an action stands twice"


def test_a_route_is_declared_with_its_access_or_not_at_all() -> None:
    declare: Any = route
    with pytest.raises(TypeError, match="access"):
        declare("GET", "/api/v1/open", name="open", summary="no row", tag="x", replies={})
    for one in ROUTES:
        assert one.access.roles or one.access.is_signed or one.access.is_task, one.action


# --- tokens that are no API tokens ---


@dataclass
class Keys:
    """One scheduler, a task in its second attempt."""

    system: System
    task: Task
    older: Task

    def ask(self, one: Route, token: str, task_id: str = "nothing") -> httpx.Response:
        path = re.sub(r"\{[^}]+\}", task_id, one.path)
        with httpx.Client(base_url=self.system.url, timeout=30) as client:
            headers = {"authorization": f"Bearer {token}"}
            body = None if one.method in ("GET", "HEAD") else BODY
            return client.request(one.method, path, headers=headers, json=body)


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Keys]:
    folder = tmp_path_factory.mktemp("keys")
    with running(folder, heartbeat_ms=20_000) as system, foreign_pool() as pool:
        name = put_pool(system, pool)
        retry = {"maxAttempts": 2, "backoff": {"initialSeconds": 0.01}}
        system.rest.submit(workflow(node(name, retry=retry)))
        older = pool.next()
        assert older.start().status_code == 200
        assert older.fail("INFRASTRUCTURE").status_code == 200
        yield Keys(system, pool.next(1), older)


def closed_to(keys: Keys, token: str) -> None:
    """No route but the public ones is open to a token."""
    for one in ROUTES:
        if one.access.is_public:
            continue
        assert keys.ask(one, token).status_code == 401, one.action


def test_a_task_token_opens_the_callbacks_of_its_task_and_nothing_else(keys: Keys) -> None:
    closed_to(keys, keys.task.token)
    for one in ROUTES:
        if one.access.is_task:
            answer = keys.ask(one, keys.task.token, keys.task.task_id)
            assert answer.status_code in (200, 400, 409), (one.action, answer.text)


def test_the_token_of_an_older_attempt_opens_nothing(keys: Keys) -> None:
    closed_to(keys, keys.older.token)
    for one in ROUTES:
        if one.access.is_task:
            answer = keys.ask(one, keys.older.token, keys.task.task_id)
            wanted = (400, 409) if one.path.endswith("completed") else (409,)
            assert answer.status_code in wanted, (one.action, answer.text)


def test_an_api_token_opens_no_callback(keys: Keys) -> None:
    for one in ROUTES:
        if one.access.is_task:
            assert keys.ask(one, TOKEN, keys.task.task_id).status_code == 401, one.action


async def test_the_token_of_a_session_opens_no_route(keys: Keys) -> None:
    socket = await RawSocket.open(keys.system.port)
    socket.send(frame("w", "control.handshake", hello("w", TOKEN)))
    offer = {"capabilities": {"concurrency": {"max_parallel": 1}}}
    socket.send(frame("w", "control.register", offer))
    accept = await socket.next("control.session.accept")
    closed_to(keys, accept["payload"]["session_token"])
    await socket.close()

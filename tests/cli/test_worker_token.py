"""A worker with a short-lived token: the real process against a real server."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.workflows import node, workflow
from tests.processes.command_line import Up, start, up
from tests.processes.process import Process
from tests.processes.waiting import until

TTL = "6s"


def worker(server: Up, folder: Path, token: str) -> Process:
    url = server.url.replace("http", "ws") + "/ws/worker"
    arguments = ("worker", "--scheduler-url", url, "--data-dir", str(folder), "--name", "short")
    return start(*arguments, cwd=folder, ASTRA_WORKER_AUTH_TOKEN=token)


def tokens(server: Up) -> list[dict[str, str]]:
    found: list[dict[str, str]] = server.astra("tokens", "list", "--limit", "0", "--json").json[
        "items"
    ]
    return found


def new_token(server: Up) -> str:
    made = server.astra("tokens", "create", "--role", "worker", "--ttl", TTL)
    assert made.code == 0, made
    return made.out.strip()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "worker"
    made.mkdir()
    return made


def test_a_worker_renews_its_token_keeps_it_and_stops_when_it_is_revoked(
    tmp_path: Path, folder: Path
) -> None:
    with up(tmp_path, "--workers", "0") as server:
        given = new_token(server)
        first = tokens(server)[0]["tokenId"]
        running = worker(server, folder, given)
        try:
            until(lambda: len(tokens(server)) >= 4, "three successors")
            done = server.astra("run", "-", stdin=json.dumps(workflow(node(1, "noop"))))
            assert done.code == 0, done  # long after the token that it was given has expired
            kept = folder / "worker_token.json"
            assert kept.stat().st_mode & 0o777 == 0o600
            assert given not in kept.read_text()
            assert running.end() == 0
            running = worker(server, folder, given)
            count = len(tokens(server))
            until(lambda: len(tokens(server)) > count, "it goes on with the token that it kept")
            assert server.astra("tokens", "revoke", first).code == 0
            until(lambda: "is not renewed any more" in running.said(), "it cannot renew")
            assert tokens(server)[0]["revokedAt"]
            status = server.astra("workers", "show", "short", "--json").json["status"]
            assert status in ("lost", "offline", "degraded")
        finally:
            running.close()

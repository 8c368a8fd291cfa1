"""The commands about who may get in: whole exchanges with a real server."""

from __future__ import annotations

import pytest

from tests.processes.command_line import Up


def test_a_token_is_created_used_and_revoked(server: Up) -> None:
    made = server.astra("tokens", "create", "--role", "viewer", "--ttl", "1h", "--label", "a job")
    assert made.code == 0, made
    token = made.out.strip()
    assert token.startswith("astra_")
    assert token not in made.err
    assert "it is not shown again" in made.err
    alone = {"ASTRA_SERVER": server.url, "ASTRA_TOKEN": token}
    assert server.astra("runs", "list", **alone).code == 0
    refused = server.astra("workers", "drain", "worker-1", **alone)
    assert refused.code == 1
    assert "the role of the token does not allow this: viewer" in refused.err
    row = server.astra("tokens", "list").out.splitlines()[0].split("\t")
    assert row[1:6] == ["api", "bootstrap", "viewer", "a job", "good"]
    assert server.astra("tokens", "revoke", row[0]).code == 0
    assert server.astra("runs", "list", **alone).code == 2
    assert server.astra("tokens", "list").out.splitlines()[0].split("\t")[5] == "revoked"
    missing = server.astra("tokens", "revoke", "nothing", "--json")
    assert missing.json["code"] == "E.TOKEN.NOT_FOUND"


@pytest.mark.parametrize("ttl", ["0", "1x", "-1h", "", "1.5h", "9999999999d"])
def test_a_lifetime_that_is_none_is_refused(server: Up, ttl: str) -> None:
    done = server.astra("tokens", "create", f"--ttl={ttl}")
    assert done.code == 2, done
    assert "--ttl" in done.err


def test_a_token_for_ever_says_so(server: Up) -> None:
    made = server.astra("tokens", "create", "--ttl", "never", "--json").json
    assert made["expiresAt"] is None
    assert server.astra("tokens", "revoke", made["tokenId"], "--json").json["status"] == "revoked"


def test_an_unknown_role_is_refused(server: Up) -> None:
    done = server.astra("tokens", "create", "--role", "root")
    assert done.code == 2, done
    assert "admin, operator, editor, viewer, worker" in done.err

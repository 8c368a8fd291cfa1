"""The commands about who may get in: whole exchanges with a real server."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import httpx
import pytest

from tests.processes.command_line import Terminal, Up, astra

PASSWORD = "correct horse battery"


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


def test_a_token_for_metrics_reads_them_and_nothing_else(server: Up) -> None:
    made = server.astra("tokens", "create", "--role", "metrics", "--ttl", "never")
    assert made.code == 0, made
    headers = {"authorization": f"Bearer {made.out.strip()}"}
    answer = httpx.get(f"{server.url}/metrics", headers=headers)
    assert answer.status_code == 200 and "astraflow_queue_depth" in answer.text
    alone = {"ASTRA_SERVER": server.url, "ASTRA_TOKEN": made.out.strip()}
    for command in (("whoami",), ("runs", "list"), ("tokens", "create")):
        refused = server.astra(*command, **alone)
        assert "the role of the token does not allow this: metrics" in refused.err, refused


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
    assert "admin, operator, editor, viewer, worker, metrics" in done.err


def test_users_are_created_changed_and_deleted(server: Up) -> None:
    made = server.astra("users", "create", "zoe", "--role", "editor", stdin=f"{PASSWORD}\n")
    assert made.code == 0, made
    assert "Created zoe (editor) of tenant default" in made.err
    assert PASSWORD not in made.out + made.err
    again = server.astra("users", "create", "zoe", "--json", stdin=f"{PASSWORD}\n")
    assert (again.code, again.json["code"]) == (1, "E.USER.CONFLICT")
    for arguments, column in (
        (("role", "zoe", "viewer"), "viewer"),
        (("disable", "zoe"), "disabled"),
        (("enable", "zoe"), "enabled"),
    ):
        assert server.astra("users", *arguments).code == 0
        assert column in server.astra("users", "list").out.split("\t")
    assert server.astra("users", "password", "zoe", stdin="another horse\n").code == 0
    assert server.astra("users", "role", "zoe", "worker").code == 2
    assert server.astra("users", "role", "zoe", "metrics").code == 2
    assert server.astra("users", "create", "nobody", stdin="").code == 2
    assert server.astra("users", "delete", "zoe").code == 2  # without --yes
    assert server.astra("users", "delete", "zoe", "--yes").code == 0
    assert server.astra("users", "disable", "zoe").code == 1


def test_login_keeps_a_token_that_all_commands_use_until_logout(server: Up, tmp_path: Path) -> None:
    server.astra("users", "create", "kim", "--role", "operator", stdin=f"{PASSWORD}\n")
    home = {"HOME": str(tmp_path), "XDG_CONFIG_HOME": ""}

    def elsewhere(*arguments: str, stdin: str = "") -> tuple[int, str, str]:
        return astra(*arguments, cwd=tmp_path, stdin=stdin, **home)

    wrong = elsewhere("login", "--server", server.url, "--user", "kim", stdin="wrong horse\n")
    assert wrong[0] == 2, wrong
    code, out, err = elsewhere(
        "login", "--server", server.url, "--user", "kim", stdin=f"{PASSWORD}\n"
    )
    assert (code, out) == (0, ""), err
    kept = tmp_path / ".config" / "astraflow" / "credentials.json"
    assert f"the token is in {kept}" in err
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert PASSWORD not in kept.read_text()
    code, out, err = elsewhere("whoami")
    assert f"server\t{server.url}\ntenant\tdefault\nsubject\tkim\nrole\toperator\n" in out, err
    assert elsewhere("runs", "list")[0] == 0
    os.chmod(kept, 0o644)
    assert "chmod 600" in elsewhere("whoami")[2]
    os.chmod(kept, 0o600)
    assert elsewhere("logout")[0] == 0
    assert "Not logged in" in elsewhere("logout", "--server", server.url)[2]
    listed = server.astra("tokens", "list", "--json").json["items"]
    (of_kim,) = [one for one in listed if one["subject"] == "kim"]
    assert of_kim["revokedAt"]
    assert of_kim["label"].startswith("astra login on ")


def test_login_with_a_token_and_a_password_at_a_terminal(server: Up, tmp_path: Path) -> None:
    made = server.astra("tokens", "create", "--role", "viewer").out
    home = {"XDG_CONFIG_HOME": str(tmp_path)}
    done = astra("login", "--server", server.url, "--with-token", cwd=tmp_path, stdin=made, **home)
    assert done.code == 0, done
    shown = astra("whoami", "--json", cwd=tmp_path, **home).json
    assert (shown["server"], shown["role"]) == (server.url, "viewer")
    server.astra("users", "create", "lee", stdin=f"{PASSWORD}\n")
    terminal = Terminal("login", "--server", server.url, cwd=tmp_path, **home)
    terminal.read_until("User: ")
    terminal.type("lee\n")
    terminal.read_until(f"Password of lee at {server.url}: ")
    terminal.type(f"{PASSWORD}\n")
    assert terminal.end() == 0, terminal.seen
    assert PASSWORD not in terminal.seen
    assert astra("whoami", "--json", cwd=tmp_path, **home).json["subject"] == "lee"


def test_a_login_link_opens_one_session(server: Up) -> None:
    greeted = server.process.line(lambda one: "/login#" in one)
    printed = server.astra("login-link").out.strip()
    for link in (greeted.split()[-1], printed):
        page, _, code = link.partition("#")
        assert page == f"{server.url}/login"
        body = {"code": code}
        first = httpx.post(f"{server.url}/api/v1/auth/link", json=body, trust_env=False)
        assert (first.status_code, first.json()["subject"]) == (200, "bootstrap")
        again = httpx.post(f"{server.url}/api/v1/auth/link", json=body, trust_env=False)
        assert again.status_code == 401


def test_tenants_are_created_limited_suspended_and_resumed(server: Up) -> None:
    made = server.astra("tenants", "create", "acme", "--weight", "2", "--max-runs", "3", "--json")
    assert (made.code, made.json["maxRuns"]) == (0, 3), made
    changed = server.astra(
        "tenants", "set", "acme", "--max-runs", "none", "--requests-per-second", "5.5", "--json"
    ).json
    assert (changed["maxRuns"], changed["requestsPerSecond"], changed["weight"]) == (None, 5.5, 2.0)
    assert server.astra("tenants", "set", "acme", "--max-runs", "many").code == 2
    row = server.astra("tenants", "list").out.splitlines()[0].split("\t")
    assert row == ["acme", "active", "2", "0", "0", "0"]
    assert "requestsPerSecond\t5.5" in server.astra("tenants", "show", "acme").out
    token = server.astra("tokens", "create", "--tenant", "acme", "--role", "admin").out.strip()
    alone = {"ASTRA_SERVER": server.url, "ASTRA_TOKEN": token}
    assert server.astra("tenants", "list", **alone).code == 1
    assert server.astra("tenants", "show", "acme", **alone).code == 0
    assert server.astra("tenants", "suspend", "acme").code == 2  # without --yes
    assert server.astra("tenants", "suspend", "acme", "--yes").code == 0
    assert server.astra("runs", "list", **alone).code == 2
    assert server.astra("tenants", "resume", "acme").code == 0
    assert server.astra("runs", "list", **alone).code == 0
    assert server.astra("tenants", "suspend", "default", "--yes").code == 1

"""The master key: where it comes from, what it protects against, and its rotation, on real processes."""

from __future__ import annotations

import base64
import os
import sqlite3
import stat
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.definitions import node, workflow
from tests.processes.system import System, running
from tests.secrets.key_service import TOKEN, key_service

VALUE = "the value of the secret"


def put(site: System, name: str, value: str = VALUE) -> None:
    answer = site.rest.http.put(f"/api/v1/secrets/{name}", json={"value": value})
    assert answer.status_code == 200, answer.text


def length_of(site: System, name: str) -> dict[str, Any]:
    """The node that gets the secret, when its run has ended: its result is how long the secret is."""
    code = "def main(key):\n    return {'length': len(key)}\n"
    inputs = {"key": {"secretRef": {"name": name}}}
    view = site.rest.run(workflow(node("core.python", parameters={"code": code, "inputs": inputs})))
    return dict(view["nodes"][0])


def check(site: System, name: str, value: str = VALUE) -> None:
    assert length_of(site, name)["result"] == {"length": len(value)}


def new_key() -> str:
    return base64.b64encode(os.urandom(32)).decode()


def rows(site: System, statement: str, *values: Any) -> list[Any]:
    with closing(sqlite3.connect(site.data / "astraflow.db")) as database, database:
        return database.execute(statement, values).fetchall()


def start(site: System, **environ: str) -> None:
    """Start the scheduler with other settings."""
    site.scheduler.start(**environ)
    site.until_ready()


def refused_start(site: System, **environ: str) -> tuple[int, str]:
    """The code that a scheduler ends with that does not start, and what it says."""
    site.scheduler.start(**environ)
    code = site.scheduler.wait()
    return code, site.scheduler.said()


def test_a_key_is_made_for_its_owner_alone(tmp_path: Path) -> None:
    with running(tmp_path, 1) as site:
        path = site.data / "secrets.key"
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert len(base64.b64decode(path.read_text())) == 32
        put(site, "one")
        check(site, "one")
        site.restart()
        check(site, "one")


def test_a_key_that_others_can_read_is_refused(tmp_path: Path) -> None:
    with running(tmp_path) as site:
        put(site, "one")
    (tmp_path / "scheduler" / "secrets.key").chmod(0o640)
    code, said = refused_start(site)
    assert code == 2 and "chmod 600" in said


def test_a_wrong_key_is_refused_with_a_reason(tmp_path: Path) -> None:
    with running(tmp_path) as site:
        put(site, "one")
    (tmp_path / "scheduler" / "secrets.key").write_text(new_key())
    code, said = refused_start(site)
    assert code == 2 and "encrypted with the master key" in said, said
    (tmp_path / "scheduler" / "secrets.key").write_text("short")
    code, said = refused_start(site)
    assert code == 2 and "base64 of 32 bytes" in said


def test_rows_that_were_swapped_or_changed_cannot_be_read(tmp_path: Path) -> None:
    with running(tmp_path, 1) as site:
        for name in ("one", "two", "three", "four"):
            put(site, name, f"value of {name}")
        ((sealed,),) = rows(site, "SELECT sealed FROM secrets WHERE name = 'two'")
        site.scheduler.kill()
        rows(site, "UPDATE secrets SET sealed = ? WHERE name = 'one'", sealed)
        rows(site, "UPDATE secrets SET sealed = ? WHERE name = 'two'", sealed[:-1] + b"\0")
        rows(site, "UPDATE secrets SET version = 9 WHERE name = 'three'")
        site.start()
        for name in ("one", "two", "three"):
            failed = length_of(site, name)
            assert failed["status"] == "failed"
            assert failed["error"]["code"] == "E.SECRET.UNREADABLE", failed
        check(site, "four", "value of four")


def test_the_key_may_be_a_setting_with_older_ones_behind_it(tmp_path: Path) -> None:
    first, second = new_key(), new_key()
    setting = "ASTRA_SCHEDULER_SECRETS_KEY"
    with running(tmp_path, 1, environ={setting: first}) as site:
        assert not (site.data / "secrets.key").exists()
        put(site, "one")
        site.scheduler.kill()
        start(site, **{setting: f"{second},{first}"})
        check(site, "one")
        assert site.rest.post("secrets/rotate-key", wanted=200) == {"dataKeys": 1}
        site.scheduler.kill()
        start(site, **{setting: second})
        check(site, "one")


def test_a_rotation_of_the_file_leaves_the_new_key_alone(tmp_path: Path) -> None:
    with running(tmp_path, 1) as site:
        put(site, "one")
        path = site.data / "secrets.key"
        before = path.read_text()
        assert site.rest.post("secrets/rotate-key", wanted=200) == {"dataKeys": 1}
        after = path.read_text()
        assert after != before and len(after.split()) == 1
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        check(site, "one")
        put(site, "two")
        site.restart()
        check(site, "one")
        check(site, "two")


@pytest.mark.parametrize("is_wrapped", [False, True])
def test_an_interrupted_rotation_is_finished_at_the_next_start(
    tmp_path: Path, is_wrapped: bool
) -> None:
    """Killed after the new key was written, or after everything was encrypted with it."""
    with running(tmp_path, 1) as site:
        put(site, "one")
        path = site.data / "secrets.key"
        old = path.read_text().strip()
        if is_wrapped:
            site.rest.post("secrets/rotate-key", wanted=200)
        new = path.read_text().strip() if is_wrapped else new_key()
        site.scheduler.kill()
        path.write_text(f"{new}\n{old}\n")
        site.start()
        check(site, "one")
        assert path.read_text().split() == [new]
        ((master,),) = rows(site, "SELECT DISTINCT master_id FROM data_keys")
        assert master
        site.restart()
        check(site, "one")


def test_a_key_service_keeps_the_key(tmp_path: Path) -> None:
    with key_service() as keeper:
        environ = {
            "ASTRA_SCHEDULER_SECRETS_KEY_URL": keeper.url,
            "ASTRA_SCHEDULER_SECRETS_KEY_TOKEN": TOKEN,
        }
        with running(tmp_path, 1, environ=environ) as site:
            assert not (site.data / "secrets.key").exists()
            put(site, "one")
            check(site, "one")
            keeper.renew()
            assert site.rest.post("secrets/rotate-key", wanted=200) == {"dataKeys": 1}
            assert rows(site, "SELECT master_id FROM data_keys") == [("v2",)]
            del keeper.keys["v1"]
            site.restart()
            check(site, "one")
            assert set(keeper.asked) == {"/keys/wrap", "/keys/unwrap"}
        code, said = refused_start(site, ASTRA_SCHEDULER_SECRETS_KEY_TOKEN="wrong")
        assert code == 2 and "it answered 401" in said
    code, said = refused_start(site)
    assert code == 2 and "the key service cannot unwrap" in said


def test_a_key_service_that_fails_while_the_scheduler_serves_is_said(tmp_path: Path) -> None:
    with key_service() as keeper:
        environ = {
            "ASTRA_SCHEDULER_SECRETS_KEY_URL": keeper.url,
            "ASTRA_SCHEDULER_SECRETS_KEY_TOKEN": TOKEN,
        }
        with running(tmp_path, environ=environ) as site:
            for raw, why in (
                (b"no json", "is no JSON"),
                (b"[]", "has no keyId"),
                (b'{"keyId": "v1", "wrapped": "%"}', "has no keyId"),
                (b" " * 2_000_000, "too long"),
            ):
                keeper.raw = raw
                answer = site.rest.http.put("/api/v1/secrets/one", json={"value": VALUE})
                assert answer.status_code == 503, answer.text
                assert answer.json()["code"] == "E.SECRET.KEY_UNAVAILABLE"
                assert why in answer.json()["detail"]
                assert VALUE not in site.scheduler.said()
            keeper.raw = None
            put(site, "one")
            keeper.raw = b'{"plaintext": "c2hvcnQ="}'
            answer = site.rest.http.post("/api/v1/secrets/rotate-key")
            assert (answer.status_code, answer.json()["code"]) == (503, "E.SECRET.KEY_UNAVAILABLE")
            keeper.raw = None
            assert site.rest.post("secrets/rotate-key", wanted=200) == {"dataKeys": 1}


def test_secrets_of_a_tenant_are_its_own_and_the_key_is_the_sites(tmp_path: Path) -> None:
    with running(tmp_path, 1) as site:
        put(site, "one")
        assert site.rest.http.post("/api/v1/tenants", json={"tenant": "acme"}).status_code == 201
        body = {"role": "admin", "tenant": "acme"}
        made = site.rest.post("tokens", body, wanted=201)
        headers = {"Authorization": f"Bearer {made['token']}"}
        http = site.rest.http
        assert http.get("/api/v1/secrets", headers=headers).json()["items"] == []
        assert http.delete("/api/v1/secrets/one", headers=headers).status_code == 404
        theirs = http.put("/api/v1/secrets/one", json={"value": "of acme"}, headers=headers)
        assert theirs.json()["version"] == 1
        assert http.post("/api/v1/secrets/rotate-key", headers=headers).status_code == 403
        assert site.rest.post("secrets/rotate-key", wanted=200) == {"dataKeys": 2}
        ref = {"value": {"secretRef": {"name": "mine"}}}
        put(site, "mine")
        definition = workflow(node("core.echo", parameters=ref))
        refused = http.post("/api/v1/runs", json={"workflow": definition}, headers=headers)
        assert "E.SECRET.NOT_FOUND" in refused.text
        check(site, "one")


def test_who_may_do_what(tmp_path: Path) -> None:
    with running(tmp_path) as site:
        put(site, "one")
        made = site.rest.post("tokens", {"role": "editor"}, wanted=201)
        headers = {"Authorization": f"Bearer {made['token']}"}
        http = site.rest.http
        body = {"value": "x"}
        assert http.put("/api/v1/secrets/a", json=body, headers=headers).status_code == 403
        assert http.delete("/api/v1/secrets/one", headers=headers).status_code == 403
        assert http.post("/api/v1/secrets/rotate-key", headers=headers).status_code == 403
        listed = http.get("/api/v1/secrets", headers=headers)
        assert [one["name"] for one in listed.json()["items"]] == ["one"]
        assert http.get("/api/v1/secrets/one").status_code == 405
        assert http.put("/api/v1/secrets/a b", json=body).status_code == 400
        assert http.put("/api/v1/secrets/a", json={"value": ""}).status_code == 400
        assert http.put("/api/v1/secrets/a", json={"value": "a\0b"}).status_code == 400
        assert http.delete("/api/v1/secrets/nobody").status_code == 404

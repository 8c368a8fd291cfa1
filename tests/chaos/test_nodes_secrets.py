"""Secrets where several schedulers share a store: each must read what any of them encrypts, and none may end because of
what another one has encrypted."""

from __future__ import annotations

import base64
import os
import signal
from pathlib import Path

import pytest

from tests.chaos.test_nodes import TENANTS, Nodes
from tests.chaos.test_nodes_from_outside import Make, set_environ
from tests.chaos.test_nodes_from_outside import pair as pair
from tests.processes.postgres import ask
from tests.processes.waiting import until
from tests.secrets.key_service import TOKEN as KEEPER_TOKEN
from tests.secrets.key_service import key_service

KEY, KEY_FILE = "ASTRA_SCHEDULER_SECRETS_KEY", "ASTRA_SCHEDULER_SECRETS_KEY_FILE"
MASTERS = "SELECT string_agg(DISTINCT master_id, ' ') FROM astraflow.data_keys"
STRANGE = "UPDATE astraflow.data_keys SET master_id = 'of nobody' WHERE tenant = '{}'"


def new_key() -> str:
    return base64.b64encode(os.urandom(32)).decode()


def put(nodes: Nodes, tenant: str, name: str, at: int = 0) -> int:
    """The status of the answer."""
    path = f"/api/v1/secrets/{name}"
    return nodes.at(at, tenant).ask("PUT", path, json={"value": "a value"}).status_code


def restart(nodes: Nodes, number: int, **environ: str) -> None:
    one = nodes.nodes[number]
    one.send(signal.SIGTERM)
    assert one.wait() == 0, one.said()[-2000:]
    set_environ(one, **environ)
    one.start()
    until(lambda: nodes.at(number).status("/readyz") == 200, "it again")


def answers_for_all(nodes: Nodes, at: int) -> bool:
    return all(nodes.at(at, tenant).status("/api/v1/runs") == 200 for tenant in TENANTS)


@pytest.mark.timeout(120)
def test_a_node_with_another_master_key_does_not_start(pair: Make) -> None:
    ours = new_key()
    with pair({KEY: new_key()}, **{KEY: ours}) as nodes:
        nodes.system.start()
        refused = "must begin with a key that the other schedulers of this database have"
        assert nodes.nodes[1].start().wait() == 2
        assert refused in nodes.nodes[1].said() and nodes.url(0) in nodes.nodes[1].said()
        for own in (
            "",
            f"{new_key()},{ours}",
        ):  # it has none; it would encrypt with one that they do not have
            set_environ(nodes.nodes[1], **{KEY: own})
            assert nodes.nodes[1].start().wait() == 2
            assert refused in nodes.nodes[1].said()
        # Alone, too: by what is stored.
        assert nodes.at(0).http.put("/api/v1/secrets/one", json={"value": "v"}).status_code == 200
        nodes.system.scheduler.kill()
        set_environ(nodes.nodes[1], **{KEY: new_key()})
        assert nodes.nodes[1].start().wait() == 2
        assert "encrypted with the master key" in nodes.nodes[1].said()


@pytest.mark.timeout(240)
def test_the_master_key_is_changed_one_node_at_a_time(pair: Make, tmp_path: Path) -> None:
    """As the guide says: below the old one, then above it, then a rotation, then alone; from files here."""
    old, new = new_key(), new_key()
    files = [tmp_path / "one.key", tmp_path / "two.key"]

    def write(*keys: str) -> None:
        for file in files:
            file.write_text("\n".join(keys))
            file.chmod(0o600)

    write(old)
    with pair({KEY_FILE: str(files[1])}, **{KEY_FILE: str(files[0])}) as nodes:
        nodes.start()
        for tenant in TENANTS[:2]:
            assert put(nodes, tenant, "first") == 200
        before = ask(nodes.system.database_url or "", MASTERS)
        for keys in ((old, new), (new, old)):
            write(*keys)
            for number in (0, 1):
                restart(nodes, number)
        # A tenant without a data key gets one now, from an engine that has begun before the rotation.
        for tenant in TENANTS:
            assert put(nodes, tenant, "second") == 200
        assert nodes.at(1).post("secrets/rotate-key", wanted=200) == {"dataKeys": len(TENANTS)}
        after = ask(nodes.system.database_url or "", MASTERS)
        assert len(after.split()) == 1 and after not in before
        assert {file.read_text() for file in files} == {f"{new}\n{old}"}  # they are the operator's
        write(new)
        for number in (0, 1):
            restart(nodes, number)
        for tenant in TENANTS:
            assert put(nodes, tenant, "third", at=1) == 200


@pytest.mark.timeout(180)
def test_a_data_key_that_cannot_be_read_ends_nobody(pair: Make) -> None:
    with pair({}, **{KEY: new_key()}) as nodes:
        nodes.start()
        for tenant in TENANTS:
            assert put(nodes, tenant, "one") == 200
        strange = next(tenant for tenant in TENANTS if nodes.owner_of(tenant) == 1)
        ask(nodes.system.database_url or "", STRANGE.format(strange))
        nodes.nodes[1].kill()
        until(lambda: answers_for_all(nodes, 0), "the other one to take over")
        for tenant in TENANTS:
            assert put(nodes, tenant, "one") == (500 if tenant == strange else 200)
        assert f"the secrets of {strange} cannot be read" in nodes.nodes[0].said()
        assert nodes.nodes[0].is_alive()


@pytest.mark.timeout(180)
def test_a_key_service_that_is_away_delays_the_tenants_that_have_secrets(pair: Make) -> None:
    with key_service() as keeper:
        keyed = {
            "ASTRA_SCHEDULER_SECRETS_KEY_URL": keeper.url,
            "ASTRA_SCHEDULER_SECRETS_KEY_TOKEN": KEEPER_TOKEN,
        }
        with pair({}, **keyed) as nodes:
            nodes.start()
            theirs = [tenant for tenant in TENANTS if nodes.owner_of(tenant) == 1]
            assert len(theirs) >= 2
            assert put(nodes, theirs[0], "one") == 200
            keeper.raw = b"no json"
            nodes.nodes[1].kill()
            others = [tenant for tenant in TENANTS if tenant != theirs[0]]
            served = lambda: all(nodes.at(0, one).status("/api/v1/runs") == 200 for one in others)  # noqa: E731
            until(served, "the other one to take over what needs no key")
            waiting = nodes.at(0, theirs[0]).http.get("/api/v1/runs", timeout=30)
            assert waiting.status_code == 503
            assert "the key service cannot unwrap" in nodes.nodes[0].said()
            keeper.raw = None
            until(lambda: answers_for_all(nodes, 0), "all served when the key service is back")
            assert put(nodes, theirs[0], "two") == 200

"""The vault in a scheduler: versions, packages, references, and rows that were changed or swapped."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec
import pytest

from astraflow.config.problems import ConfigError
from astraflow.core import errors
from astraflow.scheduler.secret_vault import SecretVault
from tests.api.rig import Rig, problem_of, serving
from tests.definitions import node, workflow

NAME = "openai"


@asynccontextmanager
async def vaults() -> AsyncIterator[tuple[Rig, SecretVault]]:
    async with serving() as rig:
        yield rig, rig.scheduler.secrets


def value_of(vault: SecretVault, tenant: str = "default") -> str:
    (row,) = vault.of_tenant(tenant)
    return vault._reveal(row)


async def test_a_version_counts_up_and_the_newest_value_counts() -> None:
    async with vaults() as (_, vault):
        first = await vault.put("default", NAME, "one", ["b", "a", "a"], "ann")
        second = await vault.put("default", NAME, "two", [], "bob")
        assert (first.version, second.version) == (1, 2)
        assert json.loads(first.packages) == ["a", "b"]
        assert (second.created_at, second.updated_by) == (first.created_at, "bob")
        assert value_of(vault) == "two"
        assert b"two" not in second.sealed
        await vault.delete("default", NAME, "ann")
        assert vault.of_tenant("default") == []
        with pytest.raises(errors.NotFound):
            await vault.delete("default", NAME, "ann")


async def test_each_tenant_has_its_own_of_the_same_name_under_its_own_key() -> None:
    async with vaults() as (_, vault):
        ours = await vault.put("default", NAME, "ours", [], "ann")
        theirs = await vault.put("other", NAME, "theirs", [], "eve")
        assert ours.key_id != theirs.key_id
        assert (value_of(vault), value_of(vault, "other")) == ("ours", "theirs")
        await vault.delete("other", NAME, "eve")
        assert value_of(vault) == "ours"
        refusal = vault.refusal("other", NAME, "core")
        assert refusal is not None and refusal[0] is errors.SECRET_NOT_FOUND


async def test_a_secret_for_some_packages_is_for_no_other() -> None:
    async with vaults() as (_, vault):
        await vault.put("default", NAME, "one", ["llm"], "ann")
        assert vault.refusal("default", NAME, "llm") is None
        for package in ("core", "LLM", "", "llm2"):
            refusal = vault.refusal("default", NAME, package)
            assert refusal is not None and refusal[0] is errors.SECRET_SCOPE


async def test_a_row_that_was_changed_or_swapped_cannot_be_read() -> None:
    async with vaults() as (rig, vault):
        one = await vault.put("default", "one", "value of one", [], "ann")
        two = await vault.put("default", "two", "value of two", [], "ann")
        claim = rig.scheduler._current.claim
        changes = (
            msgspec.structs.replace(one, sealed=two.sealed),
            msgspec.structs.replace(one, version=9),
            msgspec.structs.replace(one, sealed=one.sealed[:-1] + b"\0"),
            msgspec.structs.replace(one, sealed=b""),
            msgspec.structs.replace(one, key_id="nobody's"),
        )
        for changed in changes:
            await vault._store.put_secret(claim, changed)
            await vault.load(claim)
            (found,) = [row for row in vault.of_tenant("default") if row.name == "one"]
            with pytest.raises(errors.Refused) as caught:
                vault._reveal(found)
            assert caught.value.code is errors.SECRET_UNREADABLE
            assert "value of" not in caught.value.message
        await vault._store.put_secret(claim, one)
        await vault.load(claim)
        values = {row.name: vault._reveal(row) for row in vault.of_tenant("default")}
        assert values == {"one": "value of one", "two": "value of two"}


async def test_all_values_outlive_a_rotation_and_a_restart() -> None:
    async with vaults() as (rig, vault):
        for tenant in ("default", "other"):
            await vault.put(tenant, NAME, f"of {tenant}", [], "ann")
        stored = vault._store.data_keys_of_site
        before = {row.key_id: row.master_id for row in await stored()}
        assert await vault.rotate("default", "ann") == 2
        after = {row.key_id: row.master_id for row in await stored()}
        assert before.keys() == after.keys()
        assert not set(before.values()) & set(after.values())
        await vault.load(rig.scheduler._current.claim)
        assert (value_of(vault), value_of(vault, "other")) == ("of default", "of other")


async def test_a_data_key_that_was_changed_stops_the_start() -> None:
    async with vaults() as (rig, vault):
        await vault.put("default", NAME, "one", [], "ann")
        (row,) = await vault._store.data_keys()
        claim = rig.scheduler._current.claim
        await vault._store.put_data_key(claim, msgspec.structs.replace(row, wrapped=bytes(60)))
        with pytest.raises(ConfigError, match="it was changed"):
            await vault.load(claim)


@pytest.mark.parametrize("key", ["secretRef", "secretR\\u0065f", "\\u0073ecretRef"])
async def test_a_reference_is_found_however_its_key_is_spelt(key: str) -> None:
    async with vaults() as (rig, vault):
        await vault.put("default", NAME, "one", ["llm"], "ann")
        authored = json.dumps(workflow(node("core.echo", parameters={"value": "here"})))
        for name, code in (("ghost", "E.SECRET.NOT_FOUND"), (NAME, "E.SECRET.SCOPE")):
            body = authored.replace('"here"', f'{{"{key}": {{"name": "{name}"}}}}')
            headers = {"content-type": "application/json"}
            for path, sent in (
                ("workflows/validate", body),
                ("workflows", body),
                ("runs", f'{{"workflow": {body}}}'),
            ):
                answer = await rig.post(f"/api/v1/{path}", content=sent, headers=headers)
                (error,) = problem_of(answer, 422, "E.WORKFLOW.INVALID")["errors"]
                assert (error["pointer"], error["code"]) == ("/nodes/0/parameters/value", code)


@pytest.mark.parametrize("ref", [{"secretRef": {"name": NAME}}, f"=secrets.{NAME}"])
async def test_a_secret_that_a_called_workflow_may_not_have_is_a_problem_of_the_call(
    ref: object,
) -> None:
    async with vaults() as (rig, vault):
        await vault.put("default", NAME, "one", [], "ann")
        callee = workflow(node("core.echo", parameters={"value": ref}))
        assert (await rig.post("/api/v1/workflows", json=callee)).status_code == 201
        calls = node("core.call", call={"workflowId": callee["id"]})
        caller = workflow(node("core.noop"), calls)
        await vault.delete("default", NAME, "ann")
        for path, sent in (("workflows/validate", caller), ("runs", {"workflow": caller})):
            answer = await rig.post(f"/api/v1/{path}", json=sent)
            (error,) = problem_of(answer, 422, "E.WORKFLOW.INVALID")["errors"]
            assert (error["pointer"], error["code"]) == ("/nodes/1/call", "E.SECRET.NOT_FOUND")

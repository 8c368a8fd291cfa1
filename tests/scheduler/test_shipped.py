"""Packages that come with the installation: there for every tenant, and trusted as the installation is."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from astraflow.core import errors
from astraflow.core.workflow import CatalogEntry, Miss, decode_manifest
from astraflow.packages import build_archive
from astraflow.packages.shipped import NAMES, build_shipped, find_shipped, is_shipped
from astraflow.packages.signing import Policy
from astraflow.scheduler.blob_services import BlobServices
from astraflow.scheduler.repository import Rules
from astraflow.store.memory import MemoryStore
from astraflow.store.store import Store
from tests.scheduler.packing import CLOCK, Place, pack

LLM = next(folder for folder in find_shipped() if folder.name == "llm")
TENANTS = ("default", "umbrella")


class Shipping(Place):
    def __init__(self, store: Store, folder: Path, rules: Rules | None = None) -> None:
        super().__init__(store, folder, rules)
        self.services = BlobServices(self.repository, self.copies, CLOCK, ships=True)

    def found(self, tenant: str, node_type: str = "llm.chat", version: str | None = None) -> object:
        package = None if version is None else "llm"
        answer = self.catalogs.of(tenant).find(node_type, package, version)
        return answer.package_name if isinstance(answer, CatalogEntry) else answer


async def opened_place(folder: Path, rules: Rules | None = None) -> Shipping:
    place = Shipping(MemoryStore(), folder, rules)
    await place.begin()
    return place


async def again(place: Shipping) -> Shipping:
    """The scheduler has ended, and another one serves."""
    later = Shipping(place.store, place.spool.parent)
    later.claim = place.claim
    await later.services.begin(place.claim)
    return later


def test_the_digests_are_those_of_this_installation_alone(tmp_path: Path) -> None:
    built = build_shipped(LLM, tmp_path / "stored")
    assert is_shipped(built.sha256)
    assert not is_shipped(build_archive(LLM, tmp_path / "packed").sha256)
    other = tmp_path / "other"
    (other / "astraflow_llm").mkdir(parents=True)
    for path in (*LLM.glob("*.*"), *LLM.glob("astraflow_llm/*.py")):
        (other / path.relative_to(LLM)).write_bytes(path.read_bytes())
    assert is_shipped(build_shipped(other, tmp_path / "same").sha256)
    (other / "README.md").write_text("changed")
    assert not is_shipped(build_shipped(other, tmp_path / "changed").sha256)


@pytest.mark.parametrize("policy", ["warn", "require"])
async def test_every_tenant_has_them_whatever_the_policy(tmp_path: Path, policy: Policy) -> None:
    place = await opened_place(tmp_path, Rules(policy))
    for tenant in TENANTS:
        assert place.repository.names(tenant) == sorted(NAMES)
        row = place.repository.find(tenant, "llm", "1.0.0")
        assert is_shipped(row.sha256)
        assert place.repository.active(tenant, "llm") == "1.0.0"
        assert place.found(tenant) == "llm"
        url = place.repository.archive_url(tenant, "llm", "1.0.0")
        token = url.rpartition("token=")[2]
        assert place.repository.open_signed_url(token, "llm", "1.0.0") == row
    assert place.changes == []


async def test_they_are_stored_once_and_are_there_after_a_restart(tmp_path: Path) -> None:
    place = await opened_place(tmp_path)
    held = place.held()
    later = await again(place)
    assert later.held() == held
    assert len(await place.store.packages()) == len(NAMES)
    assert later.found("umbrella") == "llm"
    assert await later.repository.sweep(CLOCK.wall_ms() + 10**9) == 0


async def test_a_tenant_cannot_replace_one_and_withdraws_it_for_itself_alone(
    tmp_path: Path,
) -> None:
    place = await opened_place(tmp_path)
    with pytest.raises(errors.Conflict) as caught:
        await place.publish(pack(name="llm"), tenant="umbrella")
    assert caught.value.code is errors.PKG_CONFLICT
    generations = {tenant: place.catalogs.generation(tenant) for tenant in TENANTS}
    row = await place.repository.yank("umbrella", "llm", "1.0.0", is_yanked=True, reason="no")
    assert (row.tenant, row.yanked_reason) == ("umbrella", "no")
    assert place.catalogs.generation("umbrella") > generations["umbrella"]
    for one in (place, await again(place)):
        assert one.found("umbrella", version="1.0.0") is Miss.YANKED
        assert one.found("default", version="1.0.0") == "llm"
        assert one.repository.find("default", "llm", "1.0.0").yanked_at is None
    await place.repository.yank("umbrella", "llm", "1.0.0", is_yanked=False)
    assert place.found("umbrella") == "llm"


async def test_taking_back_what_nobody_withdrew_changes_nothing(tmp_path: Path) -> None:
    place = await opened_place(tmp_path)
    row = await place.repository.yank("umbrella", "llm", "1.0.0", is_yanked=False)
    assert row.yanked_at is None
    assert place.changes == []
    assert len(await place.store.packages()) == len(NAMES)


async def test_the_same_archive_is_nothing_new_and_a_later_version_is_the_tenants_own(
    tmp_path: Path,
) -> None:
    place = await opened_place(tmp_path)
    archive = build_shipped(LLM, tmp_path / "built").path.read_bytes()
    assert not await place.publish(archive, tenant="umbrella")
    assert await place.publish(pack("2.0.0", name="llm"), tenant="umbrella")
    versions = [row.version for row in place.repository.versions("umbrella", "llm")]
    assert versions == ["2.0.0", "1.0.0"]
    assert len(place.repository.versions("default", "llm")) == 1
    await place.activate("umbrella", "llm", "1.0.0")
    assert place.repository.active("umbrella", "llm") == "1.0.0"


async def test_their_node_types_and_names_are_theirs(tmp_path: Path) -> None:
    place = await opened_place(tmp_path)
    node = {"type": "llm.chat", "runtimes": {"python": {"handler": "say"}}}
    with pytest.raises(errors.Conflict) as caught:
        await place.publish(pack(nodes=[node]), tenant="umbrella")
    assert "node type llm.chat belongs to package llm" in caught.value.message
    told = decode_manifest((LLM / "manifest.json").read_bytes())
    assert place.catalogs.learn("umbrella", "digest", told) is not None
    assert sum(one.manifest.name == "llm" for one in place.catalogs.known("umbrella")) == 1


async def test_a_tenant_that_had_the_type_first_keeps_it(tmp_path: Path) -> None:
    async with asyncio.timeout(60):
        before = Place(MemoryStore(), tmp_path)
        await before.begin()
        node = {"type": "llm.chat", "runtimes": {"python": {"handler": "say"}}}
        await before.publish(pack(nodes=[node]), tenant="umbrella")
        place = Shipping(before.store, tmp_path)
        await place.services.begin(before.claim)
        assert place.found("umbrella") == "demo"
        assert place.found("default") == "llm"
        assert await place.publish(pack("1.1.0", nodes=[node]), tenant="umbrella")

"""Signed URLs, what workers upload, and what workers report."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec
import pytest

from astraflow.core import errors
from astraflow.core.workflow import CatalogEntry, Miss, core_manifest, decode_manifest
from astraflow.core.workflow.manifest import Manifest
from astraflow.scheduler.catalogs import MAX_LEARNED, Catalogs
from astraflow.scheduler.copies import Copies, Copy, with_current_copy
from astraflow.scheduler.signed_urls import (
    ArchiveGrant,
    DownloadGrant,
    UploadGrant,
    UrlGrant,
    UrlSigner,
)
from astraflow.store.memory import MemoryStore
from astraflow.store.rows import ResourceRow
from tests.packages.archives import manifest
from tests.scheduler.packing import CLOCK, Place, chunks

KEY = ("default", "w1", "run-1/report")


class Later:
    """A clock that is ahead."""

    def __init__(self, ahead_ms: int) -> None:
        self._ahead_ms = ahead_ms

    def now(self) -> float:
        return CLOCK.now()

    def wall_ms(self) -> int:
        return CLOCK.wall_ms() + self._ahead_ms


def refused(signer: UrlSigner, text: str, kind: type[UrlGrant]) -> bool:
    with pytest.raises(errors.Refused) as caught:
        signer.read(text, kind)
    return caught.value.code is errors.AUTH_INVALID_TOKEN


def test_a_signed_url_is_good_for_its_time_its_kind_and_its_secret() -> None:
    signer = UrlSigner([b"secret"], CLOCK)
    grant = ArchiveGrant(tenant="default", name="demo", version="1.0.0", exp=signer.expiry(60))
    text = signer.make(grant)
    assert signer.read(text, ArchiveGrant) == grant
    assert refused(signer, text, DownloadGrant)
    assert refused(signer, text, UploadGrant)
    assert refused(UrlSigner([b"another"], CLOCK), text, ArchiveGrant)
    assert refused(UrlSigner([b"secret"], Later(61_000)), text, ArchiveGrant)
    assert UrlSigner([b"secret"], Later(59_000)).read(text, ArchiveGrant) == grant
    assert UrlSigner([b"another", b"secret"], CLOCK).read(text, ArchiveGrant) == grant
    for broken in ("", "x", text[:-4], f"A{text}", text + "é", "A" * 5_000):
        assert refused(signer, broken, ArchiveGrant)


def upload_grant(copies: Copies) -> UploadGrant:
    return copies.open_upload(copies.upload_url(KEY).rpartition("/")[2])


async def test_who_waits_for_a_copy_is_told_when_it_is_there(tmp_path: Path) -> None:
    place = Place(MemoryStore(), tmp_path)
    await place.begin()
    place.known.add(KEY)
    grant = upload_grant(place.copies)
    async with asyncio.timeout(20), asyncio.TaskGroup() as group:
        waiting = [group.create_task(place.copies.wait_for(KEY, 20)) for _ in range(2)]
        await asyncio.sleep(0)
        copy = await place.copies.receive(grant, chunks(b"body"))
    assert [task.result() for task in waiting] == [True, True]
    assert place.copied == {KEY: copy.text()}
    assert Copy.parse(place.copied[KEY]) == copy
    assert not await place.copies.wait_for(KEY, 0)


async def test_an_upload_ends_at_the_limit_of_its_signed_url(tmp_path: Path) -> None:
    place = Place(MemoryStore(), tmp_path)
    await place.begin()
    grant = msgspec.structs.replace(upload_grant(place.copies), max_bytes=3)
    with pytest.raises(errors.Refused) as caught:
        await place.copies.receive(grant, chunks(b"body"))
    assert caught.value.code is errors.REQUEST_TOO_LARGE
    with pytest.raises(errors.NotFound):
        await place.copies.receive(grant, chunks(b"b"))
    assert place.held() == set()


def told_of(version: str, **fields: object) -> Manifest:
    return decode_manifest(msgspec.json.encode(manifest(version=version, **fields)))


def test_what_a_worker_has_can_be_used_by_its_tenant_alone() -> None:
    catalogs = Catalogs([core_manifest()])
    catalogs.learn("default", "digest", told_of("1.0.0"))
    found = catalogs.of("default").find("demo.say")
    assert isinstance(found, CatalogEntry)
    assert found.package_version == "1.0.0"
    assert catalogs.of("other").find("demo.say") is Miss.TYPE
    assert isinstance(catalogs.of("other").find("core.noop"), CatalogEntry)


def test_what_is_told_again_is_not_built_again() -> None:
    catalogs = Catalogs([])
    catalogs.learn("default", "digest", told_of("1.0.0"))
    catalog, generation = catalogs.of("default"), catalogs.generation("default")
    catalogs.learn("default", "digest", told_of("1.0.0"))
    assert catalogs.of("default") is catalog
    assert catalogs.generation("default") == generation


def test_a_broken_manifest_of_a_worker_is_left_out() -> None:
    catalogs = Catalogs([])
    catalogs.learn("default", "good", told_of("1.0.0"))
    catalogs.learn("default", "bad", told_of("latest"))
    assert len(catalogs.known("default")) == 1
    assert isinstance(catalogs.of("default").find("demo.say"), CatalogEntry)


def test_of_all_that_workers_told_of_the_oldest_is_forgotten() -> None:
    catalogs = Catalogs([])
    for number in range(MAX_LEARNED + 1):
        catalogs.learn("default", f"digest {number}", told_of(f"1.0.{number}"))
    versions = [known.manifest.version for known in catalogs.known("default")]
    assert versions == [f"1.0.{number}" for number in range(1, MAX_LEARNED + 1)]


def test_what_is_published_counts_for_more_than_what_a_worker_says_of_the_same_version() -> None:
    catalogs = Catalogs([])
    catalogs.learn("default", "digest", told_of("1.0.0", description="the worker's"))
    catalogs.publish("default", told_of("1.0.0", description="the published one"))
    (only,) = catalogs.known("default")
    assert only.is_published
    assert only.manifest.body.description == "the published one"


@pytest.mark.parametrize(
    ("metadata", "is_kept"),
    [
        (b'{"sha256": "aa"}', True),
        (b'{"sha256": "bb"}', False),
        (b"{}", True),
        (b'{"sha256": 7}', True),
    ],
)
def test_a_copy_of_other_bytes_than_the_resource_has_now_is_no_copy(
    metadata: bytes, is_kept: bool
) -> None:
    row = ResourceRow(
        tenant="acme",
        worker_id="w1",
        resource_id="r1",
        type="file",
        state="ready",
        created_at=0,
        metadata=metadata,
        blob=Copy("artifacts/x", "aa").text(),
    )
    assert (with_current_copy(row).blob is not None) is is_kept
    bare = msgspec.structs.replace(row, blob=None)
    assert with_current_copy(bare) is bare

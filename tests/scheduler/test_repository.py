"""Publishing, withdrawing, choosing, and finding packages."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import cast
from urllib.parse import parse_qs, urlsplit

import pytest

from astraflow.core import errors
from astraflow.core.workflow import CatalogEntry, Miss, decode_manifest
from astraflow.packages import SigningKey
from astraflow.scheduler.repository import Rules, published_version
from astraflow.store.memory import MemoryStore
from astraflow.store.rows import PackageRow
from astraflow.store.sqlite import SqliteStore
from astraflow.store.store import Claim, Store
from tests.faulty_store import FaultyStore
from tests.scheduler.packing import CLOCK, Place, chunks, pack, signed, trusting

KEY = SigningKey.generate()


async def opened_place(folder: Path, rules: Rules | None = None) -> Place:
    place = Place(MemoryStore(), folder, rules)
    await place.begin()
    return place


def found(place: Place, version: str | None = None, least: str | None = None) -> str | Miss:
    """The version that a node of the tenant gets."""
    answer = place.catalogs.of("default").find("demo.say", "demo", version, least)
    return answer.package_version if isinstance(answer, CatalogEntry) else answer


async def test_a_published_package_can_be_found_read_and_used(tmp_path: Path) -> None:
    place = await opened_place(tmp_path)
    archive = pack()
    assert await place.publish(archive)
    row = place.repository.find("default", "demo", "1.0.0")
    assert row.sha256 == hashlib.sha256(archive).hexdigest()
    assert (row.size_bytes, row.published_by) == (len(archive), "ann")
    pieces = place.repository.read(row, 0, row.size_bytes)
    assert b"".join([piece async for piece in pieces]) == archive
    assert found(place) == "1.0.0"
    assert place.changes == [("default", "ann", "pkg.publish", "demo 1.0.0")]
    assert not list(place.spool.iterdir())


async def test_a_package_belongs_to_its_tenant(tmp_path: Path) -> None:
    place = await opened_place(tmp_path)
    await place.publish(pack(), tenant="other")
    assert found(place) is Miss.PACKAGE
    with pytest.raises(errors.NotFound):
        place.repository.find("default", "demo", "1.0.0")


async def test_the_same_archive_again_changes_nothing_and_another_is_refused(
    tmp_path: Path,
) -> None:
    place = await opened_place(tmp_path)
    assert await place.publish(pack())
    held = place.held()
    assert not await place.publish(pack())
    with pytest.raises(errors.Conflict) as caught:
        await place.publish(pack(description="changed"))
    assert caught.value.code is errors.PKG_CONFLICT
    assert place.held() == held
    assert len(place.changes) == 1


async def test_a_version_that_was_stored_without_an_answer_is_announced_when_it_is_published_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = await opened_place(tmp_path)
    put_package = place.store.put_package

    async def mute(claim: Claim, row: PackageRow) -> bool:
        await put_package(claim, row)
        raise errors.OutcomeUnknown(errors.STORE_UNAVAILABLE, "no answer")

    monkeypatch.setattr(place.store, "put_package", mute)
    with pytest.raises(errors.OutcomeUnknown):
        await place.publish(pack())
    assert place.changes == []
    monkeypatch.undo()
    assert not await place.publish(pack())
    assert not await place.publish(pack())
    assert place.changes == [("default", "ann", "pkg.publish", "demo 1.0.0")]


async def test_a_publisher_that_gives_up_after_the_row_is_stored_does_not_hide_its_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = await opened_place(tmp_path)
    put_package = place.store.put_package

    async def last_word(claim: Claim, row: PackageRow) -> bool:
        is_new = await put_package(claim, row)
        publishing.cancel()  # it arrives while the upload is cleared away
        return is_new

    monkeypatch.setattr(place.store, "put_package", last_word)
    publishing = asyncio.create_task(place.publish(pack()))
    with pytest.raises(asyncio.CancelledError):
        await publishing
    assert place.changes == [("default", "ann", "pkg.publish", "demo 1.0.0")]


async def test_what_is_no_package_is_refused_and_leaves_nothing(tmp_path: Path) -> None:
    place = await opened_place(tmp_path)
    for body in (b"", b"PK\x03\x04 not really", pack(name="core")):
        with pytest.raises(errors.Refused):
            await place.publish(body)
    assert place.held() == set()
    assert not list(place.spool.iterdir())
    assert place.repository.names("default") == []


async def test_an_upload_is_cut_off_at_its_limit(tmp_path: Path) -> None:
    place = await opened_place(tmp_path, Rules(max_bytes=100))
    with pytest.raises(errors.Refused) as caught:
        await place.publish(pack())
    assert caught.value.code is errors.REQUEST_TOO_LARGE
    assert not list(place.spool.iterdir())


async def test_who_must_be_signed_is_published_with_a_trusted_signature_only(
    tmp_path: Path,
) -> None:
    place = await opened_place(tmp_path, trusting(KEY))
    archive = pack()
    for signature in (None, signed(archive, SigningKey.generate())):
        with pytest.raises(errors.Refused) as caught:
            await place.publish(archive, signature)
        assert caught.value.code is errors.PKG_PERMISSION
    with pytest.raises(errors.Refused) as caught:
        await place.publish(archive, signed(pack("2.0.0"), KEY))
    assert caught.value.code is errors.PKG_INVALID
    signature = signed(archive, KEY)
    assert await place.publish(archive, signature)
    assert place.repository.find("default", "demo", "1.0.0").signed_by == "acme"
    row = place.repository.find("default", "demo", "1.0.0")
    assert published_version(row).signature == signature


async def test_nodes_without_a_version_get_the_active_one_else_the_newest_final(
    tmp_path: Path,
) -> None:
    place = await opened_place(tmp_path)
    for version in ("1.0.0", "1.10.0", "1.9.0", "2.0.0rc1"):
        await place.publish(pack(version))
    assert found(place) == "1.10.0" == place.repository.active("default", "demo")
    await place.activate("default", "demo", "1.9.0")
    assert found(place) == "1.9.0" == place.repository.active("default", "demo")
    assert found(place, least="1.10") == "1.10.0"
    assert found(place, least="1.2") == "1.9.0"
    assert found(place, version="1.0.0") == "1.0.0"
    active = await place.activate("default", "demo", "2.0.0rc1")
    assert active.previous == "1.9.0"
    assert found(place) == "2.0.0rc1"


async def test_a_yanked_version_is_chosen_for_nothing_new_but_can_still_be_fetched(
    tmp_path: Path,
) -> None:
    place = await opened_place(tmp_path)
    repository = place.repository
    for version in ("1.0.0", "2.0.0"):
        await place.publish(pack(version))
    await place.activate("default", "demo", "2.0.0")
    await repository.yank("default", "demo", "2.0.0", is_yanked=True, reason="bad", by="ann")
    assert found(place) == "1.0.0" == repository.active("default", "demo")
    assert found(place, version="2.0.0") is Miss.YANKED
    assert published_version(repository.find("default", "demo", "2.0.0")).is_yanked
    await repository.yank("default", "demo", "2.0.0", is_yanked=False)
    assert found(place) == "2.0.0"


async def test_a_yanked_version_stays_so_when_a_worker_tells_of_it(tmp_path: Path) -> None:
    place = await opened_place(tmp_path)
    await place.publish(pack())
    await place.repository.yank("default", "demo", "1.0.0", is_yanked=True)
    row = place.repository.find("default", "demo", "1.0.0")
    place.catalogs.learn("default", "digest", decode_manifest(row.manifest))
    assert found(place, version="1.0.0") is Miss.YANKED


async def test_every_change_makes_a_new_generation_of_the_tenants_catalog(tmp_path: Path) -> None:
    place = await opened_place(tmp_path)
    seen = [place.catalogs.generation("default")]

    def changed() -> bool:
        seen.append(place.catalogs.generation("default"))
        return seen[-1] > seen[-2]

    await place.publish(pack())
    assert changed()
    await place.activate("default", "demo", "1.0.0")
    assert changed()
    await place.repository.yank("default", "demo", "1.0.0", is_yanked=True)
    assert changed()
    await place.publish(pack("3.0.0"), tenant="other")
    assert not changed()


async def test_the_scheduler_of_another_lane_follows_each_change(tmp_path: Path) -> None:
    guest = await opened_place(tmp_path / "guest")
    home = Place(guest.store, tmp_path / "home")
    await home.begin()

    async def is_followed(version: str | Miss) -> bool:
        before = guest.catalogs.generation("other")
        await asyncio.gather(*(guest.repository.refresh("default") for _ in range(3)))
        assert guest.catalogs.generation("other") == before
        return found(guest) == version == found(home)

    assert await is_followed(Miss.PACKAGE)
    await home.publish(pack())
    await home.publish(pack("2.0.0"))
    assert found(guest) is Miss.PACKAGE
    assert await is_followed("2.0.0")
    for version in ("1.0.0", "2.0.0", "1.0.0"):
        await home.activate("default", "demo", version)
        assert await is_followed(version)
    await home.repository.yank("default", "demo", "1.0.0", is_yanked=True)
    assert await is_followed("2.0.0")
    assert guest.repository.pointer("default", "demo") == home.repository.pointer("default", "demo")
    generation = guest.catalogs.generation("default")
    await guest.repository.refresh("default")
    assert guest.catalogs.generation("default") == generation, "nothing has changed"


async def test_a_link_leads_to_its_archive_and_to_no_other(tmp_path: Path) -> None:
    place = await opened_place(tmp_path)
    for version in ("1.0.0", "2.0.0"):
        await place.publish(pack(version))
    row = place.repository.find("default", "demo", "1.0.0")
    parts = urlsplit(place.repository.archive_url("default", "demo", "1.0.0"))
    assert f"{parts.scheme}://{parts.netloc}" == "https://astra.example"
    assert parts.path == "/api/v1/packages/demo/1.0.0/archive"
    (token,) = parse_qs(parts.query)["token"]
    assert place.repository.open_signed_url(token, "demo", "1.0.0") == row
    for wrong, version in ((token, "2.0.0"), (token[:-2] + "AA", "1.0.0"), ("", "1.0.0")):
        with pytest.raises(errors.Refused) as caught:
            place.repository.open_signed_url(wrong, "demo", version)
        assert caught.value.code is errors.AUTH_INVALID_TOKEN


async def test_everything_is_there_for_the_next_scheduler(tmp_path: Path) -> None:
    archive = pack()
    for attempt in range(2):
        store = SqliteStore(tmp_path / "store.db")
        await store.open()
        place = Place(store, tmp_path)
        await place.begin()
        if attempt == 0:
            await place.publish(archive, signed(archive, KEY))
            await place.publish(pack("2.0.0"))
            await place.activate("default", "demo", "1.0.0")
        assert found(place) == "1.0.0"
        assert [row.version for row in place.repository.versions("default", "demo")] == [
            "2.0.0",
            "1.0.0",
        ]
        await store.close()


async def test_a_scheduler_that_serves_nothing_changes_nothing(tmp_path: Path) -> None:
    place = await opened_place(tmp_path)
    await place.publish(pack())
    place.services.end()
    for change in (
        place.publish(pack("2.0.0")),
        place.repository.yank("default", "demo", "1.0.0", is_yanked=True),
    ):
        with pytest.raises(errors.Unavailable):
            await change
    assert found(place) == "1.0.0"


async def test_a_crash_between_blob_and_row_leaves_only_what_is_swept(tmp_path: Path) -> None:
    class Crashing(FaultyStore):
        async def put_package(self, *_: object) -> bool:
            raise errors.StoreError(errors.STORE_UNAVAILABLE, "planted")

    whole = Place(MemoryStore(), tmp_path)
    await whole.begin()
    await whole.publish(pack())
    kept = whole.held()
    broken = Place(cast("Store", Crashing(whole.store)), tmp_path)
    await broken.begin()
    with pytest.raises(errors.StoreError):
        await broken.publish(pack("2.0.0"))
    assert broken.repository.names("default") == ["demo"]
    assert len(broken.held() - kept) == 1
    (broken.spool / "upload-left").write_bytes(b"half")
    assert await whole.services.tidy(0) == 0  # what is young may be under way
    assert await whole.services.tidy(CLOCK.wall_ms() + 60_000) == 2
    assert whole.held() == kept
    assert not list(broken.spool.iterdir())


async def test_an_upload_that_breaks_off_leaves_nothing(tmp_path: Path) -> None:
    place = await opened_place(tmp_path)

    async def half() -> AsyncIterator[bytes]:
        async for chunk in chunks(pack()):
            yield chunk
            raise errors.Refused(errors.REQUEST_INVALID, "the request broke off")

    with pytest.raises(errors.Refused):
        await place.repository.publish("default", half(), None, "ann")
    assert not list(place.spool.iterdir())
    assert place.held() == set()

"""Schedulers that share a store share their blobs, or do not serve."""

from __future__ import annotations

from pathlib import Path

import pytest

from astraflow.clock import SystemClock
from astraflow.core import errors
from astraflow.scheduler.blob_location import MARKER, BlobLocation
from astraflow.scheduler.blobs import Blobs, open_blobs
from astraflow.store.memory import MemoryStore
from astraflow.store.store import Claim


@pytest.fixture
def store() -> MemoryStore:
    """A store that several schedulers share."""
    return MemoryStore(clock=SystemClock(), ttl_s=8.0)


async def claimed(store: MemoryStore) -> Claim:
    claim = await store.claim("one")
    assert claim is not None
    return claim


def place(store: MemoryStore, folder: Path) -> BlobLocation:
    return BlobLocation(store, open_blobs(str(folder), folder), str(folder))


async def test_the_first_marks_its_place_and_the_next_must_have_the_same(
    store: MemoryStore, tmp_path: Path
) -> None:
    claim = await claimed(store)
    shared, other = place(store, tmp_path / "shared"), place(store, tmp_path / "other")
    await other.check()
    await shared.take(claim)
    await place(store, tmp_path / "shared").take(claim)
    for refuses in (other.check(), other.take(claim)):
        with pytest.raises(errors.Refused) as caught:
            await refuses
        assert caught.value.code is errors.BLOBS_FOREIGN
        assert caught.value.pointer == "/blobs_url"
        assert str(tmp_path / "other") in caught.value.message
    assert not (tmp_path / "other" / MARKER).exists()


async def test_a_place_of_another_site_is_refused(store: MemoryStore, tmp_path: Path) -> None:
    await place(store, tmp_path / "here").take(await claimed(store))
    elsewhere = MemoryStore(clock=SystemClock(), ttl_s=8.0)
    await place(elsewhere, tmp_path / "there").take(await claimed(elsewhere))
    with pytest.raises(errors.Refused, match="another one"):
        await place(store, tmp_path / "there").check()


async def test_a_crash_between_marking_and_storing_is_mended(
    store: MemoryStore, tmp_path: Path
) -> None:
    (tmp_path / "site").mkdir()
    (tmp_path / MARKER).write_text("abc\n")
    await place(store, tmp_path).take(await claimed(store))
    assert await store.find_site("blobs_id") == "abc"


async def test_an_operator_can_say_that_another_place_is_meant(
    store: MemoryStore, tmp_path: Path
) -> None:
    await place(store, tmp_path / "old").take(await claimed(store))
    new = place(store, tmp_path / "new")
    with pytest.raises(errors.Refused) as caught:
        await new.check()
    stored = await store.find_site("blobs_id")
    assert stored is not None
    assert stored in caught.value.message
    (tmp_path / "new" / "site").mkdir()
    (tmp_path / "new" / MARKER).write_text(stored)
    await new.check()


async def test_a_store_of_one_machine_has_no_such_rule(tmp_path: Path) -> None:
    store = MemoryStore()
    await place(store, tmp_path).take(await claimed(store))
    assert not (tmp_path / MARKER).exists()
    await place(store, tmp_path / "moved").check()


async def test_a_bucket_that_does_not_answer_stops_nobody(
    store: MemoryStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def silent(self: Blobs, key: str) -> int:
        raise errors.Unavailable(errors.STORE_UNAVAILABLE, "planted")

    claim = await claimed(store)
    monkeypatch.setattr(Blobs, "size", silent)
    await place(store, tmp_path).take(claim)
    assert await store.find_site("blobs_id") is None
    await store.put_site(claim, "blobs_id", "known")
    await place(store, tmp_path).take(claim)

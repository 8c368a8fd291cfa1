"""Blobs in a folder and in a bucket: whole or not at all, and in constant memory."""

from __future__ import annotations

import hashlib
import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from astraflow.core import errors
from astraflow.scheduler import blobs as module
from astraflow.scheduler.blobs import Blobs, open_blobs
from tests.scheduler.bucket import s3_server

PIECE = bytes(range(256)) * 4_096
"""One MiB, with a pattern that shows where it was cut."""


@pytest.fixture(scope="module")
def bucket() -> Iterator[dict[str, str]]:
    with s3_server() as environ:
        yield environ


@pytest.fixture(params=["folder", "bucket"])
def place(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    bucket: dict[str, str],
) -> Blobs:
    if request.param == "folder":
        return open_blobs(None, tmp_path)
    for name, value in bucket.items():
        monkeypatch.setenv(name, value)
    # Idle connections are kept for the next question, which after the last one would look like a leak.
    monkeypatch.setitem(module.CLIENT, "pool_max_idle_per_host", "0")
    return open_blobs(f"s3://astraflow/{tmp_path.name}", tmp_path)


async def pieces(count: int, fail_at: int | None = None) -> AsyncIterator[bytes]:
    for number in range(count):
        if number == fail_at:
            raise ConnectionResetError("the line broke")
        yield PIECE


async def read(blobs: Blobs, key: str, start: int, end: int) -> bytes:
    return b"".join([piece async for piece in blobs.read_range(key, start, end)])


async def test_a_blob_is_read_back_as_it_was_written_whole_and_in_part(place: Blobs) -> None:
    written = await place.put_stream("a/b", pieces(20))
    whole = PIECE * 20
    assert written.size_bytes == len(whole) == await place.size("a/b")
    assert written.sha256 == hashlib.sha256(whole).hexdigest()
    assert await read(place, "a/b", 0, len(whole)) == whole
    assert await read(place, "a/b", 1_048_570, 9_000_003) == whole[1_048_570:9_000_003]
    assert await read(place, "a/b", 5, 5) == b""


async def test_an_empty_blob_is_a_blob(place: Blobs) -> None:
    written = await place.put_stream("empty", pieces(0))
    assert written.size_bytes == 0
    assert await place.exists("empty")
    assert await place.size("empty") == 0


async def test_what_breaks_off_leaves_nothing_under_its_key(place: Blobs) -> None:
    with pytest.raises(errors.Unavailable):
        await place.put_stream("broken", pieces(20, fail_at=15))
    assert not await place.exists("broken")
    assert [one async for one in place.list("")] == []


async def test_what_is_too_large_is_refused_and_not_kept(place: Blobs) -> None:
    with pytest.raises(errors.Refused) as caught:
        await place.put_stream("large", pieces(12), max_bytes=10 * 1024**2)
    assert caught.value.code is errors.REQUEST_TOO_LARGE
    assert not await place.exists("large")


async def test_what_is_not_there_is_not_found_and_may_be_removed(place: Blobs) -> None:
    assert not await place.exists("nothing")
    with pytest.raises(errors.NotFound):
        await place.size("nothing")
    with pytest.raises(errors.NotFound):
        await read(place, "nothing", 0, 1)
    await place.delete("nothing")


async def test_blobs_are_listed_by_folder_and_removed(place: Blobs) -> None:
    for key in ("a/1", "a/2", "b/1"):
        await place.put_stream(key, pieces(1))
    listed = {one.key: one.size_bytes async for one in place.list("a")}
    assert listed == {"a/1": len(PIECE), "a/2": len(PIECE)}
    await place.delete("a/1")
    assert [one.key async for one in place.list("a")] == ["a/2"]


async def test_a_file_that_was_never_finished_is_swept_when_it_is_old(tmp_path: Path) -> None:
    blobs = open_blobs(str(tmp_path), tmp_path)
    await blobs.put_stream("a/whole", pieces(1))
    for name, age_s in (("a/old#1", 100), ("a/new#1", 0)):
        (tmp_path / name).write_bytes(b"half")
        at = (tmp_path / "a/whole").stat().st_mtime - age_s
        os.utime(tmp_path / name, (at, at))
    before = int((tmp_path / "a/whole").stat().st_mtime * 1000) - 50_000
    assert await blobs.sweep(before) == 1
    assert {path.name for path in (tmp_path / "a").iterdir()} == {"whole", "new#1"}


async def test_a_blob_in_a_folder_is_flushed_before_it_is_told_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flushed: list[Path] = []
    monkeypatch.setattr(module, "_flush", flushed.append)

    await open_blobs(None, tmp_path).put_stream("a/b", pieces(1))
    assert flushed == [tmp_path / "blobs" / "a/b"]


@pytest.mark.parametrize("url", ["ftp://somewhere/else", "s3://"])
def test_a_place_that_cannot_be_used_is_refused_with_its_setting(url: str, tmp_path: Path) -> None:
    with pytest.raises(errors.Refused) as caught:
        open_blobs(url, tmp_path)
    assert caught.value.pointer == "/blobs_url"

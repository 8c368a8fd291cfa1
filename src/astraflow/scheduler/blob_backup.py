"""Blobs in a backup: every blob of the location, as it is. A blob is never changed, so that no snapshot is needed."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Iterator

from astraflow.core import errors
from astraflow.scheduler.blob_location import MARKER, STORED, read_marker, refuse_other
from astraflow.scheduler.blobs import Blobs
from astraflow.store.backup import Progress, Source
from astraflow.store.backup_file import BackupReader, BackupWriter, BlobPart

STEP = "blobs"
"""What progress calls them."""


async def check_source(source: Source, blobs: Blobs, name: str) -> None:
    """
    Raises:
        Refused: the blobs of the store are not at this location: the backup would not be whole.
        Unavailable: the location does not answer.
    """
    if "site" not in source.tables:  # an old schema
        return
    columns = ["name", "value"]
    values = {key: value async for rows in source.rows("site", columns) for key, value in rows}
    if STORED in values:
        refuse_other(values[STORED], await read_marker(blobs), name)


async def write_blobs(blobs: Blobs, writer: BackupWriter, progress: Progress) -> None:
    """Put every blob into a backup. One that goes meanwhile was about to be removed, and is left out.

    Raises:
        Unavailable: a blob cannot be read.
    """
    listed = [one async for one in blobs.list("")]
    for done, one in enumerate(listed, 1):
        if not await blobs.exists(one.key):
            continue
        with writer.blob(one.key) as out:
            async for piece in blobs.read_range(one.key, 0, one.size_bytes):
                out.write(piece)
        progress(STEP, done)


async def check_place(reader: BackupReader, blobs: Blobs) -> None:
    """
    Raises:
        Refused: the location belongs to another store.
        Unavailable: it does not answer.
    """
    if not await blobs.exists(MARKER):
        return
    size = await blobs.size(MARKER)
    found = b"".join([piece async for piece in blobs.read_range(MARKER, 0, size)])
    if not any(_is(part, found) for part in reader.manifest.blobs if part.key == MARKER):
        raise errors.Refused(
            errors.STORE_NOT_EMPTY,
            "The location of blobs belongs to another store: it has a marker of its own",
        )


async def restore_blobs(reader: BackupReader, blobs: Blobs, progress: Progress) -> None:
    """Write the blobs of a backup that was verified; those that are there already are left as they are.

    Raises:
        Refused: the backup was altered since it was verified.
        Unavailable: a blob cannot be written.
    """
    for done, part in enumerate(reader.manifest.blobs, 1):
        if part.key == MARKER or not await _is_there(blobs, part):
            await blobs.put_stream(part.key, _pieces(reader.blob(part)))
        progress(STEP, done)


def _is(part: BlobPart, content: bytes) -> bool:
    return part.sha256 == hashlib.sha256(content).hexdigest()


async def _is_there(blobs: Blobs, part: BlobPart) -> bool:
    try:
        return await blobs.size(part.key) == part.size_bytes
    except errors.NotFound:
        return False


async def _pieces(pieces: Iterator[bytes]) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield piece

"""The file of a backup: a ZIP archive with the rows of a store, its blobs if they are wanted, and a manifest.

    tables/NAME.rows    the rows of a table: pieces, each a length (4 bytes, big-endian) and a MessagePack array of
                        rows; a row is an array of its values in the order of the columns that the manifest names
    blobs/KEY           the bytes of a blob
    manifest.json       written last: versions, counts, and the SHA-256 of each of the above

Rule 1: nothing is under the name of the backup until its last byte is flushed.
Rule 2: whatever is read is counted and hashed on the way. What differs from the manifest is refused by its name.
Rule 3: neither side holds more than one piece in memory.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO, Any, Final, Self

import msgspec

from astraflow.core import errors

FORMAT: Final = 1
PRODUCT: Final = "astraflow-backup"
MANIFEST: Final = "manifest.json"
PIECE_BYTES: Final = 1024**2
"""A piece of rows is ended when it has so many; one row may be larger."""
PIECE_ROWS: Final = 1_000
READ_BYTES: Final = 256 * 1024
MAX_MANIFEST_BYTES: Final = 256 * 1024**2
LEVEL: Final = 2
"""Of compression: rows are JSON for the most part, and the next level takes twice the time for a tenth less."""
_MANY: Final = b"\xdd"
"""The head of a MessagePack array whose length takes four bytes."""
_LENGTH: Final = 4


class TablePart(msgspec.Struct, frozen=True, rename="camel"):
    """The rows of one table."""

    name: str
    columns: list[str]
    rows: int
    size_bytes: int
    sha256: str


class BlobPart(msgspec.Struct, frozen=True, rename="camel"):
    """One blob."""

    key: str
    size_bytes: int
    sha256: str


class BackupManifest(msgspec.Struct, frozen=True, rename="camel"):
    """What a backup holds. Times are wall-clock milliseconds."""

    product: str
    format: int
    schema_version: int
    software: str
    store: str
    """The kind of the store: sqlite or postgres."""
    taken_at: int
    epochs: dict[int, int]
    """The epoch of each shard."""
    sequences: dict[str, int]
    """The last number that each table has given to a row, for tables that number their rows."""
    tables: list[TablePart]
    has_blobs: bool
    blobs: list[BlobPart]

    @property
    def rows(self) -> int:
        return sum(table.rows for table in self.tables)


class StoreSnapshot(msgspec.Struct, frozen=True):
    """What a manifest says of the store as a whole, before its rows are read."""

    store: str
    schema_version: int
    software: str
    epochs: dict[int, int]
    sequences: dict[str, int]


def invalid(path: Path, problem: str) -> errors.Refused:
    return errors.Refused(errors.BACKUP_INVALID, f"{problem}: {path}")


# -- writing --------------------------------------------------------------------------------


class BackupWriter:
    """Writes one backup. Use `writing`."""

    def __init__(self, file: IO[bytes]) -> None:
        self._zip = zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=LEVEL)
        self.tables: list[TablePart] = []
        self.blobs: list[BlobPart] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._zip.close()  # one that is thrown away, too: later its file is closed

    @contextmanager
    def table(self, name: str, columns: Sequence[str]) -> Iterator[TableWriter]:
        with self._zip.open(f"tables/{name}.rows", "w", force_zip64=True) as out:
            rows = TableWriter(out)
            yield rows
            rows.flush()
        self.tables.append(TablePart(name, list(columns), rows.count, rows.size, rows.digest()))

    @contextmanager
    def blob(self, key: str) -> Iterator[HashedOut]:
        entry = zipfile.ZipInfo(f"blobs/{key}")
        entry.compress_type = (
            zipfile.ZIP_STORED
        )  # archives, images: they are compressed as they are
        with self._zip.open(entry, "w", force_zip64=True) as out:
            content = HashedOut(out)
            yield content
        self.blobs.append(BlobPart(key, content.size, content.digest()))

    def finish(self, manifest: BackupManifest) -> None:
        self._zip.writestr(MANIFEST, msgspec.json.format(msgspec.json.encode(manifest)))


class HashedOut:
    """Bytes on their way into the archive."""

    def __init__(self, out: IO[bytes]) -> None:
        self._out = out
        self._hash = hashlib.sha256()
        self.size = 0

    def write(self, content: bytes) -> None:
        self._hash.update(content)
        self.size += len(content)
        self._out.write(content)

    def digest(self) -> str:
        return self._hash.hexdigest()


class TableWriter:
    """Rows on their way into the archive, gathered into pieces."""

    def __init__(self, out: IO[bytes]) -> None:
        self._out = HashedOut(out)
        self._encode = msgspec.msgpack.Encoder().encode
        self._rows: list[bytes] = []
        self._bytes = 0
        self.count = 0

    @property
    def size(self) -> int:
        return self._out.size

    def digest(self) -> str:
        return self._out.digest()

    def add(self, row: Sequence[Any]) -> None:
        encoded = self._encode(row)
        self._rows.append(encoded)
        self._bytes += len(encoded)
        self.count += 1
        if self._bytes >= PIECE_BYTES or len(self._rows) >= PIECE_ROWS:
            self.flush()

    def flush(self) -> None:
        if self._rows:
            body = b"".join((_MANY, len(self._rows).to_bytes(_LENGTH), *self._rows))
            self._out.write(len(body).to_bytes(_LENGTH))
            self._out.write(body)
            self._rows.clear()
            self._bytes = 0


@contextmanager
def writing(path: Path) -> Iterator[BackupWriter]:
    """A backup that is at `path` when the block has ended well; the block ends with its manifest.

    Raises:
        Refused: it cannot be written there.
    """
    try:
        handle, name = tempfile.mkstemp(".partial", f".{path.name}.", path.parent)
    except OSError as error:
        raise _unwritable(path, error) from error
    try:
        with os.fdopen(handle, "wb") as file:  # its mode is 0600
            with BackupWriter(file) as writer:
                yield writer
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, path)
        flush_folder(path.parent)
    except OSError as error:
        raise _unwritable(path, error) from error
    finally:
        Path(name).unlink(missing_ok=True)


def flush_folder(folder: Path) -> None:
    """Make the names in a folder durable."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _unwritable(path: Path, error: OSError) -> errors.Refused:
    return errors.Refused(
        errors.BACKUP_UNWRITABLE, f"Cannot write the backup: {error.strerror or error}: {path}"
    )


# -- reading --------------------------------------------------------------------------------


class BackupReader:
    """Reads one backup. Use `reading`."""

    def __init__(self, path: Path, archive: zipfile.ZipFile) -> None:
        self.path = path
        self._zip = archive
        self.manifest = self._read_manifest()

    def rows(self, table: TablePart) -> Iterator[list[list[Any]]]:
        """The rows of a table, piece by piece. Raises: Refused, if they are not those of the manifest."""
        count = 0
        with self._entry(f"tables/{table.name}.rows", f"table {table.name}") as entry:
            content = _HashedIn(entry)
            while head := content.read(_LENGTH):
                try:
                    rows = _decode(content.read(int.from_bytes(head)))
                except msgspec.DecodeError as error:
                    raise invalid(self.path, f"table {table.name} is damaged: {error}") from error
                if any(len(row) != len(table.columns) for row in rows):
                    raise invalid(
                        self.path, f"table {table.name} is damaged: a row has too few values"
                    )
                count += len(rows)
                yield rows
        if content.digest() != table.sha256:
            raise invalid(self.path, f"table {table.name} is damaged: its digest differs")
        if count != table.rows:
            raise invalid(self.path, f"table {table.name} has {count} rows instead of {table.rows}")

    def blob(self, blob: BlobPart) -> Iterator[bytes]:
        """The bytes of a blob, piece by piece. Raises: Refused, if they are not those of the manifest."""
        with self._entry(f"blobs/{blob.key}", f"blob {blob.key}") as entry:
            content = _HashedIn(entry)
            while piece := content.read(READ_BYTES):
                yield piece
        if content.digest() != blob.sha256:
            raise invalid(self.path, f"blob {blob.key} is damaged: its digest differs")

    def verify(self) -> None:
        """Read everything. Raises: Refused, naming the first part that is wrong."""
        manifest = self.manifest
        named = {MANIFEST, *(f"blobs/{blob.key}" for blob in manifest.blobs)}
        named.update(f"tables/{table.name}.rows" for table in manifest.tables)
        unknown = sorted({entry.filename for entry in self._zip.infolist()} - named)
        if unknown:
            raise invalid(self.path, f"the manifest does not name {unknown[0]}")
        for table in manifest.tables:
            for _ in self.rows(table):
                pass
        for blob in manifest.blobs:
            if ".." in PurePosixPath(blob.key).parts or blob.key.startswith("/"):
                raise invalid(self.path, f"the key of a blob leaves its folder: {blob.key}")
            for _ in self.blob(blob):
                pass

    def _read_manifest(self) -> BackupManifest:
        with self._entry(MANIFEST, "the manifest") as entry:
            text = entry.read(MAX_MANIFEST_BYTES)
        try:
            head = msgspec.json.decode(text, type=_Head)
        except msgspec.DecodeError as error:
            raise invalid(self.path, f"the manifest is damaged: {error}") from error
        if head.product != PRODUCT:
            raise invalid(self.path, "not a backup of AstraFlow")
        if head.format > FORMAT:
            raise errors.Refused(
                errors.BACKUP_NEWER,
                f"AstraFlow {head.software} wrote it in format {head.format}, "
                f"this version reads up to {FORMAT}: {self.path}",
            )
        try:
            return msgspec.json.decode(text, type=BackupManifest)
        except msgspec.DecodeError as error:
            raise invalid(self.path, f"the manifest is damaged: {error}") from error

    @contextmanager
    def _entry(self, name: str, what: str) -> Iterator[IO[bytes]]:
        try:
            with self._zip.open(name) as entry:
                yield entry
        except KeyError as error:
            raise invalid(self.path, f"{what} is missing") from error
        except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError) as error:
            raise invalid(self.path, f"{what} is damaged: {error}") from error
        except OSError as error:
            raise invalid(self.path, f"{what} cannot be read: {error.strerror}") from error


class _Head(msgspec.Struct):
    """What every version of a manifest begins with."""

    product: str = ""
    format: int = 0
    software: str = ""


class _HashedIn:
    def __init__(self, entry: IO[bytes]) -> None:
        self._entry = entry
        self._hash = hashlib.sha256()

    def read(self, size: int) -> bytes:
        content = self._entry.read(size)
        self._hash.update(content)
        return content

    def digest(self) -> str:
        return self._hash.hexdigest()


_decode = msgspec.msgpack.Decoder(list[list[Any]]).decode


@contextmanager
def reading(path: Path) -> Iterator[BackupReader]:
    """A backup whose manifest has been read; `verify` reads the rest.

    Raises:
        Refused: there is none, it is not whole, or a newer version wrote it.
    """
    try:
        archive = zipfile.ZipFile(path)
    except zipfile.BadZipFile as error:
        raise invalid(
            path, "not a whole backup: its end is missing, or it is another file"
        ) from error
    except OSError as error:
        raise invalid(path, f"the file cannot be read: {error.strerror}") from error
    with archive:
        yield BackupReader(path, archive)

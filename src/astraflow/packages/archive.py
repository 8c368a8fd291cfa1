"""A package archive (`.cwx`): checked as a whole before a byte of it is written, and unpacked counting.

Rule 1: `check_archive` reads the table of contents and the manifest, and refuses by the entry or the pointer.
Rule 2: sizes are believed when the bytes have been counted, not before: an entry that inflates to more or fewer bytes
        than it said, or to others, is refused where it is read.
Rule 3: an archive inside an archive is a file like any other. Nobody opens it, so it can be no bomb.
Rule 4: files get the modes that we give them: 0644, and 0755 for hooks and what is executable in `scripts/`.
"""

from __future__ import annotations

import hashlib
import os
import zlib
from collections.abc import Iterator
from io import BufferedReader
from pathlib import Path, PurePosixPath
from typing import BinaryIO, Final

import msgspec

from astraflow.core import errors
from astraflow.core.workflow.decoding import decode_manifest
from astraflow.core.workflow.limits import MAX_MANIFEST_BYTES
from astraflow.core.workflow.manifest import Manifest, ManifestBody
from astraflow.core.workflow.manifest_rules import validate_manifest
from astraflow.core.workflow.problems import InvalidDocument, Problems, pointer_token
from astraflow.packages.entries import ArchiveEntry, Limits, check_rows
from astraflow.packages.requirements import without_unpinned
from astraflow.packages.toc import STORED, read_rows, refuse

MANIFEST: Final = "manifest.json"
CODE_FOLDERS: Final = ("", "adapters/")
"""Where a package's modules may lie: beside the manifest, or in the folder of seed 002 §3."""
SCRIPTS: Final = "scripts/"
_CHUNK_BYTES: Final = 1024 * 1024


class Archive(msgspec.Struct, frozen=True):
    """An archive that was checked. Its contents are counted when they are unpacked."""

    path: Path
    manifest: Manifest
    entries: dict[str, ArchiveEntry]
    sha256: str
    size_bytes: int

    @property
    def requirements(self) -> tuple[str, ...]:
        """The dependencies that the manifest names."""
        python = self.manifest.body.python
        return tuple(python.dependencies) if python is not None else ()

    @property
    def manifest_sha256(self) -> str:
        return hashlib.sha256(self.manifest.raw).hexdigest()


def check_archive(
    path: Path,
    *,
    limits: Limits | None = None,
    name: str | None = None,
    version: str | None = None,
    unpinned: bool = False,
) -> Archive:
    """Check everything of an archive that can be known without unpacking it. Next: `unpack`.

    `name` and `version` are what was asked for, if it was asked for by name. `unpinned` allows dependencies without an
    exact version.

    Raises:
        Refused: it is no package that may be installed.
        OSError: it cannot be read.
    """
    limits = limits or Limits()
    with path.open("rb") as file:
        size_bytes = os.fstat(file.fileno()).st_size
        if size_bytes > limits.archive_bytes:
            refuse(f"the archive is larger than {limits.archive_bytes} bytes: {size_bytes}")
        entries = check_rows(read_rows(file, size_bytes, limits.entries), limits)
        manifest = _read_manifest(file, entries, unpinned)
        sha256 = digest_of(file)
    for field, wanted, found in (
        ("name", name, manifest.name),
        ("version", version, manifest.version),
    ):
        if wanted is not None and wanted != found:
            raise errors.Refused(
                errors.PKG_INVALID,
                f"the package in the archive has another {field} than {wanted}: {found}",
                pointer=f"/{field}",
            )
    problems = Problems(only=errors.PKG_INVALID)
    _check_adapters(manifest.body, entries, problems)
    _check_files(manifest.body, entries, problems)
    if found_problems := problems.found():
        raise InvalidDocument(errors.PKG_INVALID, found_problems)
    return Archive(path, manifest, entries, sha256, size_bytes)


def check_contents(archive: Archive) -> None:
    """Inflate and count everything, keeping nothing.

    Raises:
        Refused: an entry does not hold what the table of contents says.
        OSError: the archive cannot be read.
    """
    with archive.path.open("rb") as file:
        for entry in archive.entries.values():
            for _ in _inflate(file, entry):
                continue


def unpack(archive: Archive, into: Path) -> None:
    """Write the files of an archive into a folder that is there and empty.

    Raises:
        Refused: an entry does not hold what the table of contents says; remove the folder.
        OSError: the archive cannot be read, or a file not be written.
    """
    hooks = archive.manifest.body.hooks
    listed = {*hooks.install, *hooks.uninstall} if hooks is not None else set()
    with archive.path.open("rb") as file:
        for entry in archive.entries.values():
            is_script = entry.is_executable and entry.name.startswith(SCRIPTS)
            mode = 0o755 if entry.name in listed or is_script else 0o644
            path = into / entry.name
            path.parent.mkdir(parents=True, exist_ok=True)
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
            with open(os.open(path, flags, mode), "wb") as out:
                os.fchmod(out.fileno(), mode)  # whatever the umask is
                for piece in _inflate(file, entry):
                    out.write(piece)


def digest_of(file: BufferedReader) -> str:
    """The sha256 of an open file, from its first byte."""
    file.seek(0)
    return hashlib.file_digest(file, "sha256").hexdigest()


def _inflate(file: BinaryIO, entry: ArchiveEntry) -> Iterator[bytes]:
    """The bytes of an entry, piece by piece, and never more than it said."""
    row = entry.row
    file.seek(row.begin)
    left_packed = row.packed_bytes
    left, crc = row.size_bytes, 0
    unpacker = None if row.method == STORED else zlib.decompressobj(-zlib.MAX_WBITS)
    while left_packed:
        packed = file.read(min(_CHUNK_BYTES, left_packed))
        if not packed:
            refuse(f"the archive is cut off in the entry: {row.name[:80]!r}")
        left_packed -= len(packed)
        for piece in _pieces(unpacker, packed, row.name):
            left -= len(piece)
            if left < 0:
                break
            crc = zlib.crc32(piece, crc)
            yield piece
        if left < 0:
            break
    if left or (unpacker is not None and (not unpacker.eof or unpacker.unused_data)):
        refuse(f"the entry does not hold as many bytes as it says: {row.name[:80]!r}")
    if crc != row.crc:
        refuse(f"the entry's checksum is wrong: {row.name[:80]!r}")


def _pieces(unpacker: zlib._Decompress | None, packed: bytes, name: str) -> Iterator[bytes]:
    if unpacker is None:
        yield packed
        return
    while packed and not unpacker.eof:
        try:
            yield unpacker.decompress(packed, _CHUNK_BYTES)
        except zlib.error as problem:
            refuse(f"the entry cannot be inflated ({problem}): {name[:80]!r}")
        packed = unpacker.unconsumed_tail


def _read_manifest(file: BinaryIO, entries: dict[str, ArchiveEntry], unpinned: bool) -> Manifest:
    entry = entries.get(MANIFEST)
    if entry is None:
        refuse(f"the archive has no entry: {MANIFEST}")
    if entry.size_bytes > MAX_MANIFEST_BYTES:
        refuse(f"{MANIFEST} is larger than {MAX_MANIFEST_BYTES} bytes: {entry.size_bytes}")
    manifest = decode_manifest(b"".join(_inflate(file, entry)))
    problems = validate_manifest(manifest)
    python = manifest.body.python
    if unpinned and python is not None:
        problems = without_unpinned(problems, python.dependencies)
    if problems:
        raise InvalidDocument(errors.PKG_INVALID, problems)
    return manifest


def _check_adapters(
    body: ManifestBody, entries: dict[str, ArchiveEntry], problems: Problems
) -> None:
    for place, adapter in enumerate(body.adapters):
        module = adapter.entrypoint.partition(":")[0]
        if not _has_module(module, entries):
            message = f"the entrypoint's module is not in the archive: {module}"
            problems.add(f"/adapters/{place}/entrypoint", errors.PKG_INVALID, message)
    for place, node in enumerate(body.nodes):
        for runtime, settings in node.runtimes.items():
            module, colon, _ = (settings.handler or "").partition(":")
            if colon and not _has_module(module, entries):
                pointer = f"/nodes/{place}/runtimes/{pointer_token(runtime)}/handler"
                message = f"the handler's module is not in the archive: {module[:80]!r}"
                problems.add(pointer, errors.PKG_INVALID, message)


def _has_module(module: str, entries: dict[str, ArchiveEntry]) -> bool:
    path = module.replace(".", "/")
    return any(
        f"{folder}{path}{ending}" in entries
        for folder in CODE_FOLDERS
        for ending in (".py", "/__init__.py")
    )


def _check_files(body: ManifestBody, entries: dict[str, ArchiveEntry], problems: Problems) -> None:
    hooks = {} if body.hooks is None else {"install": body.hooks.install}
    if body.hooks is not None:
        hooks["uninstall"] = body.hooks.uninstall
    for hook, scripts in hooks.items():
        for place, script in enumerate(scripts):
            entry = entries.get(script)
            if entry is None or not entry.is_executable:
                lack = "not in the archive" if entry is None else "not executable in the archive"
                message = f"the hook is {lack}: {script}"
                problems.add(f"/hooks/{hook}/{place}", errors.PKG_INVALID, message)
    base = "/resources" if isinstance(body.resources, list) else "/resources/files"
    folders = {f"{folder}/" for name in entries for folder in PurePosixPath(name).parents}
    for place, file in enumerate(body.resource_files()):
        is_inside = file.path in entries or f"{file.path}/" in folders
        if not is_inside and (file.url is None or file.sha256 is None):
            message = f"the file is not in the archive and has no url with a sha256: {file.path}"
            problems.add(f"{base}/{place}", errors.PKG_INVALID, message)
        if is_inside and file.url is not None:
            message = f"the file is in the archive and has a url: {file.path}"
            problems.add(f"{base}/{place}/url", errors.PKG_INVALID, message)

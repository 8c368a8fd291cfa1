"""From a folder to an archive: the same bytes for the same files, wherever and whenever it is built."""

from __future__ import annotations

import os
import shutil
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from astraflow.core import errors
from astraflow.core.workflow.decoding import decode_manifest
from astraflow.core.workflow.manifest import Manifest
from astraflow.packages.archive import MANIFEST, check_archive
from astraflow.packages.entries import Limits
from astraflow.packages.toc import refuse

SUFFIX: Final = ".cwx"
_TIME: Final = (1980, 1, 1, 0, 0, 0)
"""The earliest that a zip can say."""
_LEVEL: Final = 6
_CHUNK_BYTES: Final = 1024 * 1024
_LEFT_OUT: Final = frozenset({"__pycache__", "node_modules", "venv"})
_LEFT_OUT_AT_ROOT: Final = frozenset({"dist", "tests"})
_KEY_SUFFIXES: Final = frozenset({".key", ".pem"})
_KEY_BYTES: Final = 64 * 1024
_LEFT_OUT_SUFFIXES: Final = (".pyc", ".pyo", ".egg-info", SUFFIX)


class Built(msgspec.Struct, frozen=True):
    """An archive that was built and checked."""

    path: Path
    sha256: str
    size_bytes: int
    manifest: Manifest


def build_archive(
    folder: Path, out_dir: Path, *, version: str | None = None, is_compressed: bool = True
) -> Built:
    """Pack a folder with a `manifest.json` into `{name}-{version}.cwx`. Next: `sign` it, publish it.

    Caches, tests, and everything whose name begins with a dot are left out: secrets and environments lie there.
    `version` takes the place of the manifest's own. Without compression the bytes are the same on every machine.

    Raises:
        Refused: the folder is no package; the message names what is wrong.
        OSError: something cannot be read or written.
    """
    manifest = _manifest(folder, version)
    hooks = manifest.body.hooks
    listed = {*hooks.install, *hooks.uninstall} if hooks is not None else set()
    out_dir.mkdir(parents=True, exist_ok=True)
    handle, unfinished_name = tempfile.mkstemp(dir=out_dir, prefix=".building-")
    unfinished = Path(unfinished_name)
    try:
        with open(handle, "wb") as out, zipfile.ZipFile(out, "w") as packed:
            for name, path in sorted(_files(folder)):
                if name == MANIFEST:
                    method = zipfile.ZIP_DEFLATED if is_compressed else zipfile.ZIP_STORED
                    packed.writestr(_info(name, False, method), manifest.raw)
                else:
                    is_executable = name in listed or bool(path.stat().st_mode & 0o100)
                    method = _method(path) if is_compressed else zipfile.ZIP_STORED
                    _write(packed, path, _info(name, is_executable, method))
        checked = check_archive(unfinished)
        final = out_dir / f"{manifest.name}-{manifest.version}{SUFFIX}"
        unfinished.chmod(0o644)
        unfinished.replace(final)
    finally:
        unfinished.unlink(missing_ok=True)
    return Built(final, checked.sha256, checked.size_bytes, checked.manifest)


def _manifest(folder: Path, version: str | None) -> Manifest:
    try:
        manifest = decode_manifest((folder / MANIFEST).read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        raise errors.Refused(
            errors.PKG_INVALID, f"the folder has no {MANIFEST}: {folder}"
        ) from None
    if version is None or version == manifest.version:
        return manifest
    changed = {**manifest.document(), "version": version}
    return decode_manifest(msgspec.json.format(msgspec.json.encode(changed), indent=2) + b"\n")


def _files(folder: Path) -> Iterator[tuple[str, Path]]:
    for at, folders, names in os.walk(folder):
        is_root = Path(at) == folder
        folders[:] = [name for name in folders if not _is_left_out(name, is_root)]
        for name in (*folders, *names):
            path = Path(at, name)
            if path.is_symlink() and not _is_left_out(name, is_root):
                refuse(f"a package holds no links, put the file there: {path}")
        for name in names:
            path = Path(at, name)
            if not _is_left_out(name, is_root):
                _refuse_private_key(path)
                yield path.relative_to(folder).as_posix(), path


def _refuse_private_key(path: Path) -> None:
    """What is published is read by everybody; a key in it can sign whatever its finder likes."""
    if path.suffix not in _KEY_SUFFIXES or path.stat().st_size > _KEY_BYTES:
        return
    if b"PRIVATE KEY-----" in path.read_bytes():
        refuse(f"this is a private key, keep it outside the package: {path}")


def _is_left_out(name: str, is_root: bool) -> bool:
    return (
        name.startswith(".")
        or name in _LEFT_OUT
        or (is_root and name in _LEFT_OUT_AT_ROOT)
        or name.endswith(_LEFT_OUT_SUFFIXES)
    )


def _write(packed: zipfile.ZipFile, path: Path, info: zipfile.ZipInfo) -> None:
    info.file_size = path.stat().st_size
    with path.open("rb") as file, packed.open(info, "w") as out:
        shutil.copyfileobj(file, out, _CHUNK_BYTES)


def _info(name: str, is_executable: bool, method: int) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name, _TIME)
    info.create_system = 3  # Unix, wherever it is built: the modes are told in its way
    info.external_attr = (0o100755 if is_executable else 0o100644) << 16
    info.compress_type = method
    info._compresslevel = _LEVEL  # type: ignore[attr-defined]
    return info


def _method(path: Path) -> int:
    """A file that would look like a bomb is not packed at all."""
    size_bytes = path.stat().st_size
    limits = Limits()
    if size_bytes <= limits.ratio_floor_bytes:
        return zipfile.ZIP_DEFLATED
    packer = zlib.compressobj(_LEVEL, zlib.DEFLATED, -zlib.MAX_WBITS)
    packed_bytes = 0
    with path.open("rb") as file:
        while piece := file.read(_CHUNK_BYTES):
            packed_bytes += len(packer.compress(piece))
    packed_bytes += len(packer.flush())
    is_bomb = size_bytes > limits.ratio * packed_bytes
    return zipfile.ZIP_STORED if is_bomb else zipfile.ZIP_DEFLATED

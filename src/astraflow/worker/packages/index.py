"""The index of installed packages on disk. Every entry is complete.

`packages/<name>/<version>/` contains the files of a package, its environment in `.venv` and its record in
`.install.json`. It is created by one rename, after everything is on disk, and removed by one rename. Incomplete
packages are in `packages/.staging/`, which each boot empties.
"""

from __future__ import annotations

import asyncio
import ctypes
import hashlib
import logging
import os
import secrets
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Final, Literal, ParamSpec, TypeVar

import msgspec

from astraflow.core.workflow.manifest_rules import is_package_name
from astraflow.core.workflow.versions import parse_version
from astraflow.packages.archive import MANIFEST

P = ParamSpec("P")
T = TypeVar("T")

FOLDER: Final = "packages"
STAGING: Final = ".staging"
RECORD: Final = ".install.json"
ENVIRONMENT: Final = ".venv"

_log: Final = logging.getLogger(__name__)


class Installed(msgspec.Struct, frozen=True):
    """The record of an installed version."""

    name: str
    version: str
    sha256: str
    """Of the archive that it came from."""
    manifest_sha256: str
    python: str
    installed_ms: int
    """Wall clock; when it was last asked for, which is what counts for what is kept."""
    isolation: Literal["package", "attempt"] = "package"
    signed_by: str | None = None
    is_wanted: bool = False
    """It was asked for again after it had been let go as too old: it stays until it is told to go."""

    @property
    def key(self) -> tuple[str, str]:
        return self.name, self.version


class PackageIndex:
    """The folder itself. All methods block; one thread at a time."""

    def __init__(self, data_dir: Path) -> None:
        self.root = data_dir.absolute() / FOLDER
        self._staging = self.root / STAGING

    def open(self) -> list[Installed]:
        """Empty the staging folder and tell what is installed. Call it before anything else.

        Raises:
            OSError: the folder cannot be used.
        """
        self._staging.mkdir(parents=True, exist_ok=True)
        for left in self._staging.iterdir():
            self.discard(left)
        found: list[Installed] = []
        for folder in sorted(self.root.glob("[!.]*/*")):
            installed = self._read(folder)
            if installed is None:
                _log.warning("incomplete package ignored: %s", folder)
            else:
                found.append(installed)
        return found

    def folder(self, name: str, version: str) -> Path:
        # They become a path: nothing but the manifest's rules has kept slashes out.
        assert is_package_name(name), "a name was not checked"
        assert parse_version(version) is not None, "a version was not checked"
        return self.root / name / version

    def python(self, name: str, version: str) -> Path:
        return self.folder(name, version) / ENVIRONMENT / "bin" / "python"

    def manifest(self, name: str, version: str) -> bytes:
        return (self.folder(name, version) / MANIFEST).read_bytes()

    def new_staging(self) -> Path:
        path = self._staging / secrets.token_hex(8)
        path.mkdir()
        return path

    def discard(self, path: Path) -> None:
        """Remove a file or a tree of the staging folder, and be content if something of it stays."""
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)

    def place(self, prepared: Path, installed: Installed) -> None:
        """Make a prepared folder the package. When this returns, it is one, also after a loss of power.

        Raises:
            OSError: it could not be done, and the version is not installed.
        """
        record = prepared / RECORD
        record.write_bytes(msgspec.json.encode(installed))
        _sync_file_system(record)
        target = self.folder(*installed.key)
        target.parent.mkdir(exist_ok=True)
        if target.exists():  # one that was not whole, and so never offered
            self.discard(self.take_away(*installed.key))
        prepared.rename(target)
        for folder in (target.parent, self.root):
            _sync_folder(folder)

    def take_away(self, name: str, version: str) -> Path:
        """Move a version to the staging folder: from now on it is not installed."""
        folder = self.folder(name, version)
        path = self._staging / secrets.token_hex(8)
        folder.rename(path)
        _sync_folder(folder.parent)
        return path

    def rewrite(self, installed: Installed) -> None:
        """Change the record of a version."""
        write_durably(self.folder(*installed.key) / RECORD, msgspec.json.encode(installed))

    def _read(self, folder: Path) -> Installed | None:
        try:
            installed = msgspec.json.decode((folder / RECORD).read_bytes(), type=Installed)
            digest = hashlib.sha256((folder / MANIFEST).read_bytes()).hexdigest()
        except (OSError, msgspec.DecodeError):
            return None
        is_right = installed.key == (folder.parent.name, folder.name)
        is_whole = is_right and digest == installed.manifest_sha256
        # The interpreter of the environment may have been removed from the machine.
        return installed if is_whole and self.python(*installed.key).exists() else None


async def to_the_end(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Do work on files in a thread, and be there when it ends, also if we are cancelled: it cannot be interrupted, and
    what comes next must not meet it."""
    task = asyncio.ensure_future(asyncio.to_thread(work, *args, **kwargs))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        raise


def write_durably(path: Path, content: bytes) -> None:
    """Replace a file: old or new, never half."""
    fresh = path.with_name(f"{path.name}.new")
    with fresh.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)
    _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _sync_file_system(path: Path) -> None:
    """One call for the thousands of files of an environment, where a call for each takes minutes."""
    handle = os.open(path, os.O_RDONLY)
    try:
        if ctypes.CDLL(None, use_errno=True).syncfs(handle) != 0:
            raise OSError(ctypes.get_errno(), "the disk did not take the files", str(path))
    finally:
        os.close(handle)

"""The file back end: each file is in a folder of its own, whose name is a token that the worker has made.

`<root>/<two digits>/<token>/<name>`. A file comes in by a rename and leaves by a rename into `trash`, which is emptied
by a thread: neither takes long, and whatever a crash leaves in between has no row and is swept.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import shutil
import stat
from collections.abc import Collection
from pathlib import Path
from typing import Final, Literal, NamedTuple

from astraflow.core import errors
from astraflow.worker.resources.resource import invalid

FileState = Literal["whole", "changed", "missing"]

PIECE_BYTES: Final = 1024 * 1024
RESOURCES: Final = "resources"
"""Below the folder of a worker."""
TRASH: Final = "trash"
STRAY_S: Final = 3600.0
"""A folder without a row may be one that a handler is about to register. After that long nobody is."""

_TOKEN: Final = re.compile(r"[0-9a-f]{32}")
_NAME: Final = re.compile(r"[0-9A-Za-z_-][0-9A-Za-z._-]{0,99}")
_UNSAFE: Final = re.compile(r"[^0-9A-Za-z._-]")


def empty_trash(folder: Path) -> None:
    """Delete what a worker's earlier boot has discarded. Before the database is opened, which needs room itself."""
    shutil.rmtree(folder / RESOURCES / TRASH, ignore_errors=True)


class StoredFile(NamedTuple):
    """A file in its folder, as it was when its digest was made."""

    token: str
    name: str
    size_bytes: int
    mtime_ns: int
    sha256: str


class FileBackend:
    """The files below `root`. `source` is the only folder that files are taken from."""

    def __init__(self, root: Path, source: Path) -> None:
        self.root = root
        self._source = source
        self._trash = root / TRASH
        self._trash.mkdir(parents=True, exist_ok=True, mode=0o700)

    def path_of(self, token: str, name: str) -> Path:
        return self.root / token[:2] / token / name

    def take(self, path: Path) -> StoredFile:
        """Move a file in and read it once.

        Raises:
            Refused: it is no file, or not in the source folder.
        """
        self._check_source(path)
        token = secrets.token_hex(16)
        name = _UNSAFE.sub("_", path.name).lstrip(".")[:100] or "file"
        home = self.path_of(token, name)
        try:
            home.parent.mkdir(parents=True, mode=0o700)
            path.rename(home)
            size, mtime_ns, digest = _read(home)
        except OSError as problem:
            self.discard(token)
            raise invalid(f"the file cannot be taken: {problem.strerror}") from problem
        except errors.Refused:
            self.discard(token)
            raise
        return StoredFile(token, name, size, mtime_ns, digest)

    def check(self, filed: StoredFile) -> None:
        """Look at a file that a host says it has put here. Nothing that it says is believed but the digest.

        Raises:
            Refused: it is not there, is no file, or is another than it was when its digest was made.
        """
        if not _TOKEN.fullmatch(filed.token) or not _NAME.fullmatch(filed.name):
            raise invalid("no file of the worker can have this name")
        path = self.path_of(filed.token, filed.name)
        try:
            is_ours = all(stat.S_ISDIR(os.lstat(folder).st_mode) for folder in path.parents[:2])
            found = os.lstat(path)
        except OSError as problem:
            raise invalid(f"the file is not there: {problem.strerror}") from problem
        if not is_ours or not stat.S_ISREG(found.st_mode):
            raise invalid(f"this is no plain file: {filed.name}")
        if (found.st_size, found.st_mtime_ns) != (filed.size_bytes, filed.mtime_ns):
            raise invalid(f"the file has changed since its digest was made: {filed.name}")

    def state_of(self, token: str, name: str, size_bytes: int, mtime_ns: int) -> FileState:
        try:
            found = os.lstat(self.path_of(token, name))
        except OSError:
            return "missing"
        is_same = (found.st_size, found.st_mtime_ns) == (size_bytes, mtime_ns)
        return "whole" if is_same and stat.S_ISREG(found.st_mode) else "changed"

    # -- letting go -------------------------------------------------------------------------

    def discard(self, token: str) -> None:
        """Take the folder away at once; what is in it is deleted by `empty_trash`."""
        if not _TOKEN.fullmatch(token):
            return
        folder = self.root / token[:2] / token
        try:
            folder.rename(self._trash / token)
        except FileNotFoundError:
            return
        except OSError:
            shutil.rmtree(folder, ignore_errors=True)

    def empty_trash(self) -> None:
        """Delete what was discarded. It may take a while: call it in a thread."""
        for entry in os.scandir(self._trash):
            if entry.is_dir(follow_symlinks=False):
                shutil.rmtree(entry.path, ignore_errors=True)
            else:
                Path(entry.path).unlink(missing_ok=True)

    def sweep(self, known: Collection[str], before_s: float) -> None:
        """Delete folders that nobody knows and nothing has touched since then, and empty the trash. For a thread."""
        for folder in self._folders():
            for entry in os.scandir(folder):
                is_old = _changed_s(entry) < before_s
                if entry.name not in known and is_old:
                    shutil.rmtree(entry.path, ignore_errors=True)
        self.empty_trash()

    def _folders(self) -> list[Path]:
        entries = [one for one in os.scandir(self.root) if one.name != TRASH]
        return [Path(one.path) for one in entries if one.is_dir(follow_symlinks=False)]

    def _check_source(self, path: Path) -> None:
        try:
            mode = os.lstat(path).st_mode
        except (OSError, ValueError) as problem:
            raise invalid(f"there is no such file: {problem}") from problem
        real, source = os.path.realpath(path), os.path.realpath(self._source)
        if not stat.S_ISREG(mode):
            raise invalid(f"this is no plain file: {path}")
        if os.path.commonpath([real, source]) != source:
            raise invalid(f"the file is not in the folder for files: {path}")


def _changed_s(entry: os.DirEntry[str]) -> float:
    """When a folder or the newest thing in it changed: a file that is being written keeps its folder."""
    try:
        inside = [one.stat(follow_symlinks=False).st_mtime for one in os.scandir(entry.path)]
        return max(inside, default=entry.stat(follow_symlinks=False).st_mtime)
    except OSError:
        return 0.0  # no folder, or gone meanwhile


def _read(path: Path) -> tuple[int, int, str]:
    digest = hashlib.sha256()
    with path.open("rb") as content:
        before = os.fstat(content.fileno())
        while piece := content.read(PIECE_BYTES):
            digest.update(piece)
        after = os.fstat(content.fileno())
    if (before.st_size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns):
        raise invalid(f"the file changed while it was read: {path.name}")
    return after.st_size, after.st_mtime_ns, digest.hexdigest()

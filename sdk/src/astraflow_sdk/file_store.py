"""The file store of a registry: checks a file, moves it into a folder of its own, and computes its digest.

Only regular files below `data_dir` are accepted: a link could point anywhere, and a pipe never ends.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from pathlib import Path
from typing import NamedTuple

from astraflow_sdk.errors import InfrastructureError
from astraflow_sdk.handles import invalid

PIECE_BYTES = 1024 * 1024
UNFINISHED = "unfinished"
"""Below `data_dir`: files that are still being written."""
NAME_CHARS = 100

_UNSAFE = re.compile(r"[^0-9A-Za-z._-]")


class StoredContent(NamedTuple):
    """A stored file, with its digest and the state that it had when the digest was computed."""

    token: str
    path: Path
    size_bytes: int
    mtime_ns: int
    sha256: str


class FileStore:
    """Moves files from `source` to `<root>/<two digits>/<token>/<name>`."""

    def __init__(self, root: Path, source: Path) -> None:
        self._root = root
        self._source = source

    def fresh_path(self, name: str) -> Path:
        """Where a new file can be written, with nobody else beside it.

        Raises:
            InfrastructureError: there is no room for a folder.
        """
        folder = self._source / UNFINISHED / new_token()
        try:
            folder.mkdir(parents=True)
        except OSError as problem:
            raise InfrastructureError(f"no folder can be made: {problem.strerror}") from problem
        return folder / safe_name(name)

    def take(self, file_path: str | os.PathLike[str], name: str | None = None) -> StoredContent:
        """Move a file in. It has another path afterwards.

        Raises:
            ResourceError: it is no file that may be taken, or it is still being written.
            InfrastructureError: the disk does not do it.
        """
        path = Path(file_path)
        self._check(path)
        token = new_token()
        home = self._root / token[:2] / token / safe_name(name or path.name)
        try:
            home.parent.mkdir(parents=True)
            _move(path, home)
            size, mtime_ns, digest = _digest(home)
        except OSError as problem:
            _remove(home.parent)
            raise InfrastructureError(f"the file cannot be kept: {problem.strerror}") from problem
        if path.parent.parent.name == UNFINISHED:
            _remove(path.parent)
        return StoredContent(token, home, size, mtime_ns, digest)

    def _check(self, path: Path) -> None:
        try:
            mode = os.lstat(path).st_mode
        except (OSError, ValueError) as problem:
            raise invalid(f"there is no such file: {path!r}") from problem
        if not stat.S_ISREG(mode):
            raise invalid(f"only plain files can be kept, no links, pipes or folders: {path}")
        real, source = os.path.realpath(path), os.path.realpath(self._source)
        if os.path.commonpath([real, source]) != source:
            raise invalid(
                "only files below ctx.data_dir can be kept, write it there or to "
                f"artifact.fresh_path(): {path}"
            )


def new_token() -> str:
    """Names one registration; nobody can guess it."""
    return os.urandom(16).hex()


def _remove(folder: Path) -> None:
    import shutil  # not at the top: it costs a cold host ten milliseconds, and few ever need it

    shutil.rmtree(folder, ignore_errors=True)


def safe_name(name: str) -> str:
    return _UNSAFE.sub("_", str(name)).lstrip(".")[:NAME_CHARS] or "file"


def _move(path: Path, home: Path) -> None:
    try:
        path.rename(home)
    except OSError as problem:
        if problem.errno != errno.EXDEV:  # another disk is mounted at one of the folders
            raise
        import shutil

        shutil.copyfile(path, home)
        path.unlink()


def _digest(path: Path) -> tuple[int, int, str]:
    import hashlib  # not at the top, for the same reason

    digest = hashlib.sha256()
    with open(path, "rb") as content:
        before = os.fstat(content.fileno())
        while piece := content.read(PIECE_BYTES):
            digest.update(piece)
        os.fsync(content.fileno())
        after = os.fstat(content.fileno())
    if (before.st_size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns):
        _remove(path.parent)
        raise invalid(f"the file changed while it was read, close it first: {path.name}")
    return after.st_size, after.st_mtime_ns, digest.hexdigest()

"""Files on their way into a registry: checked, moved into a folder of their own, read once for their digest.

A file is only taken from the folder that handlers know as `data_dir`, and only a plain one: a link could lead anywhere,
and a pipe never ends.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import secrets
import shutil
import stat
from pathlib import Path
from typing import NamedTuple

from astraflow_sdk.errors import InfrastructureError
from astraflow_sdk.handles import invalid

__all__ = ["UNFINISHED", "Filed", "Filing", "safe_name"]

PIECE_BYTES = 1024 * 1024
UNFINISHED = "unfinished"
"""Below `data_dir`: files that are still being written. A worker empties it when it starts."""
NAME_CHARS = 100

_UNSAFE = re.compile(r"[^0-9A-Za-z._-]")


class Filed(NamedTuple):
    """A file in its place, as it was when its digest was made."""

    token: str
    path: Path
    size_bytes: int
    mtime_ns: int
    sha256: str


class Filing:
    """Takes files from `source` into `<root>/<two digits>/<token>/<name>`."""

    def __init__(self, root: Path, source: Path) -> None:
        self._root = root
        self._source = source

    def fresh_path(self, name: str) -> Path:
        """Where a new file can be written, with nobody else beside it.

        Raises:
            InfrastructureError: there is no room for a folder.
        """
        folder = self._source / UNFINISHED / secrets.token_hex(16)
        try:
            folder.mkdir(parents=True)
        except OSError as problem:
            raise InfrastructureError(f"no folder can be made: {problem.strerror}") from problem
        return folder / safe_name(name)

    def take(self, file_path: str | os.PathLike[str], name: str | None = None) -> Filed:
        """Move a file in. It has another path afterwards.

        Raises:
            ResourceError: it is no file that may be taken, or it is still being written.
            InfrastructureError: the disk does not do it.
        """
        path = Path(file_path)
        self._check(path)
        token = secrets.token_hex(16)
        home = self._root / token[:2] / token / safe_name(name or path.name)
        try:
            home.parent.mkdir(parents=True)
            _move(path, home)
            size, mtime_ns, digest = _digest(home)
        except OSError as problem:
            shutil.rmtree(home.parent, ignore_errors=True)
            raise InfrastructureError(f"the file cannot be kept: {problem.strerror}") from problem
        if path.parent.parent.name == UNFINISHED:
            shutil.rmtree(path.parent, ignore_errors=True)
        return Filed(token, home, size, mtime_ns, digest)

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


def safe_name(name: str) -> str:
    return _UNSAFE.sub("_", str(name)).lstrip(".")[:NAME_CHARS] or "file"


def _move(path: Path, home: Path) -> None:
    try:
        path.rename(home)
    except OSError as problem:
        if problem.errno != errno.EXDEV:  # another disk is mounted at one of the folders
            raise
        shutil.copyfile(path, home)
        path.unlink()


def _digest(path: Path) -> tuple[int, int, str]:
    digest = hashlib.sha256()
    with open(path, "rb") as content:
        before = os.fstat(content.fileno())
        while piece := content.read(PIECE_BYTES):
            digest.update(piece)
        os.fsync(content.fileno())
        after = os.fstat(content.fileno())
    if (before.st_size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns):
        shutil.rmtree(path.parent, ignore_errors=True)
        raise invalid(f"the file changed while it was read, close it first: {path.name}")
    return after.st_size, after.st_mtime_ns, digest.hexdigest()

"""What an archive may hold: the names, kinds and sizes of its entries. Nothing is repaired; what is odd is refused."""

from __future__ import annotations

import re
import stat
import unicodedata
from typing import Final

import msgspec

from astraflow.packages.toc import DirectoryRow, refuse

INSTALLER_NAMES: Final = frozenset({".venv", ".install.json"})
"""What the installer puts beside a package's files."""
_DRIVE: Final = re.compile(r"[A-Za-z]:")
_KINDS: Final = {
    stat.S_IFLNK: "a symbolic link",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFBLK: "a device",
    stat.S_IFCHR: "a device",
}


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """How much an archive may hold."""

    archive_bytes: int = 2 * 1024**3
    entries: int = 20_000
    """A large web application with all its pages has fewer; each costs a file on every worker."""
    total_bytes: int = 2 * 1024**3
    """Unpacked. What is larger is a resource with a URL, which is fetched once and not unpacked in memory."""
    ratio: int = 100
    """Text is packed ten to twenty times; a thousand times is a bomb."""
    ratio_floor_bytes: int = 1024**2
    """Entries up to this size may be packed as tightly as they can."""
    total_floor_bytes: int = 16 * 1024**2
    """And archives up to this size: many small entries are a bomb, too."""
    name_bytes: int = 255
    depth: int = 32


class ArchiveEntry(msgspec.Struct, frozen=True):
    """A file of an archive."""

    name: str
    size_bytes: int
    is_executable: bool
    row: DirectoryRow


def check_rows(rows: list[DirectoryRow], limits: Limits) -> dict[str, ArchiveEntry]:
    """The files of an archive by name, folders left out: they come with their files.

    Raises:
        Refused: an entry may not be unpacked; the message names it.
    """
    seen = _Seen()
    entries: dict[str, ArchiveEntry] = {}
    total_bytes = packed_bytes = 0
    for row in rows:
        name = row.name.removesuffix("/")
        _check_name(name, limits)
        is_folder = _check_kind(row)
        seen.add(name, is_folder)
        total_bytes += row.size_bytes
        packed_bytes += row.packed_bytes
        if total_bytes > limits.total_bytes:
            refuse(f"unpacked, the archive is larger than {limits.total_bytes} bytes")
        _check_ratio(row, limits)
        if not is_folder:
            entries[name] = ArchiveEntry(name, row.size_bytes, bool(row.mode & 0o111), row)
    if total_bytes > max(limits.total_floor_bytes, limits.ratio * packed_bytes):
        refuse(f"the archive is packed more than {limits.ratio} times: {total_bytes} bytes")
    return entries


def _check_name(name: str, limits: Limits) -> None:
    told = repr(name[:80])
    segments = name.split("/")
    if not name:
        refuse("an entry has no name")
    if name.startswith("/") or _DRIVE.match(name):
        refuse(f"the entry has an absolute path: {told}")
    if "\\" in name or ":" in name:
        refuse(f"the entry has a backslash or a colon in its name: {told}")
    if not name.isprintable():
        refuse(f"the entry has characters in its name that nobody can see: {told}")
    if any(segment in ("", ".", "..") for segment in segments):
        refuse(f"the entry's path does not go straight down: {told}")
    if len(name.encode()) > limits.name_bytes:
        refuse(f"the entry's name is longer than {limits.name_bytes} bytes: {told}")
    if len(segments) > limits.depth:
        refuse(f"the entry lies deeper than {limits.depth} folders: {told}")
    if not unicodedata.is_normalized("NFC", name):
        refuse(f"the entry's name is not in the normal form NFC: {told}")
    if segments[0].casefold() in INSTALLER_NAMES:
        refuse(f"the entry has a name that the installer uses: {told}")


def _check_kind(row: DirectoryRow) -> bool:
    """Whether it is a folder."""
    kind = stat.S_IFMT(row.mode)
    is_folder = row.name.endswith("/")
    if kind not in (0, stat.S_IFDIR if is_folder else stat.S_IFREG):
        refuse(f"the entry is {_KINDS.get(kind, 'no file')}: {row.name[:80]!r}")
    if is_folder and row.size_bytes:
        refuse(f"the entry is a folder with bytes: {row.name[:80]!r}")
    return is_folder


def _check_ratio(row: DirectoryRow, limits: Limits) -> None:
    is_large = row.size_bytes > limits.ratio_floor_bytes
    if is_large and row.size_bytes > limits.ratio * row.packed_bytes:
        refuse(f"the entry is packed more than {limits.ratio} times: {row.name[:80]!r}")


class _Seen:
    """The names so far. Two that some file system takes for one are a clash, in every folder above them too."""

    def __init__(self) -> None:
        self._spelled: dict[str, str] = {}
        self._named: set[str] = set()
        self._files: set[str] = set()
        self._folders: set[str] = set()

    def add(self, name: str, is_folder: bool) -> None:
        if name in self._named:
            refuse(f"the entry is there twice: {name[:80]!r}")
        self._named.add(name)
        segments = name.split("/")
        above = ["/".join(segments[:depth]) for depth in range(1, len(segments))]
        for part in (*above, name):
            folded = unicodedata.normalize("NFC", part.casefold())
            if self._spelled.setdefault(folded, part) != part:
                refuse(f"two entries differ in the case of letters only: {part[:80]!r}")
        self._folders.update(above)
        (self._folders if is_folder else self._files).add(name)
        for part in (*above, name):
            if part in self._files and part in self._folders:
                refuse(f"the entry is a file and a folder: {part[:80]!r}")

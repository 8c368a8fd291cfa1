"""The table of contents of a zip, read by the letter.

Readers of zips are lenient, each in its own way, so one file can hold one thing for the reader that checks it and
another for the reader that unpacks it. Here a zip has one reading only:

Rule 1: the file ends with the end record, without a comment; the table ends where that record begins.
Rule 2: the entries lie one behind the other from the first byte of the file to the first byte of the table. So there is
        nothing before the zip, nothing between, nothing twice, and no second table.
Rule 3: what the table says of an entry (name, method, sizes, checksum), the entry's own header says too.
Rule 4: entries are stored or deflated; nothing is encrypted, split or larger than the old format can say.
"""

from __future__ import annotations

import struct
from typing import BinaryIO, Final, NamedTuple, NoReturn

from astraflow.core import errors

STORED: Final = 0
DEFLATED: Final = 8

_END: Final = struct.Struct("<4s4H2LH")
_ROW: Final = struct.Struct("<4s6H3L5H2L")
_HEADER: Final = struct.Struct("<4s5H3L2H")
_EXTRA: Final = struct.Struct("<2H")
_SIZES: Final = struct.Struct("<3L")
_END_MARK: Final = b"PK\5\6"
_ROW_MARK: Final = b"PK\1\2"
_HEADER_MARK: Final = b"PK\3\4"
_TRAILER_MARK: Final = b"PK\7\x08"
_ENCRYPTED: Final = 0x0001 | 0x0040 | 0x2000
_SIZES_BEHIND: Final = 0x0008
_NAME_IS_UTF8: Final = 0x0800
_ZIP64: Final = 0xFFFFFFFF
_MAX_ROW_BYTES: Final = 4_096
"""On average: a long name, the times and ids that tools add, and no hiding place for more. It is read as a whole."""
_UNIX_EXTRA: Final = 0x000D
_UNIX_EXTRA_BYTES: Final = 12
"""Two times and two ids. What follows them in this field is the target of a link."""


class DirectoryRow(NamedTuple):
    """One entry as the table has it. `begin` is where its bytes lie in the file."""

    name: str
    method: int
    crc: int
    packed_bytes: int
    size_bytes: int
    mode: int
    begin: int


class _Raw(NamedTuple):
    row: DirectoryRow
    flags: int
    name: bytes
    at: int


def refuse(message: str) -> NoReturn:
    raise errors.Refused(errors.PKG_INVALID, message)


def read_rows(file: BinaryIO, size_bytes: int, max_entries: int) -> list[DirectoryRow]:
    """The entries in the order they lie in the file.

    Raises:
        Refused: it is not a zip with one reading, or has more entries.
    """
    begin, table_bytes, count = _read_end(file, size_bytes)
    if count > max_entries:
        refuse(f"the archive has more than {max_entries} entries: {count}")
    if table_bytes > count * _MAX_ROW_BYTES:
        refuse(f"the archive's table of contents is too large: {table_bytes} bytes")
    file.seek(begin)
    table = file.read(table_bytes)
    if len(table) != table_bytes:
        refuse("the archive is cut off")
    raws: list[_Raw] = []
    at = 0
    for _ in range(count):
        raw, at = _read_row(table, at)
        raws.append(raw)
    if at != table_bytes:
        refuse("the archive's table of contents and its end record do not agree")
    return _lay_out(file, sorted(raws, key=lambda raw: raw.at), begin)


def _read_end(file: BinaryIO, size_bytes: int) -> tuple[int, int, int]:
    if size_bytes < _END.size:
        refuse("the file is not a zip archive")
    file.seek(size_bytes - _END.size)
    mark, disk, table_disk, here, count, table_bytes, begin, comment = _END.unpack(
        file.read(_END.size)
    )
    if mark != _END_MARK or comment:
        refuse("the file does not end as a zip archive does")
    if disk or table_disk or here != count:
        refuse("the archive is split over several files")
    if begin + table_bytes != size_bytes - _END.size:
        refuse("the archive's table of contents is not where its end record says")
    return begin, table_bytes, count


def _read_row(table: bytes, at: int) -> tuple[_Raw, int]:
    if at + _ROW.size > len(table):
        refuse("the archive's table of contents is cut off")
    fields = _ROW.unpack_from(table, at)
    mark, _, _, flags, method, _, _, crc, packed, size = fields[:10]
    name_bytes, extra_bytes, comment_bytes, disk, _, attributes, header_at = fields[10:]
    begin = at + _ROW.size
    end = begin + name_bytes + extra_bytes + comment_bytes
    if mark != _ROW_MARK or end > len(table):
        refuse("the archive's table of contents cannot be read")
    name = table[begin : begin + name_bytes]
    text = _text(name, flags)
    if flags & _ENCRYPTED:
        refuse(f"the entry is encrypted: {text[:80]!r}")
    if method not in (STORED, DEFLATED):
        refuse(f"the entry is packed in a way that is not known here ({method}): {text[:80]!r}")
    if disk or _ZIP64 in (packed, size, header_at):
        refuse(f"the entry is in a format for archives beyond 4 GiB: {text[:80]!r}")
    if method == STORED and packed != size:
        refuse(f"the entry's sizes do not agree: {text[:80]!r}")
    _check_extra(table[begin + name_bytes : begin + name_bytes + extra_bytes], text)
    row = DirectoryRow(text, method, crc, packed, size, attributes >> 16, 0)
    return _Raw(row, flags, name, header_at), end


def _text(name: bytes, flags: int) -> str:
    try:
        return name.decode("utf-8" if flags & _NAME_IS_UTF8 else "ascii")
    except UnicodeDecodeError:
        refuse(f"the name of an entry is not marked as UTF-8, or is none: {name[:80]!r}")


def _check_extra(extra: bytes, name: str) -> None:
    """Refuse a hard link: its target hides behind the ids in a field for Unix."""
    at = 0
    while at + _EXTRA.size <= len(extra):
        kind, length = _EXTRA.unpack_from(extra, at)
        at += _EXTRA.size + length
        if kind == _UNIX_EXTRA and length > _UNIX_EXTRA_BYTES:
            refuse(f"the entry is a link: {name[:80]!r}")


def _lay_out(file: BinaryIO, raws: list[_Raw], table_at: int) -> list[DirectoryRow]:
    """Walk over the file as the entries lie in it (Rules 2 and 3)."""
    rows: list[DirectoryRow] = []
    at = 0
    for raw in raws:
        if raw.at != at:
            what = "overlaps the one before it" if raw.at < at else "lies behind foreign bytes"
            refuse(f"the entry {what}: {raw.row.name[:80]!r}")
        begin = _check_header(file, raw)
        rows.append(raw.row._replace(begin=begin))
        at = begin + raw.row.packed_bytes
        if raw.flags & _SIZES_BEHIND:
            at += _check_trailer(file, raw.row, at)
    if at != table_at:
        refuse("there are foreign bytes between the archive's entries and its table of contents")
    return rows


def _check_header(file: BinaryIO, raw: _Raw) -> int:
    file.seek(raw.at)
    header = file.read(_HEADER.size)
    if len(header) != _HEADER.size:
        refuse("the archive is cut off")
    mark, _, flags, method, _, _, crc, packed, size, name_bytes, extra_bytes = _HEADER.unpack(
        header
    )
    row = raw.row
    sizes = (crc, packed, size)
    told = (row.crc, row.packed_bytes, row.size_bytes)
    is_told_behind = flags & _SIZES_BEHIND and sizes == (0, 0, 0)
    if (
        mark != _HEADER_MARK
        or (flags, method) != (raw.flags, row.method)
        or file.read(name_bytes) != raw.name
        or (sizes != told and not is_told_behind)
    ):
        refuse(f"the entry and the table of contents do not agree: {row.name[:80]!r}")
    _check_extra(file.read(extra_bytes), row.name)
    return file.tell()


def _check_trailer(file: BinaryIO, row: DirectoryRow, at: int) -> int:
    """The length of the record behind an entry whose sizes were not known when it was begun."""
    file.seek(at)
    read = file.read(len(_TRAILER_MARK) + _SIZES.size)
    marked = _TRAILER_MARK + _SIZES.pack(row.crc, row.packed_bytes, row.size_bytes)
    if read == marked:
        return len(marked)
    if read[: _SIZES.size] == marked[len(_TRAILER_MARK) :]:
        return _SIZES.size
    refuse(f"the entry's sizes are not behind it: {row.name[:80]!r}")

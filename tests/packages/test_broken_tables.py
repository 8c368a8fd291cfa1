"""Archives whose table of contents was tampered with, field by field: each is refused, none is read in two ways."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from astraflow.core import errors
from astraflow.core.workflow.limits import MAX_MANIFEST_BYTES
from astraflow.packages import check_archive
from astraflow.packages.signing import MAX_SIGNATURE_CHARS, PackageSignature, TrustedKeys
from tests.packages.archives import Item, items, manifest, write_zip

END = struct.Struct("<4s4H2LH")
ROW = struct.Struct("<4s6H3L5H2L")


def end_of(raw: bytearray, change: Callable[[list[int | bytes]], None]) -> None:
    """Change fields of the end record: mark, disk, table's disk, here, count, bytes, begin, comment."""
    fields = list(END.unpack_from(raw, len(raw) - END.size))
    change(fields)
    END.pack_into(raw, len(raw) - END.size, *fields)


def row_of(raw: bytearray, change: Callable[[list[int | bytes]], None]) -> None:
    """Change fields of the last row of the table."""
    at = raw.rindex(b"PK\x01\x02")
    fields = list(ROW.unpack_from(raw, at))
    change(fields)
    ROW.pack_into(raw, at, *fields)


def put(place: int, value: int | bytes) -> Callable[[list[int | bytes]], None]:
    def change(fields: list[int | bytes]) -> None:
        fields[place] = value

    return change


def more(*places: int) -> Callable[[list[int | bytes]], None]:
    """One more than is there."""

    def change(fields: list[int | bytes]) -> None:
        for place in places:
            number = fields[place]
            assert isinstance(number, int)
            fields[place] = number + 1

    return change


@pytest.mark.parametrize(
    ("tamper", "says"),
    [
        (lambda raw: end_of(raw, put(1, 1)), "split over several files"),
        (lambda raw: end_of(raw, put(2, 1)), "split over several files"),
        (lambda raw: end_of(raw, more(4)), "split over several files"),
        (lambda raw: end_of(raw, more(3, 4)), "cut off"),
        (lambda raw: row_of(raw, put(0, b"PK\x09\x09")), "cannot be read"),
        (lambda raw: row_of(raw, put(10, 60_000)), "cannot be read"),
        (lambda raw: row_of(raw, put(13, 1)), "beyond 4 GiB"),
        (lambda raw: row_of(raw, put(16, 0xFFFFFFFF)), "beyond 4 GiB"),
        (lambda raw: row_of(raw, put(16, 0xFFFFFF00)), "behind foreign bytes"),
    ],
)
def test_a_table_that_was_tampered_with_is_refused(
    tmp_path: Path, tamper: Callable[[bytearray], None], says: str
) -> None:
    path = write_zip(tmp_path / "a.cwx", items())
    check_archive(path)
    raw = bytearray(path.read_bytes())
    tamper(raw)
    path.write_bytes(raw)
    with pytest.raises(errors.Refused, match=says) as raised:
        check_archive(path)
    assert raised.value.code is errors.PKG_INVALID


def test_a_folder_that_holds_bytes_is_refused(tmp_path: Path) -> None:
    path = write_zip(tmp_path / "a.cwx", items(None, Item("odd/", b"x", 0o40755)))
    with pytest.raises(errors.Refused, match="a folder with bytes"):
        check_archive(path)


def test_a_manifest_beyond_its_size_is_refused_before_it_is_read(tmp_path: Path) -> None:
    long = manifest(description="x" * MAX_MANIFEST_BYTES)
    path = write_zip(tmp_path / "a.cwx", items(long))
    with pytest.raises(errors.Refused, match=r"manifest.json is larger than"):
        check_archive(path)


def test_a_signature_beyond_its_size_is_refused_before_it_is_read() -> None:
    with pytest.raises(errors.Refused, match="longer than"):
        PackageSignature.parse("{" + " " * MAX_SIGNATURE_CHARS + "}")


def test_a_file_of_keys_with_a_line_that_is_none_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "keys").write_text("# ours\nnonsense\n")
    with pytest.raises(errors.AstraflowError, match="not a key of the form name=base64"):
        TrustedKeys.parse([str(tmp_path / "keys")])

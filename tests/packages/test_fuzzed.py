"""Archives with wrong bytes: refused or read, never anything else, and never a file outside of the folder."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from astraflow.core import errors
from astraflow.packages import check_archive, unpack
from tests.packages.archives import DEFLATED, Item, items, write_zip


def _whole() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        entries = items(None, Item("a/b.txt", b"text " * 50, method=DEFLATED))
        return write_zip(Path(folder) / "p.cwx", entries).read_bytes()


WHOLE = _whole()
CHANGES = st.lists(
    st.tuples(st.integers(0, len(WHOLE) - 1), st.integers(0, 255)), min_size=1, max_size=8
)


def _tried(content: bytes) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = folder / "p.cwx"
        path.write_bytes(content)
        into = folder / "into"
        into.mkdir()
        try:
            unpack(check_archive(path), into)
        except errors.Refused as refused:
            assert refused.code is errors.PKG_INVALID
        assert sorted(os.listdir(folder)) == ["into", "p.cwx"]
        assert not any(found.is_symlink() for found in into.rglob("*"))


@given(CHANGES)
def test_changed_bytes_are_read_or_refused(changes: list[tuple[int, int]]) -> None:
    content = bytearray(WHOLE)
    for at, byte in changes:
        content[at] = byte
    _tried(bytes(content))


@given(CHANGES)
def test_changed_bytes_of_the_table_are_read_or_refused(changes: list[tuple[int, int]]) -> None:
    """Most of an archive is text; here every change hits what is believed."""
    content = bytearray(WHOLE)
    table = WHOLE.index(b"PK\1\2")
    for at, byte in changes:
        content[table + at % (len(WHOLE) - table)] = byte
    _tried(bytes(content))


@given(st.binary(max_size=400))
def test_any_bytes_are_refused(content: bytes) -> None:
    _tried(content)


@given(st.integers(0, len(WHOLE)), st.integers(0, len(WHOLE)))
def test_an_archive_with_a_piece_missing_or_twice_is_read_or_refused(
    first: int, second: int
) -> None:
    _tried(WHOLE[:first] + WHOLE[second:])

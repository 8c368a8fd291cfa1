"""What an archive must be, row by row: a bad one is refused by name, and nothing of it is on the disk."""

from __future__ import annotations

import io
import os
import stat
import struct
import zipfile
import zlib
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from astraflow.core import errors
from astraflow.packages import Archive, Limits, check_archive, check_contents, unpack
from tests.packages.archives import DEFLATED, STORED, Item, deflated, items, manifest, write_zip

BOMB = b"\0" * (4 * 1024 * 1024)


def checked(path: Path, entries: list[Item], **given: Any) -> Archive:
    return check_archive(write_zip(path / "p.cwx", entries), **given)


def refusal(path: Path, entries: list[Item], **given: Any) -> errors.Refused:
    with pytest.raises(errors.Refused) as caught:
        checked(path, entries, **given)
    assert caught.value.code is errors.PKG_INVALID
    return caught.value


def test_an_archive_tells_its_manifest_files_and_digest(tmp_path: Path) -> None:
    archive = checked(tmp_path, items(manifest(python={"dependencies": ["six==1.16.0"]})))
    assert (archive.manifest.name, archive.manifest.version) == ("demo", "1.0.0")
    assert set(archive.entries) == {"manifest.json", "demo_nodes/__init__.py"}
    assert archive.requirements == ("six==1.16.0",)
    assert len(archive.sha256) == 64
    assert archive.size_bytes == archive.path.stat().st_size


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("/etc/passwd", "absolute"),
        ("../x", "straight down"),
        ("a/../../x", "straight down"),
        ("a/./x", "straight down"),
        ("a//x", "straight down"),
        ("C:x", "absolute"),
        ("a\\b", "backslash"),
        ("a\0b", "nobody can see"),
        ("a\u202eb", "nobody can see"),
        ("", "no name"),
        ("/", "no name"),
        ("n" * 256, "longer than 255"),
        ("ü" * 128, "longer than 255"),
        ("/".join("d" * 33), "deeper than 32"),
        ("u\u0308.py", "normal form"),
        ("Demo_Nodes/x.py", "case of letters"),
        ("MANIFEST.JSON", "case of letters"),
        ("demo_nodes/__init__.py", "twice"),
        ("demo_nodes", "a file and a folder"),
        ("demo_nodes/__init__.py/x", "a file and a folder"),
        (".venv/bin/python", "installer uses"),
        (".install.json", "installer uses"),
    ],
)
def test_a_name_that_is_not_plain_is_refused_and_named(
    tmp_path: Path, name: str, says: str
) -> None:
    problem = refusal(tmp_path, items(None, Item(name, b"x")))
    assert says in problem.message


def test_a_name_that_is_no_utf8_is_refused(tmp_path: Path) -> None:
    assert "UTF-8" in refusal(tmp_path, items(None, Item(b"\xff\xfe", b"x"))).message
    assert "UTF-8" in refusal(tmp_path, items(None, Item("ü".encode(), b"x", flags=0))).message


@pytest.mark.parametrize(
    ("kind", "says"),
    [
        (stat.S_IFLNK, "symbolic link"),
        (stat.S_IFIFO, "a pipe"),
        (stat.S_IFSOCK, "a socket"),
        (stat.S_IFCHR, "a device"),
        (stat.S_IFBLK, "a device"),
        (stat.S_IFDIR, "no file"),
    ],
)
def test_what_is_no_file_is_refused(tmp_path: Path, kind: int, says: str) -> None:
    problem = refusal(tmp_path, items(None, Item("strange", b"/etc/passwd", mode=kind | 0o777)))
    assert says in problem.message
    assert "strange" in problem.message


def test_a_hard_link_is_refused(tmp_path: Path) -> None:
    extra = struct.pack("<2H", 0x000D, 12 + 6) + b"\0" * 12 + b"target"
    assert "link" in refusal(tmp_path, items(None, Item("hard", b"", extra=extra))).message


def test_special_bits_are_stripped_and_only_hooks_and_scripts_can_be_run(tmp_path: Path) -> None:
    document = manifest(hooks={"install": ["scripts/setup.sh"]})
    more = [
        Item("scripts/setup.sh", b"#!/bin/sh\n", mode=0o106777),
        Item("scripts/other.sh", b"#!/bin/sh\n", mode=0o100755),
        Item("scripts/notes.txt", b"", mode=0o100644),
        Item("demo_nodes/tool", b"", mode=0o104755),
    ]
    archive = checked(tmp_path, items(document, *more))
    into = tmp_path / "into"
    into.mkdir()
    before = os.umask(0o077)
    try:
        unpack(archive, into)
    finally:
        os.umask(before)
    modes = {
        path.relative_to(into).as_posix(): stat.S_IMODE(path.stat().st_mode)
        for path in into.rglob("*")
        if path.is_file()
    }
    assert modes == {
        "manifest.json": 0o644,
        "demo_nodes/__init__.py": 0o644,
        "demo_nodes/tool": 0o644,
        "scripts/setup.sh": 0o755,
        "scripts/other.sh": 0o755,
        "scripts/notes.txt": 0o644,
    }


def test_too_many_entries_are_refused(tmp_path: Path) -> None:
    many = [Item(f"f{number}") for number in range(20_001)]
    assert "20000 entries" in refusal(tmp_path, many).message


def test_a_table_of_contents_that_is_larger_than_it_can_be_is_refused(tmp_path: Path) -> None:
    stuffed = [Item(f"f{number}", extra=b"\0" * 60_000) for number in range(4)]
    assert "table of contents is too large" in refusal(tmp_path, items(None, *stuffed)).message


def test_too_many_bytes_are_refused(tmp_path: Path) -> None:
    problem = refusal(
        tmp_path, items(None, Item("big", b"x" * 2_000)), limits=Limits(total_bytes=1_000)
    )
    assert "larger than 1000" in problem.message
    problem = refusal(tmp_path, items(), limits=Limits(archive_bytes=100))
    assert "larger than 100" in problem.message


def test_a_bomb_is_refused_by_its_ratio_and_a_small_file_is_not(tmp_path: Path) -> None:
    problem = refusal(tmp_path, items(None, Item("bomb", BOMB, method=DEFLATED)))
    assert "bomb" in problem.message
    assert "100 times" in problem.message
    assert checked(tmp_path, items(None, Item("zeros", b"\0" * 500_000, method=DEFLATED)))


def test_an_archive_in_an_archive_is_a_file_that_nobody_opens(tmp_path: Path) -> None:
    inner = io.BytesIO()
    with zipfile.ZipFile(inner, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("bomb", BOMB)
    archive = checked(tmp_path, items(None, Item("inner.zip", inner.getvalue())))
    into = tmp_path / "into"
    into.mkdir()
    unpack(archive, into)
    assert (into / "inner.zip").read_bytes() == inner.getvalue()
    assert not (into / "bomb").exists()


@pytest.mark.parametrize("said", [10, 100_000, 2_000_000])
def test_an_entry_that_lies_about_its_size_is_refused_while_it_is_counted(
    tmp_path: Path, said: int
) -> None:
    content = os.urandom(1_000_000)
    archive = checked(tmp_path, items(None, Item("liar", content, method=DEFLATED, size=said)))
    into = tmp_path / "into"
    into.mkdir()
    for read in (partial(check_contents, archive), partial(unpack, archive, into)):
        with pytest.raises(errors.Refused, match="as many bytes as it says"):
            read()
    assert (into / "liar").stat().st_size <= said


def test_an_entry_that_inflates_without_end_is_left_at_the_size_it_said(tmp_path: Path) -> None:
    lie = Item("liar", method=DEFLATED, size=600_000, crc=0, packed=deflated(b"\0" * 100_000_000))
    with pytest.raises(errors.Refused, match="as many bytes"):
        check_contents(checked(tmp_path, items(None, lie)))


@pytest.mark.parametrize(
    ("lie", "says"),
    [
        (Item("liar", b"abc", crc=1), "checksum"),
        (Item("liar", b"abc", method=DEFLATED, packed=b"\xff\xff\xff"), "inflated"),
        (
            Item("liar", b"abc", method=DEFLATED, packed=deflated(b"abc")[:-2]),
            "as many bytes|inflated",
        ),
        (
            Item("liar", b"abc", method=DEFLATED, packed=deflated(b"abc") + b"hidden"),
            "as many bytes",
        ),
    ],
)
def test_an_entry_with_other_bytes_is_refused(tmp_path: Path, lie: Item, says: str) -> None:
    archive = checked(tmp_path, items(None, lie))
    with pytest.raises(errors.Refused, match=says):
        check_contents(archive)


def test_a_stored_entry_cannot_have_two_sizes(tmp_path: Path) -> None:
    assert "sizes" in refusal(tmp_path, items(None, Item("liar", b"abc", size=30))).message


@pytest.mark.parametrize("flag", [0x0001, 0x0040, 0x2000])
def test_an_encrypted_entry_is_refused(tmp_path: Path, flag: int) -> None:
    problem = refusal(tmp_path, items(None, Item("secret", b"x", flags=0x0800 | flag)))
    assert "encrypted" in problem.message
    assert "secret" in problem.message


def test_a_way_of_packing_that_is_not_known_is_refused(tmp_path: Path) -> None:
    assert (
        "packed in a way" in refusal(tmp_path, items(None, Item("lzma", b"x", method=14))).message
    )


def test_bytes_before_or_between_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "p.cwx"
    for around in ({"before": b"#!/bin/sh\n"}, {"behind": b"hidden"}):
        with pytest.raises(errors.Refused, match="foreign bytes"):
            check_archive(write_zip(path, items(), **around))


def test_bytes_before_an_archive_whose_offsets_do_not_count_them_are_refused(
    tmp_path: Path,
) -> None:
    path = write_zip(tmp_path / "p.cwx", items())
    path.write_bytes(b"MZ" * 50 + path.read_bytes())
    with pytest.raises(errors.Refused, match="not where its end record says"):
        check_archive(path)


def test_a_comment_or_a_tail_is_refused(tmp_path: Path) -> None:
    path = write_zip(tmp_path / "p.cwx", items())
    whole = path.read_bytes()
    for tail in (b"tail", whole):
        path.write_bytes(whole + tail)
        with pytest.raises(errors.Refused):
            check_archive(path)
    path.write_bytes(whole[:-2] + struct.pack("<H", 3) + b"abc")
    with pytest.raises(errors.Refused, match="does not end"):
        check_archive(path)


def test_overlapping_entries_are_refused(tmp_path: Path) -> None:
    """Two rows of the table that point to the same bytes."""
    path = write_zip(tmp_path / "p.cwx", items(None, Item("one", b"x"), Item("two", b"x")))
    whole = bytearray(path.read_bytes())
    first = whole.find(b"one") - 30
    row = whole.rfind(b"two") - 46
    whole[row + 42 : row + 46] = struct.pack("<L", first)
    path.write_bytes(whole)
    with pytest.raises(errors.Refused, match="overlaps"):
        check_archive(path)


def test_two_tables_of_contents_are_refused(tmp_path: Path) -> None:
    """A second archive behind the first, whose table speaks for the second half only."""
    path = write_zip(tmp_path / "p.cwx", items())
    first = path.read_bytes()
    write_zip(path, items(), before=first)
    with pytest.raises(errors.Refused, match="foreign bytes"):
        check_archive(path)


def test_a_name_that_differs_in_the_entry_is_refused(tmp_path: Path) -> None:
    problem = refusal(tmp_path, items(None, Item("safe", b"x", local_name=b"evil")))
    assert "do not agree" in problem.message


@pytest.mark.parametrize("cut", [1, 10, 22, 60, 200])
def test_an_archive_that_is_cut_off_is_refused(tmp_path: Path, cut: int) -> None:
    path = write_zip(tmp_path / "p.cwx", items())
    path.write_bytes(path.read_bytes()[:-cut])
    with pytest.raises(errors.Refused):
        check_archive(path)


def test_what_is_no_zip_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "p.cwx"
    for content in (b"", b"PK", b"x" * 10_000, b"PK\5\6" + b"\xff" * 18):
        path.write_bytes(content)
        with pytest.raises(errors.Refused):
            check_archive(path)


def test_archives_of_common_tools_are_read(tmp_path: Path) -> None:
    """Python's zipfile, to a file and to a stream that cannot go back, with folders as entries."""
    for is_stream in (False, True):
        path = tmp_path / f"{is_stream}.cwx"
        with path.open("wb") as file:
            out: Any = _Stream(file) if is_stream else file
            with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as packed:
                packed.writestr(zipfile.ZipInfo("demo_nodes/"), b"")
                for item in items(None, Item("größe.txt", b"x" * 5_000)):
                    packed.writestr(str(item.name), item.content)
        archive = check_archive(path)
        check_contents(archive)
        assert "größe.txt" in archive.entries


class _Stream(io.RawIOBase):
    def __init__(self, file: Any) -> None:
        self._file = file

    def writable(self) -> bool:
        return True

    def write(self, content: Any) -> int:
        written: int = self._file.write(content)
        return written


# -- the manifest ---------------------------------------------------------------------------


def with_manifest(raw: bytes) -> list[Item]:
    return [Item("manifest.json", raw), *items()[1:]]


def test_a_manifest_that_is_missing_or_no_json_is_refused(tmp_path: Path) -> None:
    assert "manifest.json" in refusal(tmp_path, items()[1:]).message
    for raw in (b"", b"{", b"[]", b"\xff", b'{"name": "\\u0000"}', b"[" * 100_000):
        refusal(tmp_path, with_manifest(raw))


@pytest.mark.parametrize(
    ("fields", "pointer"),
    [
        ({"schemaVersion": "2.0.0"}, "/schemaVersion"),
        ({"name": "../x"}, "/name"),
        ({"name": "con"}, "/name"),
        ({"version": "not a version"}, "/version"),
        ({"version": "../1"}, "/version"),
        (
            {"adapters": [{"name": "a", "runtime": "python", "entrypoint": "os:system"}]},
            "/adapters/0/entrypoint",
        ),
        (
            {"adapters": [{"name": "a", "runtime": "python", "entrypoint": "a:b;c"}]},
            "/adapters/0/entrypoint",
        ),
        (
            {"adapters": [{"name": "a", "runtime": "python", "entrypoint": "elsewhere:A"}]},
            "/adapters/0/entrypoint",
        ),
        ({"python": {"dependencies": ["--index-url x"]}}, "/python/dependencies/0"),
        ({"python": {"dependencies": ["-e ."]}}, "/python/dependencies/0"),
        ({"python": {"dependencies": ["six @ git+https://x"]}}, "/python/dependencies/0"),
        ({"python": {"dependencies": ["file:///x"]}}, "/python/dependencies/0"),
        ({"python": {"dependencies": ["six"]}}, "/python/dependencies/0"),
        ({"hooks": {"install": ["scripts/none.sh"]}}, "/hooks/install/0"),
        ({"hooks": {"uninstall": ["demo_nodes/__init__.py"]}}, "/hooks/uninstall/0"),
        ({"hooks": {"install": ["../x.sh"]}}, "/hooks/install/0"),
        (
            {"resources": [{"path": "models/m.bin", "type": "download", "sha256": "0" * 64}]},
            "/resources/0",
        ),
        (
            {"resources": {"files": [{"path": "m", "type": "download", "url": "https://x/m"}]}},
            "/resources/files/0",
        ),
        (
            {"nodes": [{"type": "demo.say", "runtimes": {"python": {"handler": "no.such:thing"}}}]},
            "/nodes/0/runtimes/python/handler",
        ),
    ],
)
def test_a_manifest_that_does_not_fit_its_archive_is_refused_with_its_pointer(
    tmp_path: Path, fields: dict[str, Any], pointer: str
) -> None:
    assert refusal(tmp_path, items(manifest(**fields))).pointer == pointer


def test_another_package_than_was_asked_for_is_refused(tmp_path: Path) -> None:
    assert refusal(tmp_path, items(), name="other", version="1.0.0").pointer == "/name"
    assert refusal(tmp_path, items(), name="demo", version="1.0.1").pointer == "/version"
    assert checked(tmp_path, items(), name="demo", version="1.0.0")


def test_modules_may_lie_in_the_folder_adapters(tmp_path: Path) -> None:
    document = manifest()
    entries = [items(document)[0], Item("adapters/demo_nodes/__init__.py", b"")]
    assert checked(tmp_path, entries)


def test_a_resource_may_be_in_the_archive_or_be_fetched(tmp_path: Path) -> None:
    files = [
        {"path": "models/m.bin", "type": "file"},
        {"path": "models", "type": "folder"},
        {"path": "big.bin", "type": "download", "url": "https://x/big", "sha256": "0" * 64},
    ]
    assert checked(tmp_path, items(manifest(resources=files), Item("models/m.bin", b"m")))


def test_dependencies_may_be_open_where_that_is_allowed(tmp_path: Path) -> None:
    document = manifest(
        python={"dependencies": ["six", "idna>=3,<4", "x[y]~=1.0; python_version<'4'"]}
    )
    assert checked(tmp_path, items(document), unpinned=True)
    assert refusal(tmp_path, items(document)).pointer == "/python/dependencies/0"


@pytest.mark.parametrize(
    "text",
    [
        "-e .",
        "--index-url x",
        "six @ https://x",
        "file:///x",
        "six; a @ b",
        "six==1 --hash=sha256:12",
        "../x",
    ],
)
def test_what_leads_past_the_index_is_refused_even_then(tmp_path: Path, text: str) -> None:
    document = manifest(python={"dependencies": [text]})
    assert refusal(tmp_path, items(document), unpinned=True).pointer == "/python/dependencies/0"


def test_a_checksum_is_of_the_whole_entry(tmp_path: Path) -> None:
    archive = checked(
        tmp_path, items(None, Item("a", b"abc", method=STORED, crc=zlib.crc32(b"abc")))
    )
    check_contents(archive)

"""Building: the same bytes each time, nothing in it that should stay at home, and no product that is not checked."""

from __future__ import annotations

import os
import stat
import zipfile
from pathlib import Path

import pytest

from astraflow.core import errors
from astraflow.packages import build_archive, check_archive, check_contents, unpack
from tests.packages.archives import manifest, write_folder


def test_the_same_folder_gives_the_same_bytes_wherever_and_whenever(tmp_path: Path) -> None:
    first = build_archive(write_folder(tmp_path / "one", files={"note": "x"}), tmp_path / "out1")
    other = write_folder(tmp_path / "two", files={"note": "x"})
    os.utime(other / "note", (1, 1))
    (other / "note").chmod(0o664)
    second = build_archive(other, tmp_path / "out2")
    assert first.path.read_bytes() == second.path.read_bytes()
    assert first.path.name == "demo-1.0.0.cwx"
    assert first.sha256 == check_archive(first.path).sha256
    assert sorted(os.listdir(tmp_path / "out1")) == ["demo-1.0.0.cwx"]


def test_what_should_stay_at_home_is_left_out(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "p", files={"README": "x"})
    for name in (
        ".git/config",
        ".env",
        ".venv/bin/python",
        "dist/old.cwx",
        "tests/test_x.py",
        "demo_nodes/__pycache__/x.pyc",
        "demo_nodes/.secret",
        "x.egg-info/PKG-INFO",
    ):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("secret")
    (folder / "demo_nodes" / "tests").mkdir()
    (folder / "demo_nodes" / "tests" / "kept.py").write_text("")
    built = build_archive(folder, folder / "dist")
    assert set(check_archive(built.path).entries) == {
        "README",
        "manifest.json",
        "demo_nodes/__init__.py",
        "demo_nodes/tests/kept.py",
    }


def test_a_version_can_be_given(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "p", manifest(unknown={"kept": True}))
    built = build_archive(folder, tmp_path, version="2.0.0")
    assert built.path.name == "demo-2.0.0.cwx"
    document = check_archive(built.path, name="demo", version="2.0.0").manifest.document()
    assert document["unknown"] == {"kept": True}


def test_a_file_that_would_look_like_a_bomb_is_stored_as_it_is(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "p")
    (folder / "zeros").write_bytes(b"\0" * 3_000_000)
    built = build_archive(folder, tmp_path)
    check_contents(check_archive(built.path))
    with zipfile.ZipFile(built.path) as packed:
        assert packed.getinfo("zeros").compress_type == zipfile.ZIP_STORED
        assert packed.testzip() is None


def test_listed_hooks_can_be_run_whatever_the_author_s_file_system_says(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "p", manifest(hooks={"install": ["setup.sh"]}))
    (folder / "setup.sh").write_text("#!/bin/sh\n")
    archive = check_archive(build_archive(folder, tmp_path).path)
    into = tmp_path / "into"
    into.mkdir()
    unpack(archive, into)
    assert stat.S_IMODE((into / "setup.sh").stat().st_mode) == 0o755


def test_a_link_a_missing_manifest_and_a_bad_one_are_refused_and_leave_nothing(
    tmp_path: Path,
) -> None:
    linked = write_folder(tmp_path / "linked")
    (linked / "passwd").symlink_to("/etc/passwd")
    empty = tmp_path / "empty"
    empty.mkdir()
    bad = write_folder(tmp_path / "bad", manifest(name="Bad Name"))
    out = tmp_path / "out"
    for folder, says in ((linked, "links"), (empty, "manifest.json"), (bad, "name")):
        with pytest.raises(errors.Refused, match=says) as caught:
            build_archive(folder, out)
        assert caught.value.code is errors.PKG_INVALID
    assert list(out.iterdir()) == []


@pytest.mark.parametrize("name", ["signing.pem", "demo_nodes/my.key"])
def test_a_private_key_does_not_get_into_an_archive(tmp_path: Path, name: str) -> None:
    folder = write_folder(tmp_path / "p")
    (folder / name).write_text("-----BEGIN PRIVATE KEY-----\nabc\n-----END PRIVATE KEY-----\n")
    with pytest.raises(errors.Refused, match="private key") as raised:
        build_archive(folder, tmp_path / "out")
    assert name in raised.value.message
    (folder / name).write_text("-----BEGIN CERTIFICATE-----\nabc\n-----END CERTIFICATE-----\n")
    assert name in check_archive(build_archive(folder, tmp_path / "out").path).entries

"""From an author's folder to an archive: what `@node` functions say is put into the manifest on the way."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from astraflow.cli.pkg_environment import environment_variables, python_for
from astraflow.core import errors
from astraflow.packages.archive import MANIFEST
from astraflow.packages.building import Built, build_archive

__all__ = ["DIST", "build_package", "read_manifest", "whole_manifest"]

DIST: Final = "dist"
DESCRIBE_S: Final = 60.0
"""To import a package and look at its functions. One that takes longer would take as long on every worker."""

_NO_CODE: Final = frozenset({"tests", DIST, "node_modules", "venv"})
_MARKED: Final = re.compile(rb"^\s*@\s*[\w.]*\bnode\s*\(", re.MULTILINE)


def build_package(folder: Path, out: Path | None = None, *, version: str | None = None) -> Built:
    """Build the package in a folder.

    Raises:
        Refused: it is no package; the message says what is missing.
        OSError: something cannot be read or written.
    """
    manifest = whole_manifest(folder)
    out = folder / DIST if out is None else out
    if manifest is None:
        return build_archive(folder, out, version=version)
    out.mkdir(parents=True, exist_ok=True)
    # Beside the archive: on the same disk a link is enough for each file.
    with tempfile.TemporaryDirectory(dir=out, prefix=".staged-") as temporary:
        staged = Path(temporary, "package")
        shutil.copytree(folder, staged, symlinks=True, ignore=_left_out, copy_function=_link)
        (staged / MANIFEST).unlink(missing_ok=True)
        (staged / MANIFEST).write_bytes(_written(manifest))
        try:
            return build_archive(staged, out, version=version)
        except errors.Refused as refused:
            raise _said_of(folder, staged, refused) from refused


def _said_of(folder: Path, staged: Path, refused: errors.Refused) -> errors.Refused:
    """The same refusal, of the folder that the author knows, and with all that is wrong."""
    said = refused.message.replace(str(staged), str(folder))
    problems = (refused.detail or {}).get("problems")
    return errors.Refused(
        refused.code,
        said,
        pointer=refused.pointer,
        detail={"errors": problems} if problems else refused.detail,
    )


def read_manifest(folder: Path) -> dict[str, Any]:
    """The manifest as its author wrote it.

    Raises:
        Refused: there is none, or it is no JSON object.
    """
    path = folder / MANIFEST
    try:
        manifest = msgspec.json.decode(path.read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        raise errors.Refused(
            errors.PKG_INVALID,
            f"the folder has no {MANIFEST}: {folder}",
            detail={"hint": "`astra pkg new NAME` makes a package; name its folder, or go there"},
        ) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as problem:
        raise errors.Refused(errors.PKG_INVALID, f"{path} is no JSON: {problem}") from problem
    if not isinstance(manifest, dict):
        raise errors.Refused(errors.PKG_INVALID, f"{path} must be an object")
    for field in ("name", "version"):
        if not isinstance(manifest.get(field), str):
            raise errors.Refused(errors.PKG_INVALID, f"{path} must have a {field}, as a text")
    return manifest


def whole_manifest(folder: Path) -> dict[str, Any] | None:
    """The manifest with what the `@node` functions say; None if there are none, and the author's is all.

    Raises:
        Refused: the package cannot be imported, or a function does not say enough.
    """
    written = read_manifest(folder)
    if not _has_marked(folder):
        return None
    said = _describe(folder, python_for(written))
    if "error" in said:
        raise errors.Refused(
            errors.PKG_INVALID,
            str(said["error"]),
            detail={
                "hint": "correct it and build again; docs/sdk.md says what a node may look like"
            },
        )
    return said


def _describe(folder: Path, python: Path) -> dict[str, Any]:
    try:
        ended = subprocess.run(  # noqa: S603 - the package's Python, and a list of arguments
            [str(python), "-P", "-m", "astraflow_sdk.describe", str(folder.absolute())],
            env=environment_variables(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=DESCRIBE_S,
            check=False,
        )
    except subprocess.TimeoutExpired as late:
        raise errors.Refused(
            errors.PKG_INVALID, f"the package was not imported within {DESCRIBE_S:g} s: {folder}"
        ) from late
    try:
        said: dict[str, Any] = msgspec.json.decode(ended.stdout, type=dict[str, Any])
    except msgspec.DecodeError as problem:
        tail = ended.stderr.decode("utf-8", "replace").strip()[-2_000:]
        raise errors.Refused(
            errors.PKG_INVALID, f"the package ends the process that imports it: {tail}"
        ) from problem
    return said


def _has_marked(folder: Path) -> bool:
    for at, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not _is_no_code(name)]
        for name in names:
            if name.endswith(".py") and _is_marked(Path(at, name).read_bytes()):
                return True
    return False


def _is_marked(source: bytes) -> bool:
    return b"astraflow_sdk" in source and _MARKED.search(source) is not None


def _is_no_code(name: str) -> bool:
    return name.startswith(".") or name in _NO_CODE or name == "__pycache__"


def _left_out(at: str, names: list[str]) -> set[str]:
    return {name for name in names if _is_no_code(name)}


def _link(source: str, target: str) -> str:
    try:
        os.link(source, target, follow_symlinks=False)
    except OSError:
        return str(shutil.copy2(source, target, follow_symlinks=False))
    return target


def _written(manifest: Mapping[str, Any]) -> bytes:
    return msgspec.json.format(msgspec.json.encode(manifest), indent=2) + b"\n"

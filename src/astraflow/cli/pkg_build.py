"""Builds archives from source directories; the manifest is completed from the `@node` functions."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any, Final

import msgspec

from astraflow.cli.pkg_environment import environment_variables, python_for
from astraflow.core import errors
from astraflow.packages.archive import MANIFEST
from astraflow.packages.building import Built, build_archive

DIST: Final = "dist"
DESCRIBE_S: Final = 60.0
"""Timeout for importing a package. A slow import is as slow on every worker."""

_NO_CODE: Final = frozenset({"tests", DIST, "node_modules", "venv"})
_MARKED: Final = re.compile(rb"^\s*@\s*[\w.]*\bnode\s*\(", re.MULTILINE)


def build_package(folder: Path, out: Path | None = None, *, version: str | None = None) -> Built:
    """Build the package in a directory.

    Raises:
        Refused: the directory is no package; the message names the problem.
        OSError: a file cannot be read or written.
    """
    manifest = whole_manifest(folder)
    out = folder / DIST if out is None else out
    if manifest is None:
        return build_archive(folder, out, version=version)
    out.mkdir(parents=True, exist_ok=True)
    written = msgspec.json.format(msgspec.json.encode(manifest), indent=2) + b"\n"
    # Beside the archive: on the same disk, files are linked and not copied.
    with tempfile.TemporaryDirectory(dir=out, prefix=".staged-") as temporary:
        staged = Path(temporary, "package")
        shutil.copytree(folder, staged, symlinks=True, ignore=_left_out, copy_function=_link)
        (staged / MANIFEST).unlink(missing_ok=True)
        (staged / MANIFEST).write_bytes(written)
        try:
            return build_archive(staged, out, version=version)
        except errors.Refused as refused:
            raise _said_of(folder, staged, refused) from refused


def _said_of(folder: Path, staged: Path, refused: errors.Refused) -> errors.Refused:
    """The same refusal with the author's directory in its message, and with all problems."""
    said = refused.message.replace(str(staged), str(folder))
    problems = (refused.detail or {}).get("problems")
    return errors.Refused(
        refused.code,
        said,
        pointer=refused.pointer,
        detail={"errors": problems} if problems else refused.detail,
    )


def _invalid(message: str, hint: str = "") -> errors.Refused:
    return errors.Refused(errors.PKG_INVALID, message, detail={"hint": hint} if hint else None)


def read_manifest(folder: Path) -> dict[str, Any]:
    """Read the manifest as its author wrote it.

    Raises:
        Refused: the file is missing or not a JSON object.
    """
    path = folder / MANIFEST
    try:
        manifest = msgspec.json.decode(path.read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        hint = "pass the directory of a package; `astra pkg new NAME` creates one"
        raise _invalid(f"No {MANIFEST} in {folder}", hint) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as problem:
        raise _invalid(f"{path} is not JSON: {problem}") from problem
    if not isinstance(manifest, dict):
        raise _invalid(f"{path} is not a JSON object")
    for field in ("name", "version"):
        if not isinstance(manifest.get(field), str):
            raise _invalid(f"{path}: {field} is missing or not a string")
    return manifest


def whole_manifest(folder: Path) -> dict[str, Any] | None:
    """The manifest completed from the `@node` functions; None if there are no such functions.

    Raises:
        Refused: the package cannot be imported, or a function is incomplete.
    """
    written = read_manifest(folder)
    if not _has_marked(folder):
        return None
    said = _describe(folder, python_for(written))
    if "error" in said:
        hint = "correct it and build again; docs/sdk.md describes node functions"
        raise _invalid(str(said["error"]), hint)
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
        message = f"Timeout: importing the package took longer than {DESCRIBE_S:g} s: {folder}"
        raise _invalid(message) from late
    try:
        said: dict[str, Any] = msgspec.json.decode(ended.stdout, type=dict[str, Any])
    except msgspec.DecodeError as problem:
        tail = ended.stderr.decode("utf-8", "replace").strip()[-2_000:]
        raise _invalid(f"The process that imported the package exited: {tail}") from problem
    return said


def _has_marked(folder: Path) -> bool:
    for at, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not _is_no_code(name)]
        for name in names:
            if name.endswith(".py"):
                source = Path(at, name).read_bytes()
                if b"astraflow_sdk" in source and _MARKED.search(source):
                    return True
    return False


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

"""Cached environments for packages on the author's machine: dependencies, the SDK, and pytest for tests.

uv creates an environment once in the user's cache directory, named by a digest of its contents; a missing one is
created again. The SDK is a symlink to the SDK of this installation, so it is never outdated.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec
import uv

from astraflow.cli.exit_codes import note
from astraflow.core import errors
from astraflow.worker.hosts.builtin import host_program

PYTEST: Final = "pytest>=8,<10"
TAIL_CHARS: Final = 2_000


def cache_folder() -> Path:
    """The cache directory for environments. Its contents may be deleted at any time."""
    root = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(root) / "astraflow" / "environments"


def python_for(manifest: Mapping[str, Any], *, with_pytest: bool = False) -> Path:
    """The Python of an environment with the dependencies of a manifest.

    Raises:
        Refused: uv cannot create it; the message contains the end of uv's output.
        OSError: the cache directory cannot be used.
    """
    needs = manifest.get("python") or {}
    wanted = [str(one) for one in needs.get("dependencies") or ()]
    sdk = host_program().parents[1]
    is_closed = bool(needs.get("closed"))
    said = [sys.version, sys.prefix, str(sdk), wanted, is_closed, PYTEST if with_pytest else ""]
    place = cache_folder() / hashlib.sha256(msgspec.json.encode(said)).hexdigest()[:16]
    python = place / "bin" / "python"
    if not python.exists():
        place.parent.mkdir(parents=True, exist_ok=True)
        if wanted:
            note(f"Creating an environment with {len(wanted)} dependencies")
        _make(place, wanted, sdk, is_closed=is_closed, with_pytest=with_pytest)
    return python


def environment_variables() -> dict[str, str]:
    """Our environment without this installation's Python settings; no bytecode is written into the package."""
    hidden = ("VIRTUAL_ENV", "PYTHONPATH", "PYTHONHOME", "PYTEST_ADDOPTS")
    kept = {name: text for name, text in os.environ.items() if name not in hidden}
    return {**kept, "PYTHONDONTWRITEBYTECODE": "1"}


def _make(place: Path, wanted: list[str], sdk: Path, *, is_closed: bool, with_pytest: bool) -> None:
    fresh = Path(tempfile.mkdtemp(dir=place.parent, prefix=".new-"))
    try:
        _uv("venv", "--relocatable", "--no-project", "--python", sys.executable, str(fresh))
        install = ("pip", "install", "--python", str(fresh / "bin" / "python"))
        if wanted:
            requirements = fresh / "requirements.txt"
            requirements.write_text("".join(f"{line}\n" for line in wanted), "utf-8")
            closed = ("--no-deps",) if is_closed else ()
            _uv(*install, *closed, "--requirements", str(requirements))
        if with_pytest:
            _uv(*install, PYTEST)
        version = f"python{sys.version_info.major}.{sys.version_info.minor}"
        (fresh / "lib" / version / "site-packages" / "astraflow_sdk").symlink_to(sdk)
        _place(fresh, place)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def _place(fresh: Path, place: Path) -> None:
    try:
        fresh.rename(place)
    except OSError:
        if not (place / "bin" / "python").exists():  # else another process was faster
            raise


def _uv(*arguments: str) -> None:
    # In the root directory, as on a worker: in the package's, uv would read the index settings of the package.
    ended = subprocess.run(  # noqa: S603 - our own uv, and a list of arguments
        [uv.find_uv_bin(), "--quiet", *arguments],
        cwd="/",
        env={**environment_variables(), "NO_COLOR": "1", "UV_PYTHON_DOWNLOADS": "never"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if ended.returncode != 0:
        tail = ended.stdout.strip()[-TAIL_CHARS:]
        raise errors.Refused(
            errors.PKG_INSTALL_FAILED,
            f"Cannot create the environment: {tail}",
            detail={
                "hint": "check python.dependencies in manifest.json and the package index of uv"
            },
        )

"""The environment of a package: a virtualenv made by uv, with the dependencies that the manifest names.

uv takes its indexes from the worker's environment. It is started in the root folder: in the package's folder it would
read the index settings of the package.
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Final

import uv

from astraflow.clock import Clock
from astraflow.core import errors
from astraflow.core.workflow.manifest import PythonNeeds
from astraflow.packages.requirements import has_hashes
from astraflow.worker.packages.guarded_process import run_guarded

_ROOT: Final = Path("/")
MESSAGE_CHARS: Final = 2_000
_PRIVATE: Final = "ASTRA_"
"""Settings of ours. uv itself may have all else: it runs no code of packages unless building is allowed."""


async def make_environment(
    folder: Path,
    needs: PythonNeeds | None,
    requirements: Path,
    *,
    may_build: bool,
    timeout_s: float,
    clock: Clock,
) -> None:
    """Make the environment and put the dependencies in. `requirements` is a file that may be written.

    `may_build`: a dependency without a wheel is built by running its own code, which is a hook by another name.

    Raises:
        Unavailable: it could not be made; the message has the end of what uv said.
    """
    deadline = clock.now() + timeout_s
    make = ["venv", "--quiet", "--relocatable", "--no-project", "--python", sys.executable]
    await _run_uv([*make, str(folder)], deadline, clock)
    if needs is None or not needs.dependencies:
        return
    lines = "".join(f"{line}\n" for line in needs.dependencies)
    await asyncio.to_thread(requirements.write_text, lines, "utf-8")
    fill = ["pip", "install", "--quiet", "--python", str(folder / "bin" / "python")]
    if not may_build:
        fill.append("--no-build")
    if needs.closed:
        fill.append("--no-deps")
    if needs.closed and all(map(has_hashes, needs.dependencies)):
        fill.append("--require-hashes")
    await _run_uv([*fill, "--requirements", str(requirements)], deadline, clock)


async def _run_uv(arguments: list[str], deadline: float, clock: Clock) -> None:
    env = {k: v for k, v in os.environ.items() if not k.startswith(_PRIVATE)}
    env.pop("VIRTUAL_ENV", None)
    ended = await run_guarded(
        [uv.find_uv_bin(), *arguments],
        cwd=_ROOT,
        env={**env, "NO_COLOR": "1", "UV_PYTHON_DOWNLOADS": "never"},
        timeout_s=max(0.0, deadline - clock.now()),
        clock=clock,
    )
    if ended.code != 0:
        why = "took too long" if ended.is_late else f"ended with {ended.code}"
        raise errors.Unavailable(
            errors.PKG_INSTALL_FAILED,
            f"uv {arguments[0]} {why}: {ended.tail[-MESSAGE_CHARS:]}",
        )

"""The guard of one program: `guard_program.py SDK LIFE_FD PROGRAM ARGUMENT…`. Run by path, in the worker's Python."""

from __future__ import annotations

import importlib
import os
import resource
import sys
from typing import NoReturn

OPEN_FILES = 4096
EXIT_NO_PROGRAM = 126
"""As a shell says it: there is such a file, but it cannot be run."""


def main() -> NoReturn:
    sdk, life_fd, *program = sys.argv[1:]
    sys.path.insert(0, sdk)
    guard = importlib.import_module("astraflow_sdk.host.guard")
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    files = OPEN_FILES if hard == resource.RLIM_INFINITY else min(OPEN_FILES, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))
    guard.fork_host(int(life_fd), ())
    try:
        os.execv(program[0], program)  # noqa: S606  (no shell is wanted)
    except OSError as problem:
        os.write(2, f"{program[0]}: {problem.strerror}\n".encode())
        os._exit(EXIT_NO_PROGRAM)


if __name__ == "__main__":
    main()

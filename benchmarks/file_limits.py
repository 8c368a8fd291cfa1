"""How many files a process may have open: each connection is one."""

from __future__ import annotations

import resource
from contextlib import suppress
from typing import Final

SPARE: Final = 256
"""Files that a process has open beside its connections."""


class TooFewFiles(Exception):
    """The machine does not allow as many open files as a benchmark needs."""


def raise_file_limit(needed: int | None = None) -> int:
    """Let this process, and those that it starts, have as many files open as the system allows, or as are needed.
    Returns how many that are.

    Raises:
        TooFewFiles: fewer than needed.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = hard if needed is None else max(needed, hard)
    for limits in ((wanted, wanted), (hard, hard)):  # the first is for root alone, if it is more
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, limits)
            soft = limits[0]
            break
    if needed is not None and soft < needed:
        raise TooFewFiles(
            f"a process may have {soft:,} files open here, and {needed:,} are needed: raise the limit "
            f"(ulimit -n {needed}, as root), or ask for fewer workers and readers"
        )
    return soft

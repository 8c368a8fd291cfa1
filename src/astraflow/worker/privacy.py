"""A worker's own secrets, out of reach of what it runs.

Hosts are processes of the same user. What the worker keeps in memory cannot be read by them unless they may trace it,
which `PR_SET_DUMPABLE 0` forbids to everybody but root; `/proc/<pid>/environ` is closed with it.
"""

from __future__ import annotations

import ctypes
import os
import sys
from typing import Final

__all__ = ["hide_secrets"]

_PR_SET_DUMPABLE: Final = 4
_SECRETS: Final = ("ASTRA_WORKER_AUTH_TOKEN",)


def hide_secrets() -> None:
    """Call it when the settings have been read, before anything is started."""
    for name in _SECRETS:
        os.environ.pop(name, None)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)

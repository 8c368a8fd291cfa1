"""Protects the worker's secrets from the code that it runs.

Hosts are processes of the same user. They can read the worker's memory only if they may trace it, which
`PR_SET_DUMPABLE 0` forbids to everyone but root; `/proc/<pid>/environ` is protected with it.
"""

from __future__ import annotations

import ctypes
import os
import sys
from typing import Final

_PR_SET_DUMPABLE: Final = 4
_SECRETS: Final = ("ASTRA_WORKER_AUTH_TOKEN",)


def hide_secrets() -> None:
    """Call it when the settings have been read, before anything is started."""
    for name in _SECRETS:
        os.environ.pop(name, None)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)

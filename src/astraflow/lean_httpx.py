"""httpx, without what it does not need.

It loads its own command line together with a highlighter and all of rich, whether that is used or not: three quarters
of its import, and six megabytes in each process. It works without.
"""

from __future__ import annotations

import sys

if "httpx" not in sys.modules:
    sys.modules.setdefault("httpx._main", None)  # type: ignore[arg-type]
import httpx

__all__ = ["httpx"]

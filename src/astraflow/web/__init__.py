"""The built web app, in `dist`: made from `web/` by `make web`, and committed, so that nobody needs Node to run it."""

from __future__ import annotations

from pathlib import Path
from typing import Final

__all__ = ["DIST"]

DIST: Final = Path(__file__).parent / "dist"

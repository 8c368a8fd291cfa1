"""The SDK as it stands in the source tree: it is a distribution of its own."""

from __future__ import annotations

import sys
from pathlib import Path

SOURCE = str(Path(__file__).resolve().parents[3] / "sdk" / "src")
if SOURCE not in sys.path:
    sys.path.insert(0, SOURCE)

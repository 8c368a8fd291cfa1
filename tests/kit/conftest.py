from __future__ import annotations

import sys
from pathlib import Path

# The SDK is a project of its own; hosts find it beside themselves, tests here.
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "sdk" / "src"))

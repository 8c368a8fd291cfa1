"""The plugin of pytest for whoever has AstraFlow installed: the SDK's fixture `run_node`, without any option."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

if importlib.util.find_spec("astraflow_sdk") is None:
    # An editable install: there the SDK is a project of its own beside this one.
    sys.path.append(str(Path(__file__).resolve().parents[2] / "sdk" / "src"))

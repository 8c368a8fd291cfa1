"""Write `manifest.json` from the manifest that is built into the scheduler: `python packages/core/make_manifest.py`."""

from __future__ import annotations

import json
from pathlib import Path

from astraflow.core.workflow.core_manifest import core_manifest


def manifest_text() -> str:
    return json.dumps(core_manifest().document(), indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    (Path(__file__).parent / "manifest.json").write_text(manifest_text(), encoding="utf-8")

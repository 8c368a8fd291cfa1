"""What a wheel holds beside `src`: the SDK, which hosts run, package `core`, which every worker has, and the packages
that a fresh scheduler publishes.

They are projects of their own in this repository; an editable install finds them where they are.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

ROOT = Path(__file__).resolve().parent
SHIPPED = {
    "sdk/src/astraflow_sdk": "astraflow_sdk",
    "packages/core/manifest.json": "astraflow/shipped/core/manifest.json",
    "packages/core/astraflow_core": "astraflow/shipped/core/astraflow_core",
    "packages/crawlerx_playwright": "astraflow/shipped/crawlerx_playwright",
    "packages/embeddings": "astraflow/shipped/embeddings",
    "packages/llm": "astraflow/shipped/llm",
    "examples": "astraflow/shipped/examples",
}


class BuildWithParts(build_py):
    def run(self) -> None:
        super().run()
        if self.editable_mode:
            return
        for source, target in SHIPPED.items():
            place = Path(self.build_lib) / target
            place.parent.mkdir(parents=True, exist_ok=True)
            if (ROOT / source).is_dir():
                unwanted = shutil.ignore_patterns("__pycache__")
                shutil.copytree(ROOT / source, place, dirs_exist_ok=True, ignore=unwanted)
            else:
                shutil.copy2(ROOT / source, place)


setup(cmdclass={"build_py": BuildWithParts})

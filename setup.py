"""What a wheel holds beside `src`: the SDK, which hosts run, package `core`, which every worker has, and the packages
that a fresh scheduler publishes.

They are projects of their own in this repository; an editable install finds them where they are.

With `ASTRA_COMPILE=1` the modules in `compiled-modules.txt` are in the wheel twice: as they are, and compiled by mypyc
(docs/adr/0037-a-compiled-core.md). It needs a C compiler and an environment with what `requirements/dev.txt` holds, so
build it with `--no-build-isolation`.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
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


class BuildCompiled(build_ext):
    def run(self) -> None:
        if self.inplace or self.editable_mode:
            raise SystemExit(
                "ASTRA_COMPILE=1 is for wheels: what is beside the sources stays Python"
            )
        # The folder may be that of an earlier build, with modules that are no longer compiled.
        for old in Path(self.build_lib).rglob("*.so"):
            old.unlink()
        super().run()


def compiled() -> list[Extension]:
    """The compiled modules of the wheel, if they were asked for."""
    if os.environ.get("ASTRA_COMPILE") != "1":
        return []
    try:
        from mypyc.build import mypycify
    except ImportError:
        raise SystemExit("ASTRA_COMPILE=1 needs mypy and --no-build-isolation") from None
    names = (ROOT / "compiled-modules.txt").read_text().split()
    paths = [f"src/{name.replace('.', '/')}.py" for name in names]
    return mypycify(paths, opt_level="3", multi_file=True, group_name="astraflow_core")


extensions = compiled()
# Without extensions there is no command for them: the wheel is one for every machine.
commands = {"build_py": BuildWithParts, **({"build_ext": BuildCompiled} if extensions else {})}
setup(cmdclass=commands, ext_modules=extensions)

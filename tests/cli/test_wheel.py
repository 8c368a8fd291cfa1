"""What is installed is all that is needed: a wheel is built, unpacked, and a workflow run with it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

from tests.processes.process import ROOT, clean_environment
from tests.processes.waiting import WAIT_S

DIST = ROOT / "src/astraflow/web/dist"
PARTS = (
    "src",
    "sdk",
    "packages",
    "examples",
    "pyproject.toml",
    "setup.py",
    "MANIFEST.in",
    "compiled-modules.txt",
    "README.md",
    "LICENSE",
)


def copied(folder: Path) -> Path:
    """A copy of this tree, as far as it is packed."""
    tree = folder / "tree"
    tree.mkdir()
    for part in PARTS:
        source = ROOT / part
        if source.is_dir():
            unwanted = shutil.ignore_patterns("__pycache__", "*.egg-info")
            shutil.copytree(source, tree / part, ignore=unwanted)
        else:
            shutil.copy2(source, tree / part)
    return tree


def build(folder: Path) -> Path:
    """A wheel of this tree, built in a copy of it."""
    tree = copied(folder)
    subprocess.run(
        [sys.executable, "-c", "from setuptools import build_meta; build_meta.build_wheel('dist')"],
        cwd=tree,
        check=True,
        capture_output=True,
        timeout=WAIT_S * 3,
    )
    (wheel,) = (tree / "dist").glob("*.whl")
    return wheel


def test_a_wheel_has_the_sdk_the_core_package_and_the_sql_and_works(tmp_path: Path) -> None:
    with zipfile.ZipFile(build(tmp_path)) as wheel:
        names = set(wheel.namelist())
        wheel.extractall(tmp_path / "installed")
    assert {
        "astraflow/py.typed",
        "astraflow/store/sql/queries.sql",
        "astraflow/store/sql/migrations/0001_first.sql",
        "astraflow/shipped/core/manifest.json",
        "astraflow/shipped/core/astraflow_core/adapter.py",
        "astraflow/shipped/llm/manifest.json",
        "astraflow/shipped/examples/hello.json",
        "astraflow/shipped/crawlerx_playwright/crawlerx_playwright/adapter.py",
        "astraflow_sdk/__init__.py",
        "astraflow_sdk/host/__main__.py",
    } <= names
    built = {
        path.relative_to(ROOT / "src").as_posix() for path in DIST.rglob("*") if path.is_file()
    }
    assert built and built <= names, "the whole web app is in the wheel"
    assert not [name for name in names if "__pycache__" in name or name.startswith("tests/")]
    assert not [name for name in names if name.endswith(".so")], "it is one for every machine"
    # Isolated from this tree: only what is unpacked, and what the lock files name.
    program = (
        "import sys; sys.path.insert(0, sys.argv.pop(1)); import astraflow.cli.main as entry; "
        "entry.main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "installed"), "doctor", "--json"],
        cwd=tmp_path,
        env=clean_environment(PYTHONPATH=str(tmp_path / "installed"), PATH=os.environ["PATH"]),
        capture_output=True,
        text=True,
        timeout=WAIT_S * 2,
    )
    checks = {one["name"]: one for one in json.loads(done.stdout)["checks"]}
    assert checks["host"]["verdict"] == "ok", done
    assert str(tmp_path / "installed") in checks["parts"]["says"]


def test_a_source_distribution_has_the_web_app_and_not_what_it_is_built_with(
    tmp_path: Path,
) -> None:
    tree = copied(tmp_path)
    subprocess.run(
        [sys.executable, "-c", "from setuptools import build_meta; build_meta.build_sdist('dist')"],
        cwd=tree,
        check=True,
        capture_output=True,
        timeout=WAIT_S * 3,
    )
    (archive,) = (tree / "dist").glob("*.tar.gz")
    with tarfile.open(archive) as packed:
        names = {name.partition("/")[2] for name in packed.getnames()}
    built = {path.relative_to(ROOT).as_posix() for path in DIST.rglob("*") if path.is_file()}
    assert built <= names
    assert "compiled-modules.txt" in names, "a wheel can be compiled from it"
    assert not [name for name in names if "node_modules" in name]

"""The plugin in a pytest of its own, as the author of a package has it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.processes.process import ROOT

SDK = ROOT / "sdk" / "src"

NODES = """
from astraflow_sdk import DataQualityError, node

@node("demo.half")
def half(n: int) -> dict:
    if n % 2:
        raise DataQualityError(f"{n} is odd")
    return {"n": n // 2}
"""
ADAPTER = """
class Adapter:
    async def run(self, context):
        return {"status": "succeeded", "outputs": {"seen": context.parameters}}
"""
TESTS = """
import pytest
from astraflow_sdk import DataQualityError
from demo_nodes import half

def test_a_function(run_node):
    assert run_node(half, n=4).result == {"n": 2}

def test_a_type_of_a_marked_function(run_node):
    assert run_node("demo.half", n=4).result == {"n": 2}

def test_a_type_of_an_adapter_in_its_own_folder(run_node):
    assert run_node("demo.seen", a=1).result == {"seen": {"a": 1}}

def test_an_error(run_node):
    with pytest.raises(DataQualityError, match="3 is odd"):
        run_node(half, n=3)

def test_a_type_that_is_not_there(run_node):
    run_node("demo.nothing")
"""
MANIFEST = {
    "name": "demo",
    "version": "1.0.0",
    "adapters": [
        {"name": "a", "runtime": "own", "entrypoint": "seeds.adapter:Adapter", "capabilities": ["demo.seen"]}
    ],
    "nodes": [{"type": "demo.seen", "runtimes": {"own": {}}}],
}  # fmt: skip


def write_package(folder: Path) -> None:
    (folder / "adapters" / "seeds").mkdir(parents=True)
    (folder / "tests").mkdir()
    (folder / "manifest.json").write_text(json.dumps(MANIFEST))
    (folder / "demo_nodes.py").write_text(NODES)
    (folder / "adapters" / "seeds" / "adapter.py").write_text(ADAPTER)
    (folder / "tests" / "test_nodes.py").write_text(TESTS)


def run(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *command],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(SDK), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_the_fixture_runs_functions_and_types_of_the_package_of_the_test(tmp_path: Path) -> None:
    write_package(tmp_path)
    options = ("-p", "astraflow_sdk.testing", "-p", "no:cacheprovider", "-p", "no:randomly")
    ended = run(tmp_path, "-P", "-m", "pytest", "--rootdir", ".", *options)
    assert "4 passed" in ended.stdout and "1 failed" in ended.stdout, ended.stdout
    assert "the package has no such node type: demo.nothing" in ended.stdout


def test_a_host_finds_the_adapters_of_seed_packages(tmp_path: Path) -> None:
    write_package(tmp_path)
    (tmp_path / "demo_nodes.py").unlink()
    program = (
        "import sys; from astraflow_sdk.host.handlers import load_handlers; "
        "print(sorted(load_handlers(sys.argv[1])), sys.path[0] == sys.argv[1])"
    )
    ended = run(tmp_path, "-P", "-c", program, str(tmp_path))
    assert ended.stdout == "['demo.seen'] True\n", ended.stderr

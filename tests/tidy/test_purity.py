"""The layers hold, and the contract that says so fails when somebody breaks them."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.processes.process import ROOT


def lint_imports(root: Path) -> subprocess.CompletedProcess[str]:
    program = (
        "import sys; sys.path.insert(0, 'src');"
        "from importlinter.cli import lint_imports_command; lint_imports_command()"
    )
    return subprocess.run(
        [sys.executable, "-c", program, "--config", "pyproject.toml", "--no-cache"],
        cwd=root,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    shutil.copytree(
        ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info")
    )
    return tmp_path


def plant(root: Path, module: str, line: str) -> None:
    path = root / "src" / "astraflow" / "core" / module
    path.write_text(path.read_text() + f"\n{line}\n")


def test_the_tree_keeps_its_layers(copy: Path) -> None:
    answer = lint_imports(copy)
    assert answer.returncode == 0, answer.stdout + answer.stderr


@pytest.mark.parametrize(
    ("module", "line", "named"),
    [
        ("protocol/window.py", "import asyncio", "astraflow.core.protocol.window -> asyncio"),
        (
            "runs/states.py",
            "import astraflow.clock",
            "astraflow.core.runs.states -> astraflow.clock",
        ),
        ("security/tokens.py", "import time", "astraflow.core.security.tokens -> time"),
        ("runs/transitions.py", "import random", "astraflow.core.runs.transitions -> random"),
        (
            "workflow/plan.py",
            "import astraflow.core.runs",
            "astraflow.core.workflow.plan -> astraflow.core.runs",
        ),
        (
            "runs/states.py",
            "import astraflow.core.dispatch",
            "astraflow.core.runs.states -> astraflow.core.dispatch",
        ),
        (
            "protocol/window.py",
            "import astraflow.core.runs",
            "astraflow.core.protocol.window -> astraflow.core.runs",
        ),
    ],
)
def test_a_planted_import_breaks_the_contract(
    copy: Path, module: str, line: str, named: str
) -> None:
    plant(copy, module, line)
    answer = lint_imports(copy)
    assert answer.returncode != 0
    assert named in answer.stdout


def test_a_type_may_be_named_from_a_forbidden_module(copy: Path) -> None:
    plant(
        copy,
        "runs/states.py",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import random",
    )
    assert lint_imports(copy).returncode == 0

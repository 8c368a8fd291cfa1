"""The SDK stands beside any dependency of a package, so it has none."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[3] / "sdk" / "src"
PLUGIN = SOURCE / "astraflow_sdk" / "testing.py"
"""A plugin of pytest, which alone imports it: where it runs, pytest is."""
CORE = Path(__file__).resolve().parents[3] / "packages" / "core" / "astraflow_core"


def imported(path: Path) -> set[str]:
    found: set[str] = set()
    for item in ast.walk(ast.parse(path.read_text())):
        if isinstance(item, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in item.names}
        elif isinstance(item, ast.ImportFrom):
            found.add((item.module or "").partition(".")[0])
    return found


def modules(path: Path) -> set[str]:
    """Whole names of the modules that a file imports, and of what it imports from them."""
    found: set[str] = set()
    for item in ast.walk(ast.parse(path.read_text())):
        if isinstance(item, ast.Import):
            found |= {alias.name for alias in item.names}
        elif isinstance(item, ast.ImportFrom):
            found |= {f"{item.module}", *(f"{item.module}.{alias.name}" for alias in item.names)}
    return found


def test_the_sdk_and_package_core_import_the_standard_library_only() -> None:
    allowed = set(sys.stdlib_module_names) | {"astraflow_sdk", "astraflow_core"}
    files = [*SOURCE.rglob("*.py"), *CORE.rglob("*.py")]
    assert len(files) > 15
    assert imported(PLUGIN) - allowed == {"pytest"}
    files.remove(PLUGIN)
    assert not [path for path in files if "astraflow_sdk.testing" in modules(path)]
    assert {str(path): imported(path) - allowed for path in files if imported(path) - allowed} == {}


def test_the_sdk_is_written_for_the_oldest_python_it_promises() -> None:
    for path in SOURCE.rglob("*.py"):
        ast.parse(path.read_text(), feature_version=(3, 10))
        names = {
            item.attr
            for item in ast.walk(ast.parse(path.read_text()))
            if isinstance(item, ast.Attribute)
        }
        names |= {
            alias.name
            for item in ast.walk(ast.parse(path.read_text()))
            if isinstance(item, ast.ImportFrom) and item.module in ("datetime", "typing", "enum")
            for alias in item.names
        }
        newer = {"TaskGroup", "timeout", "Runner", "UTC", "Self", "StrEnum", "assert_never"}
        assert not names & newer, f"{path} uses what came with 3.11"

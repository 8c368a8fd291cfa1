"""The smallest package of the project is what `astra pkg new` makes."""

from __future__ import annotations

import re
from pathlib import Path

from astraflow.cli.pkg_template import write_package

EXAMPLE = Path(__file__).resolve().parents[2] / "packages" / "example"
MADE = ("dist", "__pycache__", ".pytest_cache")
ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def texts(folder: Path) -> dict[str, str]:
    """The files by their names; ids are drawn, so all count as the same."""
    return {
        str(path.relative_to(folder)): ID.sub("id", path.read_text("utf-8"))
        for path in folder.rglob("*")
        if path.is_file() and not set(path.relative_to(folder).parts) & set(MADE)
    }


def test_the_example_is_what_a_newcomer_gets(tmp_path: Path) -> None:
    assert texts(EXAMPLE) == texts(write_package("example", tmp_path))

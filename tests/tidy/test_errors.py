"""Every code of the catalogue is used by the product: what nothing raises is not promised."""

from __future__ import annotations

import ast

from astraflow.core import errors
from tests.tidy.rules import tracked

CATALOGUE = "src/astraflow/core/errors.py"
SOURCES = ("src/", "sdk/src/", "packages/")


def test_every_code_of_the_catalogue_is_used() -> None:
    used: set[str] = set()
    for source in tracked():
        if source.name.startswith(SOURCES) and source.is_python and source.name != CATALOGUE:
            used |= _names(source.tree)
    rows = {name: row for name, row in vars(errors).items() if isinstance(row, errors.Code)}
    unused = [name for name, row in rows.items() if name not in used and row.code not in used]
    assert unused == [], "raise it, or take it out of the catalogue"


def _names(tree: ast.Module) -> set[str]:
    """The names and texts of a module; a text in the middle of a sentence is not one."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            found.add(node.attr)
        elif isinstance(node, ast.Name):
            found.add(node.id)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.add(node.value)
    return found

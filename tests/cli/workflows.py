"""Workflows that the tests of the command line run."""

from __future__ import annotations

from typing import Any

from tests import definitions
from tests.processes.process import ROOT

__all__ = ["EXAMPLES", "FAILING", "SLOW", "node", "workflow"]

EXAMPLES = ROOT / "examples"


def node(number: int, kind: str, label: str = "", **fields: Any) -> dict[str, Any]:
    """A node of core whose id is a number."""
    known = f"00000000-0000-4000-8000-{number:012d}"
    return {**definitions.node(f"core.{kind}", label or f"Node {number}", **fields), "id": known}


def workflow(*nodes: dict[str, Any], edges: Any = ()) -> dict[str, Any]:
    """Always the same workflow."""
    known = {"id": "0f1d5c9e-7f7c-4c1b-9d61-0c3a2f6d1b11", "metadata": {"name": "Of a test"}}
    return definitions.workflow(*nodes, edges=[definitions.link(*one) for one in edges]) | known


SLOW = workflow(node(1, "sleep", "Long sleep", parameters={"seconds": 120}))
FAILING = workflow(node(1, "fail", "Breaks", parameters={"message": "broken on purpose"}))

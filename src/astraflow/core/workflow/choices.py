"""Nodes that choose: `core.if` and `core.switch`. Each case is an output port; its edges lead on if it is chosen.

An edge from such a port carries the `value` of the node, if it leads to a data port.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from astraflow.core.errors import WORKFLOW_INVALID
from astraflow.core.workflow.core_manifest import IF_TYPE, SWITCH_TYPE
from astraflow.core.workflow.limits import MAX_KEY_CHARS, MAX_PORTS
from astraflow.core.workflow.ports import PortSpec

if TYPE_CHECKING:
    from astraflow.core.workflow.problems import Problems

CHOICE_TYPES: Final = frozenset({IF_TYPE, SWITCH_TYPE})
_IF_CASES: Final = frozenset({"true", "false"})
_TAKEN: Final = frozenset({"done", "error", "value", "trigger"})


def case_port(case: str) -> PortSpec:
    return PortSpec(case, "data", ("value",), case=case)


def cases_of(node_type: str, parameters: bytes, place: int, problems: Problems) -> frozenset[str]:
    """The cases of a node; what is wrong with those of a switch is reported."""
    if node_type == IF_TYPE:
        return _IF_CASES
    document = msgspec.json.decode(parameters)
    pointer = f"/nodes/{place}/parameters"
    rows = document.get("cases")
    if not isinstance(rows, list) or not 1 <= len(rows) <= MAX_PORTS:
        message = f"a switch has 1 to {MAX_PORTS} cases"
        problems.add(f"{pointer}/cases", WORKFLOW_INVALID, message)
        return frozenset()
    cases: dict[str, None] = {}
    for number, row in enumerate(rows):
        problem = _problem_of(row, cases)
        if problem is None:
            cases[row["port"]] = None
        else:
            problems.add(f"{pointer}/cases/{number}", WORKFLOW_INVALID, problem)
    default = document.get("default")
    if isinstance(default, str) and _is_port(default):
        cases[default] = None
    elif default is not None:
        message = "the default is the name of a port"
        problems.add(f"{pointer}/default", WORKFLOW_INVALID, message)
    return frozenset(cases)


def _problem_of(row: Any, known: dict[str, None]) -> str | None:
    if not isinstance(row, dict) or not isinstance(row.get("port"), str):
        return "a case is an object with the name of its port"
    port = row["port"]
    if not _is_port(port):
        return f"a port cannot have this name: {port[:80]!r}"
    if port in known:
        return f"two cases have the same port: {port}"
    if ("when" in row) == ("equals" in row):
        return "a case has either `when`, a condition, or `equals`, a value to compare with"
    if isinstance(row.get("when"), str) and not row["when"].startswith("="):
        return "the condition of a case is an expression: it begins with ="
    return None


def _is_port(name: str) -> bool:
    return 0 < len(name) <= MAX_KEY_CHARS and name.isprintable() and name not in _TAKEN

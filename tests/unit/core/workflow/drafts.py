"""Small definitions and manifests for the tests of this package."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from astraflow.core.workflow import (
    DefinitionProblem,
    Manifest,
    Plan,
    StaticCatalog,
    WorkflowDocument,
    core_manifest,
    decode_definition,
    decode_manifest,
    plan_workflow,
)
from astraflow.core.workflow.analysis import Analysis
from astraflow.core.workflow.stored_plan import decode_plan, encode_plan

EXAMPLES = Path(__file__).parents[4] / "schemas" / "examples" / "valid"
CORE = StaticCatalog([core_manifest()])


def uid(number: int) -> str:
    return f"00000000-0000-4000-8000-{number:012d}"


def node(number: int, node_type: str = "core.noop", **fields: Any) -> dict[str, Any]:
    return {"id": uid(number), "type": node_type, **fields}


def edge(source: int | str, target: int | str, **fields: Any) -> dict[str, Any]:
    """`edge("1.value", "2.value")` joins ports; `edge(1, 2)` is pure order."""
    return {"source": _end(source), "target": _end(target), **fields}


def _end(text: int | str) -> dict[str, Any]:
    number, _, port = str(text).partition(".")
    return {"node": uid(int(number)), **({"port": port} if port else {})}


def definition(
    nodes: Sequence[dict[str, Any]], edges: Sequence[dict[str, Any]] = (), **fields: Any
) -> WorkflowDocument:
    document = {"id": uid(0), "nodes": nodes, "edges": edges, **fields}
    return decode_definition(msgspec.json.encode(document))


def problems(
    nodes: Sequence[dict[str, Any]],
    edges: Sequence[dict[str, Any]] = (),
    *,
    catalog: StaticCatalog = CORE,
    **fields: Any,
) -> list[DefinitionProblem]:
    """What is wrong, whether or not the rest is executed yet."""
    return Analysis(definition(nodes, edges, **fields).workflow, catalog).problems.found()


def found(*args: Any, **fields: Any) -> list[tuple[str, str]]:
    """The problems as pairs of pointer and the last part of the code."""
    return [(row.pointer, row.code.rpartition(".")[2]) for row in problems(*args, **fields)]


def plan(
    nodes: Sequence[dict[str, Any]],
    edges: Sequence[dict[str, Any]] = (),
    *,
    catalog: StaticCatalog = CORE,
    **fields: Any,
) -> Plan:
    made = plan_workflow(definition(nodes, edges, **fields), catalog)
    made.check()
    assert decode_plan(encode_plan(made)) == made, "a plan is stored with its run"
    return made


def manifest(**fields: Any) -> Manifest:
    document = {"name": "example", "version": "1.0.0", "schemaVersion": "1.0.0", **fields}
    return decode_manifest(msgspec.json.encode(document))

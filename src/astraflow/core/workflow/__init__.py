"""Definition and manifest types, bindings, validation, and the planner: definition -> `Plan`."""

from __future__ import annotations

from astraflow.core.workflow.bindings import MISSING, Path, compile_path
from astraflow.core.workflow.catalog import Catalog, CatalogEntry, Miss, StaticCatalog
from astraflow.core.workflow.core_manifest import core_manifest
from astraflow.core.workflow.decoding import decode_definition, decode_manifest
from astraflow.core.workflow.definition import WorkflowDocument
from astraflow.core.workflow.manifest import Manifest
from astraflow.core.workflow.manifest_rules import validate_manifest
from astraflow.core.workflow.plan import (
    AffinityHint,
    Feature,
    InEdge,
    InputEdge,
    Plan,
    PlanNode,
    PlanOutput,
    ResourceRefValue,
    RetryPolicy,
    bind,
    find_resource_refs,
)
from astraflow.core.workflow.planner import plan_workflow
from astraflow.core.workflow.problems import DefinitionProblem, InvalidDocument
from astraflow.core.workflow.run_inputs import declared_inputs, take_inputs
from astraflow.core.workflow.validation import refusal_of, validate

__all__ = [
    "MISSING",
    "AffinityHint",
    "Catalog",
    "CatalogEntry",
    "DefinitionProblem",
    "Feature",
    "InEdge",
    "InputEdge",
    "InvalidDocument",
    "Manifest",
    "Miss",
    "Path",
    "Plan",
    "PlanNode",
    "PlanOutput",
    "ResourceRefValue",
    "RetryPolicy",
    "StaticCatalog",
    "WorkflowDocument",
    "bind",
    "compile_path",
    "core_manifest",
    "declared_inputs",
    "decode_definition",
    "decode_manifest",
    "find_resource_refs",
    "plan_workflow",
    "refusal_of",
    "take_inputs",
    "validate",
    "validate_manifest",
]

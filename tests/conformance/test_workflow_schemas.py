"""The published schemas and the types that decode accept and refuse the same documents."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jsonschema_rs
import msgspec
import pytest

from astraflow.core.workflow import (
    InvalidDocument,
    StaticCatalog,
    core_manifest,
    decode_definition,
    decode_manifest,
    validate,
    validate_manifest,
)
from astraflow.core.workflow.callees import called_by

SCHEMAS = Path(__file__).parents[2] / "schemas"
EXAMPLES = SCHEMAS / "examples"


def load(name: str) -> dict[str, Any]:
    document: dict[str, Any] = msgspec.json.decode((SCHEMAS / name).read_bytes())
    return document


def make_validator(name: str) -> Any:
    shared = [load("workflow.schema.json"), load("error.schema.json")]
    registry = jsonschema_rs.Registry([(one["$id"], one) for one in shared])
    return jsonschema_rs.Draft202012Validator(load(name), registry=registry)


VALIDATORS = {
    "workflow": make_validator("workflow.schema.json"),
    "manifest": make_validator("manifest.schema.json"),
}
CATALOG = StaticCatalog([core_manifest()])
CALLEE = decode_definition((EXAMPLES / "valid/workflow/smallest.json").read_bytes())
"""Whatever a definition calls, it is this."""


def pointers_by_types(kind: str, raw: bytes) -> list[str]:
    """Where our own types and rules find a problem."""
    try:
        if kind == "manifest":
            return [problem.pointer for problem in validate_manifest(decode_manifest(raw))]
        document = decode_definition(raw)
        called = dict.fromkeys(called_by(document), CALLEE)
        return [problem.pointer for problem in validate(document, CATALOG, called)]
    except InvalidDocument as refused:
        return [problem.pointer for problem in refused.problems]


def examples(verdict: str) -> list[Any]:
    return [
        pytest.param(kind, path, id=f"{kind}-{path.stem}")
        for kind in VALIDATORS
        for path in sorted((EXAMPLES / verdict / kind).glob("*.json"))
    ]


@pytest.mark.parametrize(("kind", "path"), examples("valid"))
def test_a_valid_example_is_accepted_by_schema_and_types(kind: str, path: Path) -> None:
    raw = path.read_bytes()
    VALIDATORS[kind].validate(msgspec.json.decode(raw))
    assert pointers_by_types(kind, raw) == []


@pytest.mark.parametrize(("kind", "path"), examples("valid"))
def test_a_valid_example_survives_decoding_whole(kind: str, path: Path) -> None:
    raw = path.read_bytes()
    decoded = decode_manifest(raw) if kind == "manifest" else decode_definition(raw)
    assert decoded.raw == raw
    assert decoded.document() == msgspec.json.decode(raw)


@pytest.mark.parametrize(("kind", "path"), examples("invalid"))
def test_an_invalid_example_is_refused_by_schema_and_types(kind: str, path: Path) -> None:
    raw = path.read_bytes()
    assert not VALIDATORS[kind].is_valid(msgspec.json.decode(raw))
    assert pointers_by_types(kind, raw)


@pytest.mark.parametrize(("kind", "path"), examples("invalid"))
def test_types_point_where_the_schema_points(kind: str, path: Path) -> None:
    """One of our pointers is on the way to, or below, a place that the schema names."""
    raw = path.read_bytes()
    ours = pointers_by_types(kind, raw)
    theirs = [
        "".join(f"/{step}" for step in error.instance_path)
        for error in VALIDATORS[kind].iter_errors(msgspec.json.decode(raw))
    ]
    near = [(a, b) for a in ours for b in theirs if a.startswith(b) or b.startswith(a)]
    assert near, (ours, theirs)


def test_the_manifest_of_core_is_valid_by_its_schema() -> None:
    VALIDATORS["manifest"].validate(core_manifest().document())


@pytest.mark.parametrize("name", ["workflow.schema.json", "manifest.schema.json"])
def test_a_schema_is_itself_valid(name: str) -> None:
    jsonschema_rs.meta.validate(load(name))

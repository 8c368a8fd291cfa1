"""The invalid corpus has a case for each keyword of JSON Schema that the manifests use in the parameters of nodes.

Each case is a workflow that is refused because of its keyword and nothing else: without the keyword in the manifests it
has no problem.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from astraflow.core.workflow import core_manifest, decode_definition, decode_manifest, validate
from astraflow.core.workflow.catalog import StaticCatalog
from tests.conftest import ROOT

CORPUS = ROOT / "schemas" / "examples" / "invalid" / "parameters"
ANNOTATIONS = frozenset({"default", "title", "description", "format", "examples", "$comment"})
"""Keywords that refuse nothing: `format` says what a text is for, as the draft has it by default."""
_OF_MANY = ("properties", "$defs", "patternProperties", "dependentSchemas")
_OF_SOME = ("anyOf", "oneOf", "allOf", "prefixItems")
_OF_ONE = (
    "items",
    "additionalProperties",
    "not",
    "if",
    "then",
    "else",
    "propertyNames",
    "contains",
)


def manifests() -> dict[str, dict[str, Any]]:
    """All manifests of the project, by package. One without nodes is a beginning: its nodes are read from code."""
    folders = sorted((ROOT / "packages").glob("*/manifest.json"))
    found = [json.loads(path.read_bytes()) for path in folders]
    known = [*found, json.loads(core_manifest().raw)]
    return {one["name"]: one for one in known if "nodes" in one}


def schemas_in(manifest: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The schemas of the parameters of all nodes, and those inside of them."""
    for node in manifest["nodes"]:
        schema = (node.get("schema") or {}).get("parameters")
        if schema is not None:
            yield from walk(schema)


def walk(schema: Any) -> Iterator[dict[str, Any]]:
    if not isinstance(schema, dict):
        return
    yield schema
    for keyword, value in list(schema.items()):
        inner: list[Any] = []
        if keyword in _OF_MANY:
            inner = list(value.values())
        elif keyword in _OF_SOME:
            inner = value
        elif keyword in _OF_ONE:
            inner = [value]
        for one in inner:
            yield from walk(one)


def keywords() -> set[str]:
    schemas = [schema for manifest in manifests().values() for schema in schemas_in(manifest)]
    return {keyword for schema in schemas for keyword in schema} - ANNOTATIONS


def catalog_without(keyword: str | None) -> StaticCatalog:
    found = manifests()
    for manifest in found.values():
        for schema in schemas_in(manifest):
            schema.pop(keyword or "", None)
    return StaticCatalog([decode_manifest(msgspec.json.encode(one)) for one in found.values()])


def test_each_keyword_of_the_manifests_has_a_case_and_no_other_has() -> None:
    assert {path.stem for path in CORPUS.glob("*.json")} == keywords()


@pytest.mark.parametrize("path", sorted(CORPUS.glob("*.json")), ids=lambda path: path.stem)
def test_a_case_is_refused_because_of_its_keyword(path: Path) -> None:
    definition = decode_definition(path.read_bytes())
    problems = validate(definition, catalog_without(None))
    assert {one.code for one in problems} == {"E.WORKFLOW.PARAMETER"}, problems
    assert all("/parameters" in one.pointer for one in problems)
    assert validate(definition, catalog_without(path.stem)) == []

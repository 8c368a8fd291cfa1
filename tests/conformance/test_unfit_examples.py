"""Definitions of the right shape whose values do not fit a schema. Keywords: `test_parameter_corpus`."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from astraflow.core.workflow import (
    StaticCatalog,
    core_manifest,
    decode_definition,
    decode_manifest,
    validate,
)
from tests.conformance.test_workflow_schemas import EXAMPLES, VALIDATORS

MANIFESTS = sorted((Path(__file__).parents[2] / "packages").glob("*/manifest.json"))
COMPLETE = [raw for raw in map(Path.read_bytes, MANIFESTS) if b'"schemaVersion"' in raw]
"""That of the template gets its version when the package is built."""
EXPECTED = {
    "type": ("/nodes/0/parameters/url", "PARAMETER"),
    "required": ("/nodes/0/parameters/url", "PARAMETER"),
    "enum": ("/nodes/0/parameters/level", "PARAMETER"),
    "minimum": ("/nodes/0/parameters/seconds", "PARAMETER"),
    "maximum": ("/nodes/0/parameters/temperature", "PARAMETER"),
    "format": ("/nodes/0/parameters/url", "PARAMETER"),
    "items": ("/nodes/0/parameters/texts/1", "PARAMETER"),
    "additionalProperties": ("/nodes/0/parameters/vallue", "PARAMETER"),
    "pattern": ("/nodes/0/parameters/value", "PARAMETER"),
    "edge_type": ("/edges/0", "EDGE_TYPE"),
    "own_schema": ("/nodes/0/schema/parameters/properties/value/type", "SCHEMA"),
    "remote_reference": ("/nodes/0/schema/results/$ref", "SCHEMA"),
    "input_default": ("/inputs/days/default", "INPUT"),
    "output_schema": ("/outputs/all/schema/minimum", "SCHEMA"),
}


def catalog() -> StaticCatalog:
    shipped = [decode_manifest(raw) for raw in COMPLETE]
    return StaticCatalog([core_manifest(), *(one for one in shipped if one.name != "core")])


def test_every_example_is_expected() -> None:
    assert {path.stem for path in (EXAMPLES / "unfit").glob("*.json")} == set(EXPECTED)


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_what_does_not_fit_is_refused_at_its_place(name: str) -> None:
    raw = (EXAMPLES / "unfit" / f"{name}.json").read_bytes()
    VALIDATORS["workflow"].validate(msgspec.json.decode(raw))
    (problem,) = validate(decode_definition(raw), catalog())
    pointer, code = EXPECTED[name]
    assert (problem.pointer, problem.code) == (pointer, f"E.WORKFLOW.{code}")

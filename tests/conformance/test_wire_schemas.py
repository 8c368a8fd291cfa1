"""Schemas and models accept and refuse the same frames.

The schemas are the contract, the models are what runs. Both judge every example, and then examples
that Hypothesis has changed in one place, where the two are most likely to drift apart: a bound, a
null, a type, a missing or an additional key.
"""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any, Final, get_args

import jsonschema_rs
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from astraflow.core.categories import Category, RetryCategory
from astraflow.core.protocol import codec
from astraflow.core.protocol.frame_table import FRAME_TYPES
from astraflow.core.protocol.wire import Envelope, Unreadable

ROOT: Final = Path(__file__).resolve().parent.parent.parent / "schemas"
MODELS: Final = {name: row.payload for name, row in FRAME_TYPES.items()}
ENVELOPE: Final = "envelope"
TYPES: Final = [ENVELOPE, *MODELS]

FRAME: Final = {
    "id": "01J8ZQ5T9GQ4X7V2N3M1K0HABC",
    "ts": "2026-01-15T10:00:00.000Z",
    "tenant": "acme",
    "sender": {"role": "worker", "id": "w-1"},
}


def schema_path(name: str) -> Path:
    if name == ENVELOPE:
        return ROOT / "session" / "envelope.schema.json"
    area, _, rest = name.partition(".")
    return ROOT / {"control": "session", "biz": "biz"}[area] / f"{rest}.schema.json"


SCHEMAS: Final = {name: json.loads(schema_path(name).read_text()) for name in TYPES}
ERROR: Final = json.loads((ROOT / "error.schema.json").read_text())
SHARED: Final = jsonschema_rs.Registry([(ERROR["$id"], ERROR)])
VALIDATORS: Final = {
    name: jsonschema_rs.Draft202012Validator(schema, registry=SHARED)
    for name, schema in SCHEMAS.items()
}


def examples(kind: str, name: str) -> list[tuple[str, Any]]:
    return list(json.loads((ROOT / "examples" / f"{name}.json").read_text())[kind].items())


def all_examples(kind: str) -> list[Any]:
    return [
        pytest.param(name, value, id=f"{name}-{stem}")
        for name in TYPES
        for stem, value in examples(kind, name)
    ]


def model_accepts(name: str, value: Any) -> bool:
    """Ask the code that runs in production: the codec, on a whole frame."""
    if name == ENVELOPE:
        try:
            codec.decode(msgspec.json.encode(value))
        except codec.BadFrame:
            return False
        return True
    frame = {**FRAME, "type": name, "payload": value}
    return not isinstance(codec.decode(msgspec.json.encode(frame)).payload, Unreadable)


def test_every_frame_type_has_a_schema_and_every_schema_a_frame_type() -> None:
    on_disk = {
        json.loads(path.read_text())["title"]
        for folder in ("session", "biz")
        for path in (ROOT / folder).glob("*.schema.json")
    }
    assert on_disk == set(TYPES)


def test_the_categories_of_the_schema_are_those_of_the_code() -> None:
    assert tuple(ERROR["$defs"]["retryCategory"]["enum"]) == get_args(RetryCategory)
    others = {one["const"] for one in ERROR["$defs"]["category"]["anyOf"] if "const" in one}
    assert {*get_args(RetryCategory), *others} == set(get_args(Category))


@pytest.mark.parametrize("name", TYPES)
def test_a_schema_is_a_schema_and_has_examples(name: str) -> None:
    jsonschema_rs.meta.validate(SCHEMAS[name])
    assert SCHEMAS[name]["$id"] == f"urn:astraflow:schema:{name}"
    assert len(examples("valid", name)) >= 2
    assert len(examples("invalid", name)) >= 3


@pytest.mark.parametrize("name", TYPES)
def test_a_schema_has_exactly_the_fields_of_its_model(name: str) -> None:
    model = Envelope if name == ENVELOPE else MODELS[name]
    fields = {field.encode_name: field.required for field in msgspec.structs.fields(model)}
    assert set(SCHEMAS[name]["properties"]) == set(fields)
    required = {field for field, is_required in fields.items() if is_required}
    assert set(SCHEMAS[name].get("required", [])) == required


@pytest.mark.parametrize(("name", "value"), all_examples("valid"))
def test_a_valid_example_is_accepted_by_both(name: str, value: Any) -> None:
    VALIDATORS[name].validate(value)
    assert model_accepts(name, value)


@pytest.mark.parametrize(("name", "value"), all_examples("invalid"))
def test_an_invalid_example_is_refused_by_both(name: str, value: Any) -> None:
    assert not VALIDATORS[name].is_valid(value)
    assert not model_accepts(name, value)


# Whole floats are left out: JSON Schema calls 1.0 an integer, and the wire does not.
ODD_VALUES: Final[list[Any]] = [
    None,
    True,
    False,
    0,
    1,
    -1,
    2,
    101,
    4_096,
    4_097,
    2**53 - 1,
    2**53,
    2**53 + 1,
    -(2**53),
    -(2**53) - 1,
    0.5,
    -0.5,
    1.5,
    "",
    "0",
    "x",
    "x" * 256,
    "x" * 257,
    "é" * 256,
    "2026-01-15T10:00:00Z",
    "2026-01-15t10:00:00.1234567890+23:59",
    "2016-12-31T23:59:60Z",
    "1969-01-01T00:00:00.000-24:00",
    "1968-12-31T23:59:59Z",
    "9999-12-30T23:59:59.9999999Z",
    [],
    [None],
    [{}],
    {},
    {"": ""},
    {"x": 1},
    {"x": "y"},
]


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in a value, the value itself first."""
    found = [path]
    if isinstance(value, dict):
        for key, inner in value.items():
            found += places(inner, (*path, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            found += places(inner, (*path, index))
    return found


@st.composite
def changed_examples(draw: st.DrawFn, valid: list[tuple[str, Any]], schema: dict[str, Any]) -> Any:
    """One of the examples of a schema, changed in one place."""
    value = copy.deepcopy(draw(st.sampled_from([each for _, each in valid])))
    place = draw(st.sampled_from(places(value)))
    change = draw(st.sampled_from(["replace", "remove", "add", "known"]))
    if not place:
        return draw(st.sampled_from(ODD_VALUES)) if change == "replace" else value
    parent = value
    for step in place[:-1]:
        parent = parent[step]
    if change == "remove":
        del parent[place[-1]]
    elif change == "add" and isinstance(parent[place[-1]], dict):
        parent[place[-1]][draw(st.sampled_from(["x", "", "type"]))] = 1
    elif change == "known" and isinstance(value, dict):
        field = draw(st.sampled_from(sorted(schema["properties"])))
        value[field] = draw(st.sampled_from(ODD_VALUES))
    else:
        parent[place[-1]] = draw(st.sampled_from(ODD_VALUES))
    return value


@pytest.mark.parametrize("name", TYPES)
@settings(max_examples=150)
@given(data=st.data())
def test_both_judge_a_changed_example_alike(name: str, data: st.DataObject) -> None:
    value = data.draw(changed_examples(examples("valid", name), SCHEMAS[name]))
    assert model_accepts(name, value) == VALIDATORS[name].is_valid(value), value

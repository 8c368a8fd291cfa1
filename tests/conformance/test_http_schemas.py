"""Schemas and models of the HTTP worker contract accept and refuse the same bodies.

A callback is judged by the code that reads it in production. What the scheduler sends is judged by its model, and the
tests of HTTP workers hold every push and every answer of a real scheduler against these schemas.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final

import jsonschema_rs
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from astraflow.api.task_routes import read_completed, read_heartbeat, read_started
from astraflow.core.contract import tasks
from astraflow.core.errors import AstraflowError
from tests.conformance.test_wire_schemas import ROOT, SHARED, changed_examples

READ: Final[dict[str, Callable[[bytes], Any]]] = {
    "started": read_started,
    "heartbeat": read_heartbeat,
    "completed": read_completed,
}
MODELS: Final[dict[str, type[msgspec.Struct]]] = {
    "envelope": tasks.TaskEnvelope,
    "started": tasks.TaskStarted,
    "heartbeat": tasks.TaskHeartbeat,
    "completed": tasks.TaskCompleted,
    "accepted": tasks.CallbackAccepted,
    "heartbeat.accepted": tasks.HeartbeatAccepted,
    "completed.accepted": tasks.CompletionAccepted,
    "refused": tasks.CallbackRefused,
}
FOLDER: Final = ROOT / "http"
SCHEMAS: Final = {name: json.loads((FOLDER / f"{name}.schema.json").read_text()) for name in MODELS}
VALIDATORS: Final = {
    name: jsonschema_rs.Draft202012Validator(schema, registry=SHARED)
    for name, schema in SCHEMAS.items()
}


def examples(kind: str, name: str) -> list[tuple[str, Any]]:
    text = (ROOT / "examples" / f"http.{name}.json").read_text()
    return list(json.loads(text)[kind].items())


def all_examples(kind: str) -> list[Any]:
    return [
        pytest.param(name, value, id=f"{name}-{stem}")
        for name in MODELS
        for stem, value in examples(kind, name)
    ]


def model_accepts(name: str, value: Any) -> bool:
    raw = msgspec.json.encode(value)
    try:
        if name in READ:
            READ[name](raw)
            return True
        model = msgspec.json.decode(raw, type=MODELS[name])
    except (AstraflowError, msgspec.ValidationError):
        return False
    # The model carries parameters as bytes; those of a node are an object.
    return not isinstance(model, tasks.TaskEnvelope) or bytes(model.parameters).startswith(b"{")


def test_every_model_has_a_schema_and_every_schema_a_model() -> None:
    on_disk = {path.name.removesuffix(".schema.json") for path in FOLDER.glob("*.schema.json")}
    assert on_disk == set(MODELS)


@pytest.mark.parametrize("name", MODELS)
def test_a_schema_is_a_schema_and_has_examples(name: str) -> None:
    jsonschema_rs.meta.validate(SCHEMAS[name])
    assert SCHEMAS[name]["$id"] == f"urn:astraflow:schema:http.{name}"
    assert SCHEMAS[name]["title"] == f"http.{name}"
    assert len(examples("valid", name)) >= 2
    assert len(examples("invalid", name)) >= 3


@pytest.mark.parametrize("name", MODELS)
def test_a_schema_has_exactly_the_fields_of_its_model(name: str) -> None:
    fields = {field.encode_name: field.required for field in msgspec.structs.fields(MODELS[name])}
    assert set(SCHEMAS[name]["properties"]) == set(fields)
    assert set(SCHEMAS[name]["required"]) == {field for field, needed in fields.items() if needed}


@pytest.mark.parametrize(("name", "value"), all_examples("valid"))
def test_a_valid_example_is_accepted_by_both(name: str, value: Any) -> None:
    VALIDATORS[name].validate(value)
    assert model_accepts(name, value)


@pytest.mark.parametrize(("name", "value"), all_examples("invalid"))
def test_an_invalid_example_is_refused_by_both(name: str, value: Any) -> None:
    assert not VALIDATORS[name].is_valid(value)
    assert not model_accepts(name, value)


@pytest.mark.parametrize("name", MODELS)
@settings(max_examples=150)
@given(data=st.data())
def test_both_judge_a_changed_example_alike(name: str, data: st.DataObject) -> None:
    value = data.draw(changed_examples(examples("valid", name), SCHEMAS[name]))
    assert model_accepts(name, value) == VALIDATORS[name].is_valid(value), value

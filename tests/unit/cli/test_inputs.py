"""What commands are given, and how they are taken apart."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from astraflow.cli import main as entry
from astraflow.cli.exit_codes import exit_code_of
from astraflow.cli.follow import duration
from astraflow.cli.inputs import read_definition
from astraflow.cli.local_workers import worker_environment
from astraflow.cli.run_inputs import collect_inputs, told_inputs
from astraflow.cli.server import labels_of
from astraflow.core import errors
from astraflow.core.workflow import StaticCatalog, core_manifest, decode_definition, validate
from astraflow.core.workflow.callees import CalleeKey
from astraflow.core.workflow.definition import WorkflowDocument
from tests.cli.workflows import EXAMPLES
from tests.tables import each_row


def test_an_input_is_json_or_a_text() -> None:
    given = ["a=1", "b=true", 'c={"d": [1]}', "e=plain text", "f=", "g=x=y"]
    assert collect_inputs(given, None, {}) == {
        "a": 1,
        "b": True,
        "c": {"d": [1]},
        "e": "plain text",
        "f": "",
        "g": "x=y",
    }
    assert collect_inputs(None, None, {}) == {}
    with pytest.raises(errors.Refused, match="NAME=VALUE"):
        collect_inputs(["novalue"], None, {})


@each_row(
    ("schema", "text", "value"),
    [
        ({"type": "string"}, "5", "5"),
        ({"type": "string"}, "true", "true"),
        ({"type": "number"}, "5", 5),
        ({"type": "integer"}, "5", 5),
        ({"type": "integer"}, "five", "five"),
        ({"type": ["string", "null"]}, "null", None),
        ({"type": ["string", "null"]}, "5", "5"),
        ({"type": "array"}, "[1]", [1]),
        ({"type": "boolean"}, "false", False),
        ({}, "5", 5),
        (None, "5", 5),
    ],
)
def test_an_input_is_read_as_its_schema_says(schema: Any, text: str, value: object) -> None:
    assert collect_inputs([f"a={text}"], None, {"a": {"schema": schema}}) == {"a": value}


def test_inputs_of_a_file_count_less_than_those_of_the_command(tmp_path: Path) -> None:
    file = tmp_path / "inputs.json"
    file.write_text('{"a": 1, "b": [2]}')
    assert collect_inputs(["a=3"], str(file), {}) == {"a": 3, "b": [2]}
    file.write_text("[]")
    with pytest.raises(errors.Refused, match="not a JSON object"):
        collect_inputs(None, str(file), {})


def test_declared_inputs_and_outputs_are_told_in_lines() -> None:
    definition = {
        "inputs": {
            "city": {"schema": {"type": "string"}, "required": True, "description": "Where"},
            "days": {"schema": {"type": ["integer", "null"]}, "default": 3},
            "odd": 5,
            "any": {},
        },
        "outputs": {"text": {"description": "What"}, "more": {}},
    }
    assert list(told_inputs(definition)) == [
        "input city (string, required): Where",
        "input days (integer or null, default 3)",
        "input any (anything)",
        "output text: What",
        "output more",
    ]
    assert list(told_inputs({"inputs": []})) == []


def test_a_label_is_two_texts() -> None:
    assert labels_of(["gpu=1", "zone=a=b"]) == {"gpu": "1", "zone": "a=b"}
    assert labels_of(None) is None
    with pytest.raises(errors.Refused, match="NAME=VALUE"):
        labels_of(["gpu"])


def test_a_definition_is_kept_byte_for_byte(tmp_path: Path) -> None:
    file = tmp_path / "w.json"
    raw = b'{"id": "x",   "nodes": [], "edges": [], "number": 1.0}\n'
    file.write_bytes(raw)
    assert read_definition(str(file)).raw == raw
    file.write_bytes(b'{"workflow": ' + raw + b', "inputs": {"a": 1}}')
    given = read_definition(str(file))
    assert (given.raw.strip(), given.inputs) == (raw.strip(), {"a": 1})


@pytest.mark.parametrize("content", ["", "[1]", "{", '"x"', '{"workflow": 1}', "[" * 100_000])
def test_what_is_no_definition_is_refused(tmp_path: Path, content: str) -> None:
    file = tmp_path / "w.json"
    file.write_text(content)
    with pytest.raises(errors.Refused) as raised:
        read_definition(str(file))
    assert exit_code_of(raised.value) == 2


def test_a_worker_is_told_its_token_and_none_of_the_schedulers_secrets() -> None:
    environ = {
        "PATH": "/bin",
        "ASTRA_SCHEDULER_SECRET": "s",
        "ASTRA_SCHEDULER_BOOTSTRAP_TOKEN": "t",
        "ASTRA_WORKER_AUTH_TOKEN_FILE": "f",
        "ASTRA_WORKER_LABELS": "a=b",
    }
    assert worker_environment(environ, "given", 8) == {
        "PATH": "/bin",
        "ASTRA_WORKER_LABELS": "a=b",
        "ASTRA_WORKER_AUTH_TOKEN": "given",
        "ASTRA_WORKER_DRAIN_TIMEOUT_SECONDS": "8",
    }


@pytest.mark.parametrize(
    ("seconds", "shown"), [("00.012", "12 ms"), ("01.500", "1.5 s"), ("59.900", "59.9 s")]
)
def test_durations_are_for_people(seconds: str, shown: str) -> None:
    assert duration("2026-01-01T00:00:00.000Z", f"2026-01-01T00:00:{seconds}Z") == shown
    assert duration("2026-01-01T00:00:00.000Z", "2026-01-01T01:00:05.000Z") == "60 min 5 s"
    assert duration(None, "2026-01-01T00:00:00.000Z") == "-"


def test_exit_codes_say_whose_fault_it_was() -> None:
    assert exit_code_of(errors.Unavailable(errors.OVERLOADED, "")) == 3
    assert exit_code_of(errors.StoreError(errors.STORE_LOCKED, "")) == 3
    assert exit_code_of(errors.Refused(errors.CONFIG_INVALID, "")) == 2
    assert exit_code_of(errors.Refused(errors.AUTH_INVALID_TOKEN, "")) == 2
    assert exit_code_of(errors.NotFound(errors.RUN_NOT_FOUND, "")) == 1


@each_row("name", list(entry.COMMANDS))
def test_every_command_of_the_list_is_there_and_says_what_it_does(name: str) -> None:
    from importlib import import_module

    import typer

    place = entry.COMMANDS[name]
    found = getattr(import_module(f"astraflow.cli.{place.module}"), place.name)
    says = found.info.help if isinstance(found, typer.Typer) else found.__doc__
    assert says


@pytest.mark.parametrize("file", sorted(EXAMPLES.glob("*.json")), ids=lambda file: file.stem)
def test_an_example_is_a_valid_workflow_with_a_name(file: Path) -> None:
    definition = json.loads(file.read_text())
    assert definition["metadata"]["name"]
    assert definition["metadata"]["description"]
    assert all(node["label"] for node in definition["nodes"])
    catalog = StaticCatalog([core_manifest()])
    called = decode_definition((EXAMPLES / "greeting.json").read_bytes())
    documents: dict[CalleeKey, WorkflowDocument] = {(called.workflow.id, None): called}
    assert validate(decode_definition(file.read_bytes()), catalog, documents) == []

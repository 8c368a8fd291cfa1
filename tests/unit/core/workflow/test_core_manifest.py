"""Package `core` is what docs/workflows.md says it is."""

from __future__ import annotations

import pytest

from astraflow.core.workflow import (
    CatalogEntry,
    StaticCatalog,
    bind,
    core_manifest,
    validate_manifest,
)
from astraflow.core.workflow.core_manifest import (
    APPROVAL_TYPE,
    CALL_TYPE,
    CONTAINER_TYPE,
    IF_TYPE,
    SIGNAL_TYPE,
    SWITCH_TYPE,
    WAIT_TYPE,
)
from astraflow.core.workflow.core_words import label_of
from tests.tables import each_row
from tests.unit.core.workflow.drafts import edge, node, plan

BY_SCHEDULER = {
    CONTAINER_TYPE,
    CALL_TYPE,
    WAIT_TYPE,
    APPROVAL_TYPE,
    SIGNAL_TYPE,
    IF_TYPE,
    SWITCH_TYPE,
}

# type, ports in, ports out: the control ports are on every node.
TABLE = [
    ("core.noop", "", ""),
    ("core.echo", "value", "value"),
    ("core.sleep", "", ""),
    ("core.fail", "", ""),
    ("core.log", "message", ""),
    ("core.stream", "text", "text"),
    ("core.template", "values", "text"),
    ("core.python", "inputs", "result"),
    ("core.http", "url body", "body"),
    ("core.file", "", "file"),
    ("core.read_file", "file", "sha256"),
]

MIDDLEWARES = {
    f"core.{name}" for name in ["retry", "cache", "rate_limit", "timeout", "loop", "log_calls"]
}


def test_the_manifest_is_sound() -> None:
    assert validate_manifest(core_manifest()) == []


@each_row(("node_type", "inputs", "outputs"), TABLE)
def test_a_node_of_core_has_its_ports(node_type: str, inputs: str, outputs: str) -> None:
    found = StaticCatalog([core_manifest()]).find(node_type)
    assert isinstance(found, CatalogEntry)
    assert found.ports.inputs is not None
    assert set(found.ports.inputs) == {"trigger", *inputs.split()}
    assert found.ports.outputs is not None
    assert set(found.ports.outputs) == {"done", "error", *outputs.split()}
    assert found.runtime == "python"
    assert not found.executed_by_scheduler


def test_core_has_these_types_and_those_of_the_scheduler_and_no_others() -> None:
    body = core_manifest().body
    by_worker = {row[0] for row in TABLE} | MIDDLEWARES
    assert {row.type for row in body.nodes} == by_worker | BY_SCHEDULER
    assert {row.type for row in body.nodes if row.executed_by == "scheduler"} == BY_SCHEDULER
    assert set(body.adapters[0].capabilities) == by_worker


def test_a_middleware_of_core_has_help_for_each_parameter_and_no_ports() -> None:
    rows = [row for row in core_manifest().document()["nodes"] if row.get("middleware")]
    assert {row["type"] for row in rows} == MIDDLEWARES
    for row in rows:
        assert row["description"].endswith(".")
        assert row["ui"]["inputPorts"] == row["ui"]["outputPorts"] == []
        parameters = row["schema"]["parameters"]["properties"]
        assert [one["key"] for one in row["ui"]["widgets"]] == list(parameters)
        for widget, schema in zip(row["ui"]["widgets"], parameters.values(), strict=True):
            assert widget["label"] == schema["title"]
            assert widget["options"]["help"] == schema["description"]


@pytest.mark.parametrize(
    ("returned", "expected"),
    [
        ({"result": 5}, b'{"value":5}'),
        ({"a": 1, "b": 2}, b'{"value":{"a":1,"b":2}}'),
    ],
)
def test_the_result_of_python_is_all_of_it_or_the_bare_value(
    returned: dict[str, int], expected: bytes
) -> None:
    made = plan(
        [node(1, "core.python", parameters={"code": ""}), node(2, "core.echo")],
        [edge("1.result", "2.value")],
    )
    assert bind(made.nodes[1], lambda source: returned) == expected


def test_every_node_says_what_it_is_and_how_it_is_drawn() -> None:
    for one in core_manifest().document()["nodes"]:
        assert one["label"], one["type"]
        assert one["description"].endswith("."), one["type"]
        assert one["icon"], one["type"]
        assert one["color"].startswith("#"), one["type"]
        for widget in one["ui"]["widgets"]:
            assert widget["label"][0].isupper(), (one["type"], widget["key"])


@each_row(
    ("key", "label"),
    [
        ("value", "Value"),
        ("timeoutSeconds", "Timeout (s)"),
        ("url", "URL"),
        ("delayMs", "Delay (ms)"),
        ("sizeBytes", "Size (bytes)"),
    ],
)
def test_a_key_is_shown_as_people_read_it(key: str, label: str) -> None:
    assert label_of(key) == label


def test_code_is_edited_as_code() -> None:
    nodes = {one["type"]: one for one in core_manifest().document()["nodes"]}
    (widget,) = [one for one in nodes["core.python"]["ui"]["widgets"] if one["key"] == "code"]
    assert (widget["component"], widget["options"]) == ("code", {"language": "python"})

from __future__ import annotations

from typing import Any

import msgspec

from astraflow.core.workflow.definition import Ui
from astraflow.core.workflow.ports import DONE, ERROR, TRIGGER, PortCompiler, Ports, PortSpec
from astraflow.core.workflow.problems import Problems
from tests.tables import each_row


def compile_ui(**sides: Any) -> tuple[Ports, list[tuple[str, str]]]:
    problems = Problems()
    ui = msgspec.convert(sides, Ui)
    ports = PortCompiler(problems).compile(ui, "/ui")
    rows = [(row.pointer, row.code.rpartition(".")[2]) for row in problems.found()]
    return ports, rows


def port(path: str | None = None, **fields: Any) -> dict[str, Any]:
    binding = {} if path is None else {"binding": {"path": path, **fields.pop("bind", {})}}
    return {"key": "a", **binding, **fields}


def test_declared_ports_join_the_control_and_error_ports() -> None:
    ports, problems = compile_ui(inputPorts=[port("parameters.x.y")], outputPorts=[port("results")])
    assert problems == []
    assert ports.inputs == {"a": PortSpec("a", "data", ("x", "y")), "trigger": TRIGGER}
    assert ports.outputs == {"a": PortSpec("a", "data", ()), "done": DONE, "error": ERROR}


def test_a_side_that_is_not_declared_stays_open() -> None:
    assert compile_ui()[0] == Ports(None, None)


def test_trigger_and_done_stay_control_ports_whatever_their_binding() -> None:
    trigger = {"key": "trigger", "binding": {"path": "parameters.trigger", "mode": "write"}}
    done = {"key": "done", "binding": {"path": "results.done", "mode": "read"}}
    ports, problems = compile_ui(inputPorts=[trigger], outputPorts=[done])
    assert problems == []
    assert ports.inputs == {"trigger": TRIGGER}
    assert ports.outputs == {"done": DONE, "error": ERROR}


def test_a_port_without_binding_is_the_parameter_or_result_of_its_name() -> None:
    ports, _ = compile_ui(inputPorts=[port(multiple=True)], outputPorts=[port()])
    assert ports.inputs is not None
    assert ports.inputs["a"] == PortSpec("a", "data", ("a",), multiple=True)
    assert ports.outputs is not None
    assert ports.outputs["a"].path == ("a",)


def test_a_declared_error_port_reads_the_error() -> None:
    own = [{"key": "error", "kind": "error", "binding": {"path": "error.message"}}]
    ports, problems = compile_ui(outputPorts=own)
    assert problems == []
    assert ports.outputs is not None
    assert ports.outputs["error"] == PortSpec("error", "error", ("message",))


@each_row(
    ("sides", "expected"),
    [
        ({"inputPorts": [port("results.x")]}, ("inputPorts/0/binding/path", "BAD_PATH")),
        ({"inputPorts": [port("parameters")]}, ("inputPorts/0/binding/path", "BAD_PATH")),
        ({"outputPorts": [port("parameters.x")]}, ("outputPorts/0/binding/path", "BAD_PATH")),
        ({"inputPorts": [port("parameters..")]}, ("inputPorts/0/binding/path", "BAD_PATH")),
        (
            {"inputPorts": [port("parameters.x", bind={"mode": "read"})]},
            ("inputPorts/0/binding/mode", "INVALID"),
        ),
        (
            {"outputPorts": [port("results.x", bind={"mode": "write"})]},
            ("outputPorts/0/binding/mode", "INVALID"),
        ),
        ({"inputPorts": [port(kind="error")]}, ("inputPorts/0/kind", "INVALID")),
        ({"inputPorts": [{"key": "a.b..c"}]}, ("inputPorts/0/key", "BAD_PATH")),
        ({"inputPorts": [port(), port()]}, ("inputPorts/1/key", "DUPLICATE_ID")),
        ({"inputPorts": [port(label="x" * 300)]}, ("inputPorts/0/label", "LIMIT")),
        ({"inputPorts": [port()] * 257}, ("inputPorts", "LIMIT")),
        ({"widgets": [{"key": "w"}] * 1_025}, ("widgets", "LIMIT")),
        ({"widgets": [{"key": "w"}, port("secrets.x")]}, ("widgets/1/binding/path", "BAD_PATH")),
        ({"widgets": [port("/results//x")]}, ("widgets/0/binding/path", "BAD_PATH")),
    ],
)
def test_a_port_that_cannot_be_used_is_reported(
    sides: dict[str, Any], expected: tuple[str, str]
) -> None:
    pointer, code = expected
    assert compile_ui(**sides)[1] == [(f"/ui/{pointer}", code)]


def test_an_empty_key_is_reported_as_text_and_as_path() -> None:
    assert compile_ui(inputPorts=[{"key": ""}])[1] == [
        ("/ui/inputPorts/0/key", "BAD_TEXT"),
        ("/ui/inputPorts/0/key", "BAD_PATH"),
    ]


def test_widgets_may_read_and_write_both_sides() -> None:
    assert compile_ui(widgets=[port("parameters.x"), port("/results/y")])[1] == []

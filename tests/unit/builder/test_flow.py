"""The builder: what it writes, what it refuses, and that everything reads back."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings

from astraflow.builder import (
    BackoffSpec,
    CronTrigger,
    Flow,
    FlowNode,
    MapOver,
    ResourcesSpec,
    Retry,
    WaitSpec,
    WebhookTrigger,
    case,
    core,
    expr,
    manifest_catalog,
    secret,
    server_catalog,
)
from astraflow.builder.settings import SETTINGS, NodeSettings
from astraflow.core import errors
from astraflow.core.contract.packages import NodeType
from astraflow.core.workflow import InvalidDocument
from astraflow.core.workflow.canonical import canonical
from tests.conformance.test_agreement import definitions

ROOT = Path(__file__).resolve().parents[3]
FILES = [
    *sorted((ROOT / "examples").glob("*.json")),
    *sorted((ROOT / "schemas" / "examples" / "valid").glob("workflow*.json")),
]


def edges_of(flow: Flow) -> list[tuple[str, str]]:
    """Each edge as `label.port` of both ends."""
    labels = {node.id: node.label for node in flow.nodes()}

    def end(one: dict[str, str]) -> str:
        return labels[one["node"]] + (f".{one['port']}" if "port" in one else "")

    return [(end(edge["source"]), end(edge["target"])) for edge in flow.document()["edges"]]


def refused(code: errors.Code, *words: str) -> Any:
    """Expects a refusal with this code whose message has all the words."""
    pattern = ".*".join(words)
    return pytest.raises(errors.Refused, match=f"{code.code}.*{pattern}")


def test_the_same_script_gives_the_same_document() -> None:
    def made() -> Flow:
        flow = Flow("Twice", description="d", tags=["a"], priority=3, timeout_seconds=60)
        core.echo(flow, "One", value=1) >> core.echo(flow, "Two", value=2)
        return flow

    assert made().to_json() == made().to_json()
    document = made().document()
    assert document["metadata"] == {"name": "Twice", "description": "d", "tags": ["a"]}
    assert (document["priority"], document["timeoutSeconds"]) == (3, 60)
    other = Flow("Twice", id="5b2c3fcb-9c18-4ca2-9b5a-8ad4deb1f164")
    assert core.echo(other, "One").id != made()["One"].id
    assert made()["One"].id == made().nodes()[0].id == document["nodes"][0]["id"]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_definition_reads_back_byte_by_byte(path: Path) -> None:
    wanted = canonical(msgspec.json.decode(path.read_bytes()))
    for text in (path.read_bytes(), path.read_text("utf-8"), msgspec.json.decode(wanted)):
        assert Flow.from_json(text).to_json() == wanted


@settings(max_examples=500, deadline=None, suppress_health_check=list(HealthCheck))
@given(definitions())
def test_a_generated_definition_reads_back_byte_by_byte(raw: bytes) -> None:
    assert Flow.from_json(raw).to_json() == canonical(msgspec.json.decode(raw))


def test_the_examples_are_there_to_be_read() -> None:
    assert len(FILES) >= 10


def test_unknown_fields_survive_changes() -> None:
    flow = Flow("Later")
    core.echo(flow, "One", value=1)
    document = flow.document()
    document["later"] = {"x": [1.0, None]}
    document["nodes"][0]["colour"] = "red"
    again = Flow.from_json(document)
    again["One"].set(retry=Retry(max_attempts=2)) >> core.noop(again, "Two")
    kept = again.document()
    assert kept["later"] == {"x": [1.0, None]}
    assert kept["nodes"][0]["colour"] == "red"
    assert kept["nodes"][0]["retry"] == {"maxAttempts": 2}
    assert flow.document()["nodes"][0].get("retry") is None


def test_what_is_no_definition_is_not_read() -> None:
    with pytest.raises(InvalidDocument):
        Flow.from_json(b'{"nodes": 5}')


def test_a_port_as_a_parameter_is_an_edge() -> None:
    flow = Flow("Edges")
    one = core.echo(flow, "One", value={"a": 1})
    core.template(flow, "Two", template="{{a}}", values=one["value"])
    core.log(flow, "Three", message=one)  # its only port with a value
    assert edges_of(flow) == [("One.value", "Two.values"), ("One.value", "Three.message")]
    assert flow.problems() == []


def test_a_port_inside_of_a_value_is_an_expression_and_an_order() -> None:
    flow = Flow("Inside")
    one = core.echo(flow, "Two words", value=3)
    two = core.template(
        flow, "Two", template="{{a}}", values={"a": one["value"], "b": [one["value"]]}
    )
    assert two.fields["parameters"]["values"] == {
        "a": '=nodes["Two words"].results.value',
        "b": ['=nodes["Two words"].results.value'],
    }
    assert edges_of(flow) == [("Two words", "Two")]
    late = core.sleep(flow, "Late", seconds=one["value"])  # a parameter without a port
    assert late.fields["parameters"] == {"seconds": '=nodes["Two words"].results.value'}
    assert flow.problems() == []


def test_conditions_lead_through_cases_ports_and_edges() -> None:
    flow = Flow("Conditions")
    total = flow.input("total", {"type": "number"}, default=5, required=False)
    check = core.if_(flow, "Large?", condition=total > 3, value=total)
    yes = core.echo(flow, "Yes", value=check["true"])
    check["false"] >> core.noop(flow, "No")
    size = core.switch(
        flow, "Size", value=total, cases=[case("a", equals=0), case("b", when="inputs.total > 1")],
        default="c",
    )  # fmt: skip
    yes >> size
    inside = core.template(flow, "T", template="{{x}}", values={"x": size["a"]})
    yes.error >> inside
    yes["value"].when("results.value > 3") >> core.noop(flow, "Some").set(when=total != 4)
    flow.edge(yes, inside, when=expr("= results.value == 1"))
    assert ("Large?.true", "Yes.value") in edges_of(flow)
    assert ("Size.a", "T") in edges_of(flow)
    assert ("Yes.error", "T") in edges_of(flow)
    edges = flow.document()["edges"]
    assert [edge.get("when") for edge in edges if "when" in edge] == [
        "results.value > 3",
        "results.value == 1",
    ]
    assert flow["Some"].fields["when"] == "inputs.total != 4"
    assert flow["Size"].fields["parameters"]["cases"] == [
        {"port": "a", "equals": 0},
        {"port": "b", "when": "=inputs.total > 1"},
    ]
    assert flow.problems() == []


def test_many_are_connected_at_once() -> None:
    flow = Flow("Many")
    a, b, c, d = (core.noop(flow, name) for name in "ABCD")
    a >> [b, c] >> d
    [b, c] >> d  # the same edges once more
    e = core.echo(flow, "E")
    core.echo(flow, "F", value=1)["value"] >> e["value"]
    flow["F"] >> core.log(flow, "G")["message"]
    assert edges_of(flow) == [
        ("A", "B"), ("A", "C"), ("B", "D"), ("C", "D"), ("F.value", "E.value"),
        ("F.value", "G.message"),
    ]  # fmt: skip
    [flow["F"]["value"]] >> core.log(flow, "H")["message"]
    assert edges_of(flow)[-1] == ("F.value", "H.message")


def test_everything_that_a_node_can_say() -> None:
    flow = Flow("Settings")
    shield = core.noop(flow, "Shield")
    node = core.echo(flow, "Host", value=secret("key")).set(
        retry=Retry(max_attempts=4, backoff=BackoffSpec(initial_seconds=2.0)),
        timeout_seconds=5,
        join="all_done",
        middlewares=[shield],
        on_failure=shield,
        resources=ResourcesSpec(cpu=2.0),
        disabled=True,
        map=MapOver(over="value", concurrency=5),
        position={"x": 1, "y": 2},
        worker_hints={"labels": {"zone": "eu"}},
    )
    assert node.fields == {
        "id": node.id,
        "type": "core.echo",
        "label": "Host",
        "parameters": {"value": {"secretRef": {"name": "key"}}},
        "retry": {"maxAttempts": 4, "backoff": {"initialSeconds": 2.0}},
        "timeoutSeconds": 5,
        "join": "all_done",
        "middlewares": [shield.id],
        "onFailure": shield.id,
        "resources": {"cpu": 2.0},
        "disabled": True,
        "map": {"over": "value", "concurrency": 5},
        "position": {"x": 1, "y": 2},
        "workerHints": {"labels": {"zone": "eu"}},
    }
    assert set(NodeSettings.__annotations__) == set(SETTINGS)


def test_what_the_scheduler_does_itself() -> None:
    flow = Flow("Waits")
    core.wait(flow, "Pause", seconds=0.5)
    core.wait(flow, "Until", until=flow.input("at"))
    core.approval(flow, "Sure?", message="Go on?", roles=["editor"], form={"type": "object"})
    core.signal(flow, "Called", name="call", timeout_seconds=9)
    core.call(flow, "Other", workflow_id="w", version=2, inputs={"a": 1})
    core.wait(flow, "Struct").set(wait=WaitSpec(seconds=2.0))
    shown = {node.label: node.fields for node in flow.nodes()}
    assert shown["Pause"]["wait"] == {"seconds": 0.5}
    assert shown["Until"]["wait"] == {"until": "=inputs.at"}
    assert shown["Sure?"]["approval"] == {
        "message": "Go on?", "roles": ["editor"], "form": {"type": "object"},
    }  # fmt: skip
    assert shown["Called"]["signal"] == {"name": "call", "timeoutSeconds": 9}
    assert shown["Other"]["call"] == {"workflowId": "w", "version": 2}
    assert shown["Other"]["parameters"] == {"inputs": {"a": 1}}
    assert shown["Struct"]["wait"] == {"seconds": 2.0}


def test_containers_hold_what_is_added_inside() -> None:
    flow = Flow("Inside")
    with flow.container("Outer", {"input": 1}) as outer:
        core.noop(flow, "A")
        with flow.container("Inner") as inner:
            core.noop(flow, "B")
    core.noop(flow, "C")
    parents = {node.label: node.fields.get("parent") for node in flow.nodes()}
    assert parents == {"Outer": None, "A": outer.id, "Inner": outer.id, "B": inner.id, "C": None}


def test_inputs_outputs_and_triggers() -> None:
    flow = Flow("Contract")
    flow.input("two words", {"type": "string"}, required=True, description="d")
    node = core.echo(flow, "Echo", value=flow.input("n", default=None))
    flow.output("said", node["value"], {"type": "number"}, description="o")
    flow.output("again", node)
    flow.trigger(CronTrigger(expression="0 7 * * *", time_zone="Europe/Paris"))
    flow.trigger(WebhookTrigger(inputs={"n": "body.n"}))
    flow.trigger({"type": "manual", "id": "m"})
    document = flow.document()
    assert document["inputs"] == {
        "two words": {"schema": {"type": "string"}, "required": True, "description": "d"},
        "n": {"default": None},
    }
    end = {"node": node.id, "port": "value"}
    assert document["outputs"] == {
        "said": {"source": end, "schema": {"type": "number"}, "description": "o"},
        "again": {"source": end},
    }
    assert document["triggers"] == [
        {"type": "cron", "expression": "0 7 * * *", "timeZone": "Europe/Paris"},
        {"type": "webhook", "inputs": {"n": "body.n"}},
        {"type": "manual", "id": "m"},
    ]


def test_what_is_wrong_is_refused_where_it_is_written() -> None:
    flow = Flow("Wrong")
    one = core.echo(flow, "One", value=1)
    with refused(errors.WORKFLOW_UNKNOWN_TYPE, "did you mean 'core.echo'"):
        flow.node("core.ecko", "X")
    with refused(errors.WORKFLOW_PARAMETER, "did you mean 'value'"):
        flow.node("core.echo", "X", {"valeu": one})
    with refused(errors.WORKFLOW_UNKNOWN_PORT, "did you mean 'value'"):
        one["valu"]
    with refused(errors.WORKFLOW_UNKNOWN_PORT, "no output 'trigger'"):
        one["trigger"] >> core.noop(flow, "Two")
    with refused(errors.WORKFLOW_UNKNOWN_PORT, "no input 'done'"):
        one >> flow["Two"]["done"]
    with refused(errors.WORKFLOW_UNKNOWN_PORT, "it has no port with a value"):
        core.log(flow, "Three", message=flow["Two"])
    with refused(errors.WORKFLOW_UNKNOWN_FIELD, "did you mean 'retry'"):
        one.set(retrys=3)  # type: ignore[call-arg]
    with refused(errors.WORKFLOW_DUPLICATE_ID, "'One'"):
        core.noop(flow, "One")
    with refused(errors.WORKFLOW_UNKNOWN_NODE, "another flow"):
        one >> core.noop(Flow("Else"), "Far")
    code = core.python(flow, "Code", code="def main(): return 1")
    with refused(errors.WORKFLOW_UNKNOWN_PORT, "cannot stand inside of a value"):
        core.echo(flow, "Four", value={"x": code["result"]})
    with pytest.raises(KeyError, match="did you mean 'One'"):
        flow["Onne"]
    with pytest.raises(TypeError, match="not a JSON value"):
        core.echo(flow, "Five", value=object())
    with pytest.raises(TypeError, match="an edge leads to"):
        one >> 5  # type: ignore[type-var]
    assert [node.label for node in flow.nodes()] == ["One", "Two", "Code"]
    assert edges_of(flow) == []


def test_problems_are_those_of_a_server() -> None:
    flow = Flow("Problems")
    core.http(flow, "No address")
    (problem,) = flow.problems()
    assert (problem.pointer, problem.code) == ("/nodes/0/parameters/url", "E.WORKFLOW.PARAMETER")


MANIFEST = {
    "name": "acme.texts",
    "version": "1.0.0",
    "schemaVersion": "1.0.0",
    "nodes": [
        {
            "type": "acme.join",
            "schema": {"parameters": {"properties": {"parts": {}, "by": {}}}},
            "ui": {
                "inputPorts": [
                    {"key": "in", "binding": {"path": "parameters.parts"}, "multiple": True}
                ],
                "outputPorts": [{"key": "text"}],
                "widgets": [{"key": "by", "options": {"rows": 3, "choices": ["a"]}}],
            },
        },
        {"type": "acme.open", "schema": {"parameters": {"properties": {"a": {}}, "additionalProperties": True}}},
        {"type": "acme.bare"},
    ],
}  # fmt: skip


def join(flow: Flow) -> FlowNode:
    a, b = core.echo(flow, "A", value="a"), core.echo(flow, "B", value="b")
    return flow.node("acme.join", "Join", {"parts": [a, b["value"]], "by": ","})


def test_other_packages_are_known_by_their_manifests() -> None:
    catalog = manifest_catalog([msgspec.json.encode(MANIFEST)])
    assert catalog.types() == ["acme.bare", "acme.join", "acme.open"]
    flow = Flow("Texts", catalog=catalog | manifest_catalog([core_bytes()]))
    joined = join(flow)
    assert edges_of(flow) == [("A.value", "Join.in"), ("B.value", "Join.in")]
    assert joined.fields["parameters"] == {"by": ","}
    flow.node("acme.open", "Open", {"anything": 1})
    flow.node("acme.bare", "Bare", {"anything": 1})
    with refused(errors.WORKFLOW_PARAMETER, "bye"):
        flow.node("acme.join", "X", {"bye": 1})


def core_bytes() -> bytes:
    from astraflow.core.workflow import core_manifest

    return core_manifest().raw


def test_a_server_says_what_it_knows() -> None:
    nodes: list[Any] = MANIFEST["nodes"]  # type: ignore[assignment]
    told = [
        msgspec.convert(
            {**NodeType.EXAMPLE, "type": node["type"], "schema": node.get("schema", {}),
             "ui": node.get("ui", {})},
            NodeType,
        )
        for node in nodes
    ]  # fmt: skip
    flow = Flow("Texts", catalog=server_catalog(told) | manifest_catalog([core_bytes()]))
    join(flow)
    assert edges_of(flow) == [("A.value", "Join.in"), ("B.value", "Join.in")]


def test_without_checks_anything_can_be_written() -> None:
    flow = Flow("Free", checks_types=False)
    one = flow.node("my.type", "One", {"x": 1})
    two = flow.node("my.type", "Two", {"y": one["out"], "z": {"deep": one["other"]}})
    assert edges_of(flow) == [("One.out", "Two.y")]
    assert two.fields["parameters"] == {"z": {"deep": "=nodes.One.results.other"}}
    assert repr(two) == "<my.type 'Two'>"
    assert repr(one["out"]) == "<my.type 'One'>['out']"
    assert "2 nodes" in repr(flow)


def test_the_example_is_what_its_script_writes() -> None:
    made = runpy.run_path(str(ROOT / "examples" / "builder.py"))["workflow"]
    assert made.to_json() == (ROOT / "examples" / "builder.json").read_bytes()
    assert made.problems() == []

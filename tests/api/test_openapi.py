"""The description says what the code does: it is fresh, it is valid, and answers fit it."""

from __future__ import annotations

import importlib.util
from types import ModuleType
from typing import Any

import jsonschema_rs
import pytest
import yaml

from astraflow.api.app import ROUTES
from astraflow.api.openapi import document
from astraflow.core.contract.events import RUN_EVENTS
from tests.api.rig import NODE_A, NODE_B, WORKFLOW, Rig, definition, serving
from tests.api.test_events import following
from tests.conftest import ROOT

DOCUMENT = document(ROUTES)


def script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "scripts" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def maker() -> ModuleType:
    return script("make_openapi")


def test_the_published_description_is_what_the_code_says(maker: ModuleType) -> None:
    assert maker.PATH.read_text() == maker.yaml_text()


def test_a_client_was_made_from_the_description_as_it_is() -> None:
    assert script("make_clients").is_tried(), "the API has changed: run `make clients`"


async def test_a_reader_of_yaml_reads_what_was_meant(maker: ModuleType) -> None:
    async with serving() as rig:
        served = (await rig.get("/api/openapi.json")).json()
        assert yaml.safe_load(maker.yaml_text()) == served


def test_every_route_is_described_with_an_example() -> None:
    paths = DOCUMENT["paths"]
    described = {f"{method.upper()} {path}" for path, item in paths.items() for method in item}
    assert described == {route.action for route in ROUTES}
    names = [one["operationId"] for item in paths.values() for one in item.values()]
    assert len(names) == len(set(names))
    for item in paths.values():
        for operation in item.values():
            body = operation.get("requestBody", {}).get("content", {})
            is_file = "application/octet-stream" in body
            assert is_file or all("example" in content for content in body.values())


def test_every_member_of_every_object_and_every_parameter_has_a_description() -> None:
    missing = [
        f"{name}.{member}"
        for name, schema in DOCUMENT["components"]["schemas"].items()
        for member, inner in schema.get("properties", {}).items()
        if not inner.get("description")
        and not name.endswith("Event")
        and inner.get("enum", [])[:1] != inner.get("enum")  # the tag of a command
    ]
    assert missing == []
    for item in DOCUMENT["paths"].values():
        for operation in item.values():
            assert all(one["description"] for one in operation.get("parameters", []))


def test_every_reference_leads_somewhere() -> None:
    known = {f"#/components/schemas/{name}" for name in DOCUMENT["components"]["schemas"]}
    known.add("#/components/responses/Problem")
    assert set(_references(DOCUMENT)) <= known


def _references(node: Any) -> list[str]:
    if isinstance(node, list):
        return [one for member in node for one in _references(member)]
    if not isinstance(node, dict):
        return []
    mine = [node["$ref"]] if "$ref" in node else []
    return mine + [one for member in node.values() for one in _references(member)]


def validator(name: str) -> jsonschema_rs.Draft202012Validator:
    schema = {
        "$ref": f"#/components/schemas/{name}",
        "components": {"schemas": DOCUMENT["components"]["schemas"]},
    }
    return jsonschema_rs.Draft202012Validator(schema)


def test_every_example_fits_its_schema() -> None:
    checked = 0
    for content in _contents(DOCUMENT):
        reference = content["schema"].get("$ref")
        if reference is None or "example" not in content:
            continue
        name = reference.rpartition("/")[2]
        assert list(validator(name).iter_errors(content["example"])) == [], name
        checked += 1
    assert checked > 20


def _contents(node: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    if isinstance(node, dict):
        if "schema" in node and ("example" in node or "$ref" in node["schema"]):
            found.append(node)
        for member in node.values():
            found += _contents(member)
    elif isinstance(node, list):
        for member in node:
            found += _contents(member)
    return found


async def test_real_answers_fit_their_schemas() -> None:
    async with serving() as rig:
        await rig.post("/api/v1/workflows", json=definition())
        await rig.client.put(f"/api/v1/workflows/{WORKFLOW}/draft", json=definition(tags=["a"]))
        async with rig.worker() as worker:
            run_id = await rig.submit()
            first, second = await worker.tasks(NODE_A, NODE_B)
            first.say("a", progress=0.5, message="half", dropped=2, metrics={"loss": 0.5})
            artifact = {"resource_id": f"{run_id}/r", "worker_id": "w1", "type": "file"}
            first.succeed(artifacts=[artifact])
            second.fail()
            await rig.status(run_id, "failed")
            await _check_objects(rig, run_id)
        await _check_events(rig, run_id, await _signalled(rig))


async def _signalled(rig: Rig) -> str:
    """A run that took a signal and a branch."""
    nodes = [
        {"id": NODE_A, "type": "core.signal", "signal": {"name": "go"}},
        {"id": NODE_B, "type": "core.if", "parameters": {"condition": True}},
    ]
    edge = {"source": {"node": NODE_A}, "target": {"node": NODE_B}, "when": "results.payload"}
    body = {"workflow": {"id": NODE_A, "nodes": nodes, "edges": [edge]}}
    run_id: str = (await rig.post("/api/v1/runs", json=body)).json()["runId"]
    assert (await rig.post(f"/api/v1/runs/{run_id}/signals/go", json={"payload": 1})).is_success
    await rig.status(run_id, "succeeded")
    return run_id


async def _check_objects(rig: Rig, run_id: str) -> None:
    wanted = {
        "/api/v1/runs": "RunPage",
        f"/api/v1/runs/{run_id}": "Run",
        f"/api/v1/runs/{run_id}/nodes/{NODE_A}": "NodeDetail",
        f"/api/v1/runs/{run_id}/definition": "Definition",
        f"/api/v1/runs/{run_id}/logs": "LogPage",
        f"/api/v1/runs/{run_id}/artifacts": "ArtifactPage",
        "/api/v1/workflows": "WorkflowPage",
        "/api/v1/workflows/drafts": "DraftPage",
        f"/api/v1/workflows/{WORKFLOW}/draft": "Draft",
        f"/api/v1/workflows/{WORKFLOW}/versions": "VersionPage",
        f"/api/v1/workflows/{WORKFLOW}/diff": "WorkflowDiff",
        "/api/v1/workers": "WorkerPage",
        "/api/v1/workers/w1": "WorkerDetail",
        "/api/v1/catalog/nodes": "NodeTypePage",
        "/api/v1/catalog/nodes/core.echo": "NodeType",
        "/api/v1/packages": "PackagePage",
        "/api/v1/packages/llm": "Package",
        "/api/v1/packages/llm/1.0.0": "PackageVersion",
        "/api/v1/resources": "ResourcePage",
        "/api/v1/me": "Me",
        "/api/v1/audit": "AuditPage",
        "/api/v1/runs/nope": "Problem",
        "/nothing": "Problem",
    }
    for path, name in wanted.items():
        answer = (await rig.get(path)).json()
        errors = [error.message for error in validator(name).iter_errors(answer)]
        assert errors == [], (path, errors)


async def _check_events(rig: Rig, run_id: str, other: str) -> None:
    """Every event of both streams, and that all bodies of a run were seen."""
    async with following(rig, f"?runId={run_id}&snapshot=true") as stream:
        events = [await stream.next()]
    for one in (run_id, other):
        async with following(rig, f"?runId={one}") as stream:
            events += await stream.all()
    seen = {event["event"] for event in events if event is not None}
    assert seen == {"run.snapshot", *RUN_EVENTS}
    for event in events:
        assert event is not None
        problems = validator("RunStreamEvent").iter_errors(event["data"])
        assert [problem.message for problem in problems] == [], event
    last = (await rig.scheduler.events.heads("default")).home
    async with following(rig, "?lastEventId=0") as stream:
        for _ in range(last):
            told = await stream.next()
            assert told is not None
            problems = validator("TenantStreamEvent").iter_errors(told["data"])
            assert [problem.message for problem in problems] == [], told

"""The description says what the code does: it is fresh, it is valid, and answers fit it."""

from __future__ import annotations

import importlib.util
from types import ModuleType
from typing import Any

import jsonschema_rs
import pytest
import yaml

from astraflow.api.openapi import document
from astraflow.api.schemas import SCHEMAS
from tests.api.rig import NODE_A, Rig, definition, serve
from tests.conftest import ROOT


@pytest.fixture(scope="module")
def maker() -> ModuleType:
    path = ROOT / "scripts" / "make_openapi.py"
    spec = importlib.util.spec_from_file_location("make_openapi", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_published_description_is_what_the_code_says(maker: ModuleType) -> None:
    assert maker.PATH.read_text() == maker.yaml_text()


def test_a_reader_of_yaml_reads_what_was_meant(maker: ModuleType) -> None:
    async def test(rig: Rig) -> None:
        served = (await rig.get("/api/openapi.json")).json()
        assert yaml.safe_load(maker.yaml_text()) == served

    serve(test)


def test_every_route_is_described_with_an_example() -> None:
    async def test(rig: Rig) -> None:
        paths = document(rig.app.routes)["paths"]
        described = {f"{method.upper()} {path}" for path, item in paths.items() for method in item}
        assert described == {route.action for route in rig.app.routes}
        names = [one["operationId"] for item in paths.values() for one in item.values()]
        assert len(names) == len(set(names))
        for item in paths.values():
            for operation in item.values():
                body = operation.get("requestBody", {}).get("content", {})
                assert all("example" in content for content in body.values())

    serve(test)


def validator(name: str) -> jsonschema_rs.Draft202012Validator:
    schema = {
        "$ref": f"#/components/schemas/{name}",
        "components": {"schemas": dict(SCHEMAS)},
    }
    return jsonschema_rs.Draft202012Validator(schema)


def test_every_example_fits_its_schema() -> None:
    async def test(rig: Rig) -> None:
        checked = 0
        for content in _contents(document(rig.app.routes)):
            reference = content["schema"].get("$ref")
            if reference is None or "example" not in content:
                continue
            name = reference.rpartition("/")[2]
            assert list(validator(name).iter_errors(content["example"])) == [], name
            checked += 1
        assert checked > 20

    serve(test)


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


def test_real_answers_fit_their_schemas() -> None:
    async def test(rig: Rig) -> None:
        await rig.post("/api/v1/workflows", json=definition())
        run_id = await rig.submit()
        fake = rig.scheduler
        fake.add_worker("default", "w1")
        await fake.start(run_id, 0, 1)
        await fake.say(run_id, 0, "a")
        await fake.succeed(run_id, 0)
        await fake.fail(run_id, 1)
        await fake.finish(run_id, "failed")
        wanted = {
            "/api/v1/runs": "RunPage",
            f"/api/v1/runs/{run_id}": "Run",
            f"/api/v1/runs/{run_id}/nodes/{NODE_A}": "NodeDetail",
            f"/api/v1/runs/{run_id}/definition": "Definition",
            f"/api/v1/runs/{run_id}/logs": "LogPage",
            "/api/v1/workflows": "WorkflowPage",
            "/api/v1/workers": "WorkerPage",
            "/api/v1/workers/w1": "Worker",
            "/api/v1/catalog/nodes": "NodeTypePage",
            "/api/v1/me": "Me",
            "/api/v1/audit": "AuditPage",
            "/api/v1/runs/nope": "Problem",
            "/nothing": "Problem",
        }
        for path, name in wanted.items():
            answer = (await rig.get(path)).json()
            errors = [error.message for error in validator(name).iter_errors(answer)]
            assert errors == [], (path, errors)

    serve(test)

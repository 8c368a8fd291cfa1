"""Chat with a model whose server really streams: tokens are seen while the answer is made."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.definitions import node, workflow
from tests.e2e.model_server import ModelServer, serving_model
from tests.processes.system import System, running


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    with running(tmp_path_factory.mktemp("llm"), 1) as site:
        yield site


@pytest.fixture
def model() -> Iterator[ModelServer]:
    with serving_model() as model:
        yield model


def chat(model: ModelServer, **parameters: Any) -> dict[str, Any]:
    given = {"model": "tiny", "prompt": "Greet me", "baseUrl": model.url, **parameters}
    return workflow(node("llm.chat", "chat", parameters=given))


def events(site: System, run_id: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """The events of a run while they happen."""
    kind = ""
    with site.rest.http.stream(
        "GET", "/api/v1/events", params={"runId": run_id}, timeout=90
    ) as answer:
        for line in answer.iter_lines():
            if line.startswith("event:"):
                kind = line.removeprefix("event:").strip()
            elif line.startswith("data:"):
                yield kind, json.loads(line.removeprefix("data:"))["data"]


def test_each_token_is_seen_before_the_next_one_is_made(site: System, model: ModelServer) -> None:
    seen: list[str] = []
    for kind, body in events(
        site, site.rest.submit(chat(model, system="Be brief", temperature=0.5))
    ):
        if kind == "node.result.delta" and body["channel"] == "llm":
            seen.append(body["text"])
            # The server makes no further token before this one has come all the way to us.
            model.go_on.release()
        elif kind == "node.result.snapshot":
            result = body["result"]
    assert seen == ["Hello", ", ", "world", "!"]
    assert result["text"] == "Hello, world!"
    assert (result["finishReason"], result["usage"]) == ("stop", {"total_tokens": 4})
    [asked] = model.asked
    assert [one["role"] for one in asked["messages"]] == ["system", "user"]
    assert (asked["temperature"], asked["stream"]) == (0.5, True)


def test_the_key_travels_in_the_header_and_nowhere_else(site: System, model: ModelServer) -> None:
    model.open()
    run = site.rest.run(chat(model, apiKey="sk-of-a-test"))
    assert run["status"] == "succeeded"
    assert model.keys == ["Bearer sk-of-a-test"]
    assert "sk-of-a-test" not in json.dumps(model.asked)


def test_the_key_may_be_a_secret(site: System, model: ModelServer) -> None:
    model.open()
    model.tokens = ["your key is ", "sk-of-a-", "secret", "!"]
    put = {"value": "sk-of-a-secret", "packages": ["llm"]}
    assert site.rest.http.put("/api/v1/secrets/openai", json=put).status_code == 200
    run = site.rest.run(chat(model, apiKey={"secretRef": {"name": "openai"}}))
    assert run["status"] == "succeeded"
    assert model.keys == ["Bearer sk-of-a-secret"]
    assert run["nodes"][0]["result"]["text"] == "your key is ***!"
    logs = site.rest.get(f"runs/{run['runId']}/logs")
    assert "sk-of-a-secret" not in json.dumps([run, logs])


@pytest.mark.parametrize(
    ("status", "category"),
    [
        (401, "CONFIGURATION"),
        (404, "CONFIGURATION"),
        (429, "INFRASTRUCTURE"),
        (503, "INFRASTRUCTURE"),
    ],
)
def test_a_refusal_has_the_category_that_decides_about_another_try(
    site: System, model: ModelServer, status: int, category: str
) -> None:
    model.status = status
    run = site.rest.run(chat(model))
    error = run["nodes"][0]["error"]
    assert error["category"] == category
    assert "the server said no" in error["message"]


def test_a_stream_that_is_cut_is_no_answer_and_is_tried_again(
    site: System, model: ModelServer
) -> None:
    model.cut_after = 2
    model.open()
    workflow = chat(model)
    workflow["nodes"][0]["retry"] = {"maxAttempts": 2, "backoff": {"initialSeconds": 0.1}}
    run = site.rest.run(workflow)
    assert run["status"] == "failed"
    assert run["nodes"][0]["failures"] == 1
    assert len(model.asked) == 2
    assert run["nodes"][0]["error"]["category"] == "INFRASTRUCTURE"


def test_a_cancelled_chat_lets_go_of_the_server(site: System, model: ModelServer) -> None:
    run_id = site.rest.submit(chat(model))
    for kind, body in events(site, run_id):
        if kind == "node.result.delta":
            site.rest.http.post(f"/api/v1/runs/{run_id}/cancel")
        if kind == "run.status" and body["status"] == "cancelled":
            break
    assert site.rest.finished(run_id)["status"] == "cancelled"


def test_nothing_to_ask_is_said_before_anything_is_sent(site: System, model: ModelServer) -> None:
    run = site.rest.run(chat(model, prompt=None))
    assert "nothing to ask" in run["nodes"][0]["error"]["message"]
    assert model.asked == []


def test_a_package_of_the_installation_runs_where_signatures_are_required(
    tmp_path: Path, model: ModelServer
) -> None:
    policy = {"ASTRA_SCHEDULER_PACKAGE_POLICY": "require", "ASTRA_WORKER_PACKAGE_POLICY": "require"}
    model.open()
    with running(tmp_path, 1, environ=policy) as site:
        run = site.rest.run(chat(model))
    assert run["status"] == "succeeded", run
    assert run["nodes"][0]["result"]["text"] == "Hello, world!"

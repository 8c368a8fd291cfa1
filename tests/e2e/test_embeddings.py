"""A real model that stays warm where it was loaded, and the work that goes to it."""

from __future__ import annotations

import math
import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from tests import definitions
from tests.definitions import link, workflow
from tests.processes.system import System, running


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    with running(tmp_path_factory.mktemp("models"), 2) as site:
        site.rest.install(
            "embeddings", site.rest.get("packages/embeddings")["active"]
        )  # it came with the installation
        yield site


def node(name: str, **parameters: Any) -> dict[str, Any]:
    return definitions.node(f"embeddings.{name}", name, parameters=parameters)


def test_texts_that_mean_the_same_are_near_and_others_are_not(site: System) -> None:
    rank = node(
        "similarity",
        text="How do I reset my password?",
        candidates=[
            "Our office is closed on Sundays.",
            "I forgot my password and cannot log in.",
            "The weather in Rome is sunny.",
        ],
    )
    run = site.rest.run(workflow(rank))
    assert run["status"] == "succeeded", run
    ranking = run["nodes"][0]["result"]["ranking"]
    assert ranking[0]["text"] == "I forgot my password and cannot log in."
    assert ranking[0]["score"] > 0.5
    assert all(one["score"] < 0.3 for one in ranking[1:])


def test_a_vector_has_384_numbers_and_length_one(site: System) -> None:
    run = site.rest.run(workflow(node("embed", texts=["a", "b" * 5000])))
    result = run["nodes"][0]["result"]
    assert (result["dimension"], result["count"]) == (384, 2)
    for vector in result["vectors"]:
        assert len(vector) == 384
        assert math.isclose(sum(one * one for one in vector), 1.0, abs_tol=1e-4)


def test_every_node_that_gets_the_model_comes_to_the_worker_that_loaded_it(site: System) -> None:
    nodes = [node("load"), *(node("embed", texts=f"text {n}") for n in range(6))]
    edges = [link(nodes[0], one, "model") for one in nodes[1:]]
    run = site.rest.run(workflow(*nodes, edges=edges))
    assert run["status"] == "succeeded", run
    assert len({one["workerId"] for one in run["nodes"]}) == 1
    assert all(one["result"]["loadSeconds"] == 0 for one in run["nodes"][1:])


def test_a_model_of_a_session_is_used_by_the_next_run(site: System) -> None:
    session = f"test-{uuid.uuid4().hex[:8]}"
    loading = site.rest.run(workflow(node("load", session=session)))
    model = loading["nodes"][0]["result"]["model"]
    reading = site.rest.run(workflow(node("embed", texts="again", model=model)))
    assert reading["status"] == "succeeded", reading
    assert reading["nodes"][0]["workerId"] == loading["nodes"][0]["workerId"]


def test_what_is_no_text_is_refused_by_name(site: System) -> None:
    document = workflow(node("embed", texts=[1, 2]))
    refused = site.rest.http.post("/api/v1/runs", json={"workflow": document})
    assert refused.status_code == 422
    assert [one["pointer"] for one in refused.json()["errors"]] == [
        "/nodes/0/parameters/texts/0",
        "/nodes/0/parameters/texts/1",
    ]

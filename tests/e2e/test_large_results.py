"""Results above the inline limit on real processes: stored by reference, and read by the next node wherever it runs."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.definitions import link, node, workflow
from tests.processes.system import System, running
from tests.scheduler.bucket import s3_server

LIMIT = 64 * 1024
SHELL = len('{"result":""}')
MAKE = "def main(count): return 'x' * count"
MEASURE = """
import hashlib

def main(text):
    return [len(text), hashlib.sha256(text.encode()).hexdigest()]
"""


@contextmanager
def site(folder: Path, **environ: str) -> Iterator[System]:
    """Two workers, each with a label of its own."""
    limit = {"ASTRA_WORKER_INLINE_RESULT_LIMIT_BYTES": str(LIMIT)}
    with running(folder, environ={**limit, **environ}) as made:
        for name in ("left", "right"):
            made.new_worker(name, "--label", f"side={name}").start()
        made.until(lambda: len(made.rest.online()) == 2, "both workers online")
        yield made


@pytest.fixture
def system(tmp_path: Path) -> Iterator[System]:
    with site(tmp_path) as made:
        yield made


def on(side: str) -> dict[str, Any]:
    return {"workerHints": {"labels": {"side": side}}}


def python(label: str, code: str, side: str, **inputs: Any) -> dict[str, Any]:
    return node("core.python", label, parameters={"code": code, "inputs": inputs}, **on(side))


def handing_on(count: int, **more: Any) -> dict[str, Any]:
    """A text of this size is made on one worker and measured on the other."""
    maker = python("make", MAKE, "left", count=count)
    reader = python("measure", MEASURE, "right", text="=nodes.make.results.result")
    return workflow(maker, reader, edges=[link(maker, reader)], **more)


def measured(count: int) -> list[Any]:
    return [count, hashlib.sha256(b"x" * count).hexdigest()]


@pytest.mark.parametrize(
    ("size", "is_stored"),
    [(LIMIT - 1, False), (LIMIT, False), (LIMIT + 1, True), (50_000_000, True)],
    ids=["under", "at", "over", "50 MB"],
)
def test_a_result_becomes_a_reference_above_the_limit(
    system: System, size: int, is_stored: bool
) -> None:
    count = size - SHELL
    view = system.rest.run(handing_on(count))
    nodes = {one["label"]: one for one in view["nodes"]}
    assert view["status"] == "succeeded", nodes
    assert nodes["measure"]["result"] == {"result": measured(count)}
    made = system.rest.get(f"runs/{view['runId']}/nodes/{nodes['make']['nodeId']}")
    if not is_stored:
        assert made["result"] == {"result": "x" * count}
        assert made["artifacts"] == []
        return
    ref = made["result"]["result"]["resourceRef"]
    assert (ref["type"], ref["sizeBytes"]) == ("astraflow.value", count + 2)
    (artifact,) = made["artifacts"]
    assert (artifact["resourceId"], artifact["sizeBytes"]) == (ref["resourceId"], count + 2)
    answer = system.rest.http.get(f"/api/v1/artifacts/{ref['resourceId']}")
    assert answer.status_code == 200
    assert hashlib.sha256(answer.content).hexdigest() == ref["sha256"]
    assert json.loads(answer.content) == "x" * count


def test_a_large_result_goes_through_a_bucket(tmp_path: Path) -> None:
    with (
        s3_server() as bucket,
        site(tmp_path, **bucket, ASTRA_SCHEDULER_BLOBS_URL="s3://astraflow/large") as system,
    ):
        view = system.rest.run(handing_on(1_000_000))
        nodes = {one["label"]: one for one in view["nodes"]}
        assert view["status"] == "succeeded", nodes
        assert nodes["measure"]["result"] == {"result": measured(1_000_000)}


def test_two_large_results_of_two_workers_meet_in_one_node(system: System) -> None:
    first = python("first", MAKE, "left", count=100_000)
    second = python("second", MAKE, "right", count=200_000)
    code = "def main(first, second): return len(first) + len(second)"
    given = {one: f"=nodes.{one}.results.result" for one in ("first", "second")}
    third = python("third", code, "left", **given)
    edges = [link(first, third), link(second, third)]
    view = system.rest.run(workflow(first, second, third, edges=edges))
    assert view["status"] == "succeeded", view["nodes"]
    assert view["nodes"][-1]["result"] == {"result": 300_000}


def test_small_members_stay_beside_a_large_one(system: System) -> None:
    maker = python("make", "def main(): return {'text': 'x' * 100000, 'count': 3}", "left")
    reader = node("core.template", "say", parameters={"template": "=str(nodes.make.results.count)"})
    view = system.rest.run(workflow(maker, reader, edges=[link(maker, reader)]))
    nodes = {one["label"]: one for one in view["nodes"]}
    assert view["status"] == "succeeded", nodes
    assert nodes["make"]["result"]["count"] == 3
    assert list(nodes["make"]["result"]["text"]) == ["resourceRef"]
    assert nodes["say"]["result"] == {"text": "3"}


@pytest.mark.parametrize(
    "expression",
    [
        "=len(nodes.make.results.result)",
        "=nodes.make.results.result + 'y'",
        "=f'{nodes.make.results.result}'",
    ],
)
def test_an_expression_that_reads_into_it_fails_by_name(system: System, expression: str) -> None:
    maker = python("make", MAKE, "left", count=100_000)
    reader = node("core.echo", "read", parameters={"value": expression})
    view = system.rest.run(workflow(maker, reader, edges=[link(maker, reader)]))
    error = next(one for one in view["nodes"] if one["label"] == "read")["error"]
    assert (view["status"], error["code"]) == ("failed", "E.TASK.EXPRESSION")
    assert "stored by reference" in error["message"]


def test_it_outlives_the_worker_that_made_it_and_the_scheduler(system: System) -> None:
    maker = python("make", MAKE, "left", count=100_000)
    pause = node("core.wait", "pause", wait={"seconds": 4})
    reader = python("measure", MEASURE, "right", text="=nodes.make.results.result")
    edges = [link(maker, pause), link(pause, reader)]
    run_id = system.rest.submit(workflow(maker, pause, reader, edges=edges))
    system.until(
        lambda: system.rest.nodes(run_id)["make"]["status"] == "succeeded", "the end of the maker"
    )
    system.workers["left"].kill()
    system.restart()
    view = system.rest.finished(run_id)
    assert view["status"] == "succeeded", view["nodes"]
    assert system.rest.nodes(run_id)["measure"]["result"] == {"result": measured(100_000)}


def test_a_value_that_is_lost_is_a_typed_error(system: System) -> None:
    maker = python("make", MAKE, "left", count=100_000)
    stop = node("core.signal", "stop", signal={"name": "go"})
    reader = python("measure", MEASURE, "right", text="=nodes.make.results.result")
    edges = [link(maker, stop), link(stop, reader)]
    run_id = system.rest.submit(workflow(maker, stop, reader, edges=edges))
    system.until(lambda: system.rest.nodes(run_id)["stop"]["status"] == "waiting", "the wait")
    blobs = [
        one
        for one in (system.data / "blobs").rglob("*")
        if one.is_file() and "artifacts" in str(one)
    ]
    assert blobs
    for one in blobs:
        one.unlink()
    system.rest.http.post(f"/api/v1/runs/{run_id}/signals/go", json={}).raise_for_status()
    view = system.rest.finished(run_id)
    error = next(one for one in view["nodes"] if one["label"] == "measure")["error"]
    assert (view["status"], error["code"]) == ("failed", "E.RESOURCE.LOST")


def test_a_blob_store_that_is_away_fails_the_attempt_and_a_retry_succeeds(system: System) -> None:
    blobs = system.data / "blobs"
    blobs.mkdir(exist_ok=True)
    blobs.rename(system.data / "blobs.away")
    blobs.write_text("no folder")
    maker = python("make", MAKE, "left", count=100_000)
    maker["retry"] = {"maxAttempts": 5, "backoff": {"initialSeconds": 2}}
    run_id = system.rest.submit(workflow(maker))

    def failed() -> list[Any] | None:
        detail = system.rest.get(f"runs/{run_id}/nodes/{maker['id']}")
        return [one for one in detail["attempts"] if one["status"] == "failed"] or None

    first = system.until(failed, "an attempt that failed")[0]
    assert first["error"]["code"] == "E.RESULT.NOT_STORED"
    assert first["error"]["category"] == "INFRASTRUCTURE"
    blobs.unlink()
    (system.data / "blobs.away").rename(blobs)
    assert system.rest.finished(run_id)["status"] == "succeeded"


def test_a_repeated_run_reads_what_the_first_one_stored(system: System) -> None:
    view = system.rest.run(handing_on(100_000))
    reader = next(one for one in view["nodes"] if one["label"] == "measure")
    answer = system.rest.http.post(
        f"/api/v1/runs/{view['runId']}/rerun", json={"mode": "from", "nodes": [reader["nodeId"]]}
    )
    assert answer.is_success, answer.text
    again = system.rest.finished(answer.json()["runId"])
    nodes = {one["label"]: one for one in again["nodes"]}
    assert again["status"] == "succeeded", nodes
    assert nodes["measure"]["result"] == {"result": measured(100_000)}
    assert nodes["make"]["attempt"] == 0


# -- maps over stored lists ----------------------------------------------------------------------


def mapping(code: str, over: str = "=nodes.make.results.result", **more: Any) -> dict[str, Any]:
    """A list is made on one worker, a map goes over it on the other, and the results are added up."""
    maker = python("make", code, "left")
    each = python("each", "def main(row): return len(row['text']) + row['n']", "right", row="=item")
    each["map"] = {"over": over}
    count = python("count", "def main(rows): return [len(rows), sum(rows)]", "right")
    count["parameters"]["inputs"] = {"rows": []}
    count["ui"] = {"inputPorts": [{"key": "rows", "binding": {"path": "parameters.inputs.rows"}}]}
    port = {
        "source": {"node": each["id"], "port": "result"},
        "target": {"node": count["id"], "port": "rows"},
    }
    return workflow(maker, each, count, edges=[link(maker, each), port], **more)


ROWS = "def main(): return [{'n': n, 'text': 'ü\\n' * 5_000} for n in range(40)]"
COUNTED = [40, 40 * 10_000 + sum(range(40))]


def test_a_map_goes_over_a_list_that_is_stored(system: System) -> None:
    view = system.rest.run(mapping(ROWS))
    nodes = {one["label"]: one for one in view["nodes"]}
    assert view["status"] == "succeeded", nodes
    assert "resourceRef" in nodes["make"]["result"]["result"]
    assert nodes["count"]["result"] == {"result": COUNTED}
    assert nodes["each"]["items"]["succeeded"] == 40


def test_a_map_over_a_stored_value_that_is_no_list_fails_by_name(system: System) -> None:
    view = system.rest.run(mapping("def main(): return {'result': {'a': 'x' * 100_000}}"))
    assert view["status"] == "failed"
    assert view["error"]["code"] == "E.TASK.INPUT_INVALID"
    assert "no list but an object" in view["error"]["message"]


def test_a_list_whose_blob_store_is_away_is_read_when_it_is_back(system: System) -> None:
    definition = mapping(ROWS)
    stop = node("core.signal", "stop", signal={"name": "go"})
    maker, each, _ = definition["nodes"]
    definition["nodes"].append(stop)
    definition["edges"] = [
        link(maker, stop),
        link(stop, each),
        *(one for one in definition["edges"] if one["source"]["node"] != maker["id"]),
    ]
    run_id = system.rest.submit(definition)
    system.until(lambda: system.rest.nodes(run_id)["stop"]["status"] == "waiting", "the wait")
    blobs, away = system.data / "blobs", system.data / "blobs.away"
    blobs.rename(away)
    blobs.write_text("no folder")
    system.rest.http.post(f"/api/v1/runs/{run_id}/signals/go", json={}).raise_for_status()

    def waits() -> dict[str, Any] | None:
        waiting: dict[str, Any] | None = system.rest.nodes(run_id)["each"].get("waitingFor")
        return waiting

    reason = system.until(waits, "a map that waits for its list")
    assert reason["kind"] == "resource"
    system.scheduler.kill()
    blobs.unlink()
    away.rename(blobs)
    system.start()  # the next scheduler asks for it again
    view = system.rest.finished(run_id)
    nodes = {one["label"]: one for one in view["nodes"]}
    assert view["status"] == "succeeded", nodes
    assert nodes["count"]["result"] == {"result": COUNTED}


def test_a_list_that_is_gone_is_made_again_where_the_map_says_so(system: System) -> None:
    definition = mapping(ROWS)
    stop = node("core.signal", "stop", signal={"name": "go"})
    _, each, _ = definition["nodes"]
    each["onResourceLost"] = "rebuild"
    definition["nodes"].append(stop)
    definition["edges"].append(link(stop, each))
    run_id = system.rest.submit(definition)
    system.until(
        lambda: system.rest.nodes(run_id)["make"]["status"] == "succeeded", "the end of the maker"
    )
    for one in (system.data / "blobs").rglob("*"):
        if one.is_file() and "artifacts" in str(one):
            one.unlink()
    system.rest.http.post(f"/api/v1/runs/{run_id}/signals/go", json={}).raise_for_status()
    view = system.rest.finished(run_id)
    nodes = {one["label"]: one for one in view["nodes"]}
    assert view["status"] == "succeeded", nodes
    assert nodes["make"]["attempt"] == 2
    assert nodes["count"]["result"] == {"result": COUNTED}

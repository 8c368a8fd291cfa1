"""The structs of the contract: their examples are true, and what they promise about missing members holds."""

from __future__ import annotations

import importlib
from typing import Any

import msgspec
import pytest

from astraflow.core import errors
from astraflow.core.categories import Category
from astraflow.core.contract import schema
from astraflow.core.contract.base import MAX_LIMIT, RequestBody, RestObject
from astraflow.core.contract.events import (
    RUN_EVENTS,
    STREAM_EVENTS,
    TENANT_EVENTS,
    Event,
    NodeState,
    RunReport,
    RunStatusChange,
    StreamReset,
)
from astraflow.core.contract.packages import RolloutRequest
from astraflow.core.contract.runs import ListRuns, Node, Run, RunRequest, RunSummary, TaskError
from astraflow.core.contract.words import TERMINAL, RunStatus
from astraflow.core.contract.workers import Command, Drain, WorkerCommand
from tests.tables import each_row

MODULES = ("events", "packages", "resources", "runs", "system", "workers", "workflows")


def structs() -> list[type]:
    found = [
        one
        for name in MODULES
        for one in vars(importlib.import_module(f"astraflow.core.contract.{name}")).values()
        if isinstance(one, type) and issubclass(one, RestObject | RequestBody)
    ]
    return sorted(set(found), key=lambda one: one.__name__)


def with_examples() -> list[type]:
    return [one for one in structs() if one.__dict__.get("EXAMPLE")]


@each_row("struct", with_examples())
def test_an_example_is_read_and_written_without_a_loss(struct: Any) -> None:
    read = msgspec.json.decode(msgspec.json.encode(struct.EXAMPLE), type=struct)
    assert msgspec.json.decode(msgspec.json.encode(read), type=struct) == read


def test_every_struct_says_what_it_is() -> None:
    assert [one.__name__ for one in structs() if not (one.__doc__ or "").strip()] == []
    assert len(with_examples()) > 20


def test_names_are_used_once() -> None:
    names = [one.__name__ for one in structs()]
    assert sorted(set(names)) == names


def test_a_member_that_may_be_missing_is_never_null() -> None:
    run = msgspec.convert(Run.EXAMPLE, Run)
    assert run.error is None
    assert "error" not in msgspec.to_builtins(run)
    bare = msgspec.structs.replace(run, nodes=[], artifacts=[])
    assert b'"nodes":[],"artifacts":[]' in msgspec.json.encode(bare)
    without = {name: value for name, value in Run.EXAMPLE.items() if name != "nodes"}
    assert msgspec.convert(without, Run).nodes == []


def test_what_a_client_does_not_know_is_ignored_and_what_a_server_does_not_know_is_refused() -> (
    None
):
    assert msgspec.convert({"code": "E", "surprise": 1}, TaskError).code == "E"
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"workflowId": "x", "surprise": 1}, RunRequest)


def test_a_run_finds_its_nodes_and_knows_when_it_is_over() -> None:
    run = msgspec.convert(Run.EXAMPLE, Run)
    node = run.node(Node.EXAMPLE["nodeId"])
    assert run.node("") is node
    with pytest.raises(KeyError):
        run.node("nobody")
    assert run.is_over
    assert not msgspec.convert({**RunSummary.EXAMPLE, "status": "queued"}, RunSummary).is_over
    assert set(RunStatus.__args__) > TERMINAL  # type: ignore[attr-defined]


def test_a_limit_beyond_the_maximum_is_the_maximum() -> None:
    assert ListRuns().count == 50
    assert ListRuns(limit=10**30).count == MAX_LIMIT


def test_a_command_is_told_by_its_type() -> None:
    command = msgspec.convert(Drain.EXAMPLE, WorkerCommand)
    assert command == Drain(reason="update", deadline_ms=60_000)
    assert WorkerCommand.__args__ == Command.ONE_OF


@pytest.mark.parametrize("waves", [(50,), (100, 50), (50, 50, 100)])
def test_waves_that_do_not_grow_to_all_workers_are_refused(waves: tuple[int, ...]) -> None:
    RolloutRequest(version="1").check()
    with pytest.raises(errors.Refused):
        RolloutRequest(version="1", waves=waves).check()


@each_row(
    ("event", "body"),
    [
        (Event(type="run.status", body={"status": "queued"}), RunStatusChange(status="queued")),
        (
            Event(type="run.status", body={"runId": "r", "status": "queued"}),
            RunReport(run_id="r", status="queued"),
        ),
        (
            Event(type="node.state", body={"nodeId": "n", "status": "ready"}),
            NodeState(node_id="n", status="ready"),
        ),
        (
            Event(type="stream.reset", body={"from": 1, "to": 2, "reason": "retention"}),
            StreamReset(first=1, last=2, reason="retention"),
        ),
        (Event(type="of.tomorrow", body={"a": 1}), {"a": 1}),
    ],
)
def test_an_event_is_read_by_its_type(event: Event, body: object) -> None:
    assert event.read() == body


class TestSchema:
    made = schema.components(with_examples())

    def test_every_body_of_an_event_has_a_schema_and_an_event_around_it(self) -> None:
        for body in {*RUN_EVENTS.values(), *TENANT_EVENTS.values(), *STREAM_EVENTS.values()}:
            assert body.__name__ in self.made
        run = {one["$ref"].rpartition("/")[2] for one in self.made["RunStreamEvent"]["oneOf"]}
        assert {"NodeStateEvent", "RunSnapshotEvent", "StreamResetEvent"} < run
        types = [self.made[name]["properties"]["type"]["enum"] for name in sorted(run)]
        assert {*RUN_EVENTS, "run.snapshot", "run.missing", "worker.load", "stream.reset"} == {
            one for kind in types for one in kind
        }

    def test_a_member_that_may_be_missing_is_not_required_and_not_null(self) -> None:
        error = self.made["TaskError"]
        assert error["required"] == ["code"]
        assert error["properties"]["stack"]["type"] == "string"
        assert sorted(error["properties"]["category"]["enum"]) == sorted(Category.__args__)  # type: ignore[attr-defined]

    def test_a_member_that_is_always_there_may_be_null(self) -> None:
        node = self.made["Node"]
        assert "startedAt" in node["required"]
        assert node["properties"]["startedAt"]["type"] == ["string", "null"]
        assert {"type": "null"} in node["properties"]["error"]["anyOf"]

    def test_a_request_may_send_null_for_what_it_may_leave_out(self) -> None:
        drain = schema.components([Drain])["Drain"]
        assert drain["additionalProperties"] is False
        assert drain["properties"]["reason"]["type"] == ["string", "null"]

    def test_a_struct_that_stands_for_several_is_one_of_them(self) -> None:
        made = schema.components([RunRequest, Command])
        assert [one["$ref"].rpartition("/")[2] for one in made["RunRequest"]["oneOf"]] == [
            "RunOfDefinition",
            "RunOfWorkflow",
        ]
        assert len(made["Command"]["oneOf"]) == 5

    def test_the_parameters_of_a_query_are_described(self) -> None:
        shown = {one["name"]: one for one in schema.parameters(ListRuns)}
        filters = ["status", "workflowId", "trigger", "by", "text", "since", "until"]
        assert list(shown) == ["limit", "cursor", *filters]
        assert shown["status"]["schema"]["type"] == "string"
        assert all(one["description"] and not one["required"] for one in shown.values())

"""What readers see: the events of every fact, the views, and that they agree."""

from __future__ import annotations

from random import Random
from typing import Any

import msgspec
import pytest

from astraflow.core import errors
from astraflow.core.ids import TaskId
from astraflow.core.runs import projections, states
from astraflow.core.runs.commands import (
    Call,
    Cancel,
    LeaseTask,
    Lose,
    Progress,
    Refuse,
    Report,
    RunCommand,
    Start,
    StopOverdue,
    TimeOut,
    Wait,
    Withdraw,
)
from astraflow.core.runs.decisions import decide
from astraflow.core.runs.facts import (
    ArtifactRef,
    AttemptFailed,
    AttemptLost,
    AttemptProgressed,
    AttemptRefused,
    AttemptStarted,
    CallOpened,
    CancelRequested,
    Chunk,
    CompensationBegan,
    EdgesDecided,
    Fact,
    RunFinished,
    RunStarted,
    ScopeClosing,
    ScopeOpened,
    SignalReceived,
    StopRequested,
    TaskCancelled,
    TaskDecided,
    TaskFailed,
    TaskFailure,
    TaskLeased,
    TaskParked,
    TaskPassed,
    TaskRebuilt,
    TaskReused,
    TaskSkipped,
    TaskSucceeded,
    TaskWaiting,
    WaitReason,
    width,
)
from astraflow.core.runs.places import TaskPlaces
from astraflow.core.runs.projections import node_status
from astraflow.core.timestamps import iso
from tests.tables import each_row
from tests.unit.core.runs.examples import ARTIFACT, ERROR, FULL_FACTS, RESULT, places, run_in
from tests.unit.plans import AT, accepted, make_plan, retrying, start, wrapped


def as_json(value: Any) -> Any:
    """As it is on the wire."""
    return msgspec.json.decode(msgspec.json.encode(value))


def events_of(*given: Any) -> Any:
    return as_json(projections.events_of(*given))


def view_node(*given: Any, **more: Any) -> Any:
    return as_json(projections.view_node(*given, **more))


def view_run(*given: Any, **more: Any) -> Any:
    return as_json(projections.view_run(*given, **more))


WHEN = "2023-11-14T22:13:20.000Z"
NODE = {"nodeId": "n0"}
SHOWN_ERROR = {
    "code": "E.RUNNER.FAILURE",
    "category": "USER_CODE",
    "message": "boom",
    "stack": "line 1",
}
SHOWN_ARTIFACT = {
    "resourceId": "r1",
    "workerId": "w1",
    "type": "file",
    "sizeBytes": 12,
    "expiresAt": "2026-01-01T00:00:00Z",
    "inline": True,
    "metadata": msgspec.Raw(b'{"k":1}'),
}
NO_RESULT = msgspec.Raw(b"{}")


def next_try(kind: str, detail: str, delay_ms: int) -> dict[str, str]:
    at = iso(AT + delay_ms)
    return {"kind": kind, "detail": detail, "until": at, "retryAt": at}


def state(status: str, attempt: int = 1, **more: Any) -> tuple[str, dict[str, Any]]:
    return "node.state", {**NODE, "status": status, "attempt": attempt, **more}


def run_status(status: str, **more: Any) -> tuple[str, dict[str, Any]]:
    return "run.status", {"status": status, **more}


def delta(**body: Any) -> tuple[str, dict[str, Any]]:
    return "node.result.delta", {**NODE, "attempt": 1, **body}


def snapshot(attempt: int, result: msgspec.Raw, *artifacts: Any) -> tuple[str, dict[str, Any]]:
    body = {**NODE, "attempt": attempt, "result": result, "artifacts": list(artifacts)}
    return "node.result.snapshot", body


EXACTLY: list[tuple[Fact, list[tuple[str, dict[str, Any]]]]] = [
    (accepted(), [run_status("queued")]),
    (RunStarted(AT), [run_status("running")]),
    (
        CompensationBegan(AT, "cancel", (1,)),
        [run_status("running", compensating="cancel")],
    ),
    (
        CancelRequested(AT, "ann"),
        [run_status("running", cancelRequested=True, reason="user_requested")],
    ),
    (RunFinished(AT, "succeeded"), [run_status("succeeded")]),
    (RunFinished(AT, "failed", ERROR), [run_status("failed", error=SHOWN_ERROR)]),
    (
        CallOpened(AT, 1, TaskId("call1"), 0, 1, "req1", None),
        [state("ready", 0, hostNodeId="n0", chainIndex=None, callId="call1")],
    ),
    (
        EdgesDecided(AT, 0, 0, (0,), False),
        [("edge.state", {**NODE, "sourceNodeId": "n0", "taken": False})],
    ),
    (
        SignalReceived(AT, "paid", msgspec.Raw(b"[1]"), "shop"),
        [("run.signal", {"name": "paid", "payload": [1], "by": "shop"})],
    ),
    (
        TaskParked(AT, 0, WaitReason("time", "until noon", AT)),
        [
            (
                "node.state",
                {
                    **NODE,
                    "status": "waiting",
                    "waitingFor": {"kind": "time", "detail": "until noon", "until": WHEN},
                },
            )
        ],
    ),
    (
        TaskDecided(AT, 0, msgspec.Raw(b'{"a":1}')),
        [
            ("node.result.snapshot", {**NODE, "attempt": 0, "result": {"a": 1}, "artifacts": []}),
            state("succeeded", 0),
        ],
    ),
    (
        TaskPassed(AT, 0, msgspec.Raw(b'{"a":1}')),
        [
            ("node.result.snapshot", {**NODE, "attempt": 0, "result": {"a": 1}, "artifacts": []}),
            state("skipped", 0, error={"code": "E.TASK.DISABLED", "message": ""}),
        ],
    ),
    (
        TaskWaiting(AT, 0, WaitReason("slot", "all busy")),
        [
            (
                "node.state",
                {**NODE, "status": "waiting", "waitingFor": {"kind": "slot", "detail": "all busy"}},
            )
        ],
    ),
    (ScopeOpened(AT, 0, 2, 3), [("node.state", {**NODE, "status": "running", "items": 3})]),
    (
        ScopeClosing(AT, 0, ERROR),
        [("node.state", {**NODE, "status": "running", "message": "closing", "error": SHOWN_ERROR})],
    ),
    (TaskLeased(AT, 0, 1, "w1", 1, 30_000), [state("dispatched", workerId="w1")]),
    (AttemptStarted(AT, 0, 1), [state("running")]),
    (AttemptProgressed(AT, 0, 1), [state("running")]),
    (
        AttemptProgressed(AT, 0, 1, 0.0, "half", "load", (), 3),
        [state("running", progress=0.0, message="half", stage="load", dropped=3)],
    ),
    (
        AttemptProgressed(
            AT, 0, 1, chunks=(Chunk("log", 4, "a"), Chunk("img", 0, None, "QUI=", "image/png"))
        ),
        [
            delta(channel="log", index=4, mimeType="text/plain", text="a"),
            delta(channel="img", index=0, mimeType="image/png", dataBase64="QUI="),
        ],
    ),
    (
        AttemptProgressed(AT, 0, 1, 0.5, chunks=(Chunk("log", 0),)),
        [
            delta(channel="log", index=0, mimeType="text/plain", dataBase64=""),
            state("running", progress=0.5),
        ],
    ),
    (StopRequested(AT, 0, 1, "cancel", 5), [state("running", message="stopping: cancel")]),
    (
        AttemptRefused(AT, 0, 1, "E.DISPATCH.STALE", 0.2),
        [
            state(
                "retrying",
                waitingFor=next_try("dispatch", "attempt 1 did not start: E.DISPATCH.STALE", 200),
                message="refused: E.DISPATCH.STALE",
            )
        ],
    ),
    (
        AttemptLost(AT, 0, 1, "silence", 0.2),
        [
            state(
                "retrying",
                waitingFor=next_try("dispatch", "attempt 1 was lost: silence", 200),
                message="lost: silence",
            )
        ],
    ),
    (
        AttemptFailed(AT, 0, 1, ERROR, 0.2, failure=1, allowed=4),
        [
            ("node.error", {**NODE, "attempt": 1, "error": SHOWN_ERROR}),
            state(
                "retrying",
                waitingFor=next_try("retry", "attempt 1 failed; failure 1 of 4", 200),
                error=SHOWN_ERROR,
            ),
        ],
    ),
    (
        TaskFailed(AT, 0, 2, ERROR),
        [
            ("node.error", {**NODE, "attempt": 2, "error": SHOWN_ERROR}),
            state("failed", 2, error=SHOWN_ERROR),
        ],
    ),
    (
        TaskFailed(AT, 0, 2, ERROR, confirmed=False),
        [
            ("node.error", {**NODE, "attempt": 2, "error": SHOWN_ERROR}),
            state("failed", 2, error=SHOWN_ERROR, confirmed=False),
        ],
    ),
    (TaskSucceeded(AT, 0, 1), [snapshot(1, NO_RESULT), state("succeeded")]),
    (
        TaskSucceeded(AT, 0, 1, RESULT, (ARTIFACT,)),
        [
            snapshot(1, RESULT, SHOWN_ARTIFACT),
            ("artifact.ready", {**NODE, "artifact": SHOWN_ARTIFACT}),
            state("succeeded"),
        ],
    ),
    (
        TaskReused(AT, 0, "run0", RESULT),
        [snapshot(0, RESULT), state("succeeded", 0, reusedFrom="run0")],
    ),
    (
        TaskRebuilt(AT, 0, "r1", "evicted", (0,)),
        [
            (
                "node.state",
                {
                    **NODE,
                    "status": "pending",
                    "message": "r1 is gone (evicted): waits until it is made again",
                },
            ),
            (
                "node.state",
                {
                    **NODE,
                    "status": "pending",
                    "message": "r1 is gone (evicted): runs again to make it",
                },
            ),
        ],
    ),
    (
        TaskSkipped(AT, 0, "E.TASK.DISABLED"),
        [state("skipped", 0, error={"code": "E.TASK.DISABLED", "message": ""})],
    ),
    (TaskCancelled(AT, 0, 1, False), [state("cancelled", confirmed=False)]),
]


@each_row(("fact", "expected"), EXACTLY)
def test_a_fact_is_shown_as_exactly_these_events(
    fact: Fact, expected: list[tuple[str, dict[str, Any]]]
) -> None:
    events = events_of(fact, 7, places())
    assert [(event["type"], event["data"]) for event in events] == [
        (kind, as_json(body)) for kind, body in expected
    ]
    assert [event["id"] for event in events] == list(range(7, 7 + width(fact)))
    scope = NODE if "nodeId" in expected[0][1] else {}
    assert all(event["scope"] == scope for event in events)
    assert all(event["occurredAt"] == WHEN for event in events)


def test_every_kind_of_fact_is_among_them() -> None:
    assert {type(fact) for fact, _ in EXACTLY} == {type(fact) for fact in FULL_FACTS}


@each_row("fact", FULL_FACTS)
def test_events_can_be_written_as_json(fact: Fact) -> None:
    for event in events_of(fact, 1, places()):
        assert msgspec.json.decode(msgspec.json.encode(event))["id"] == event["id"]


def test_an_error_without_a_stack_has_none() -> None:
    events = events_of(RunFinished(AT, "failed", TaskFailure("E.TIMEOUT", "TIMEOUT")), 1, places())
    assert events[0]["data"]["error"] == {"code": "E.TIMEOUT", "category": "TIMEOUT", "message": ""}


@pytest.mark.parametrize(
    ("at", "expected"),
    [
        (AT, WHEN),
        (AT + 7, "2023-11-14T22:13:20.007Z"),
        (AT + 999, "2023-11-14T22:13:20.999Z"),
        (0, "1970-01-01T00:00:00.000Z"),
    ],
)
def test_times_are_shown_to_the_millisecond(at: int, expected: str) -> None:
    assert iso(at) == expected


class TestStatus:
    @each_row("kind", ["pending", "ready", "succeeded", "failed", "skipped"])
    def test_plain_states_are_called_by_their_names(self, kind: str) -> None:
        run, task = run_in(getattr(states, kind.capitalize()))
        assert node_status(run.tasks[task]) == kind

    def test_a_task_that_waits_says_so_until_it_is_leased(self) -> None:
        run = start(make_plan(1)).run
        give(run, Wait(0, WaitReason("slot")))
        assert node_status(run.tasks[0]) == "waiting"
        give(run, LeaseTask(0, "w1", 1, 1))
        assert node_status(run.tasks[0]) == "dispatched"

    def test_an_attempt_that_is_being_stopped_is_running_as_far_as_anybody_knows(self) -> None:
        run = start(make_plan(1)).run
        give(run, LeaseTask(0, "w1", 1, 1), Withdraw(0, 1))
        assert node_status(run.tasks[0]) == "running"

    def test_what_a_lost_attempt_waited_for_is_forgotten_when_it_reports_its_failure(self) -> None:
        run = start(make_plan(1, nodes={0: retrying(2)})).run
        give(
            run,
            LeaseTask(0, "w1", 1, 1),
            Lose(0, 1, "silence"),
            Wait(0, WaitReason("slot")),
            Report(0, 1, "w1", "FAILED", error=ERROR_AGAIN),
        )
        assert node_status(run.tasks[0]) == "retrying"


ERROR_AGAIN = TaskFailure("E.RUNNER.FAILURE", "USER_CODE", "boom")


def give(run: Any, *commands: RunCommand) -> list[Fact]:
    facts: list[Fact] = []
    for command in commands:
        facts += decide(run, command, AT, Random(3)).facts
        run.check()
    return facts


NODE_KEYS = {
    "nodeId",
    "type",
    "label",
    "status",
    "attempt",
    "failures",
    "workerId",
    "waitingFor",
    "result",
    "error",
    "progress",
    "message",
    "startedAt",
    "finishedAt",
    "pendingAck",
    "dispatchId",
    "ackDeadline",
    "artifacts",
}
RUN_KEYS = {
    "runId",
    "workflowId",
    "status",
    "createdAt",
    "startedAt",
    "finishedAt",
    "cancelRequested",
    "lastEvent",
    "counts",
    "nodes",
    "artifacts",
}


class TestViews:
    def test_a_node_that_has_not_begun(self) -> None:
        view = view_node(start(make_plan(1)).run, 0)
        assert set(view) == NODE_KEYS
        assert (view["nodeId"], view["type"], view["label"]) == ("n0", "t.node", "node 0")
        assert (view["status"], view["attempt"], view["failures"]) == ("ready", 0, 0)
        unknown = ("workerId", "waitingFor", "result", "error", "progress", "startedAt")
        assert all(view[name] is None for name in unknown)

    def test_a_node_that_waits(self) -> None:
        run = start(make_plan(1)).run
        give(run, Wait(0, WaitReason("package", "pkg 1.0")))
        assert view_node(run, 0)["waitingFor"] == {"kind": "package", "detail": "pkg 1.0"}

    def test_a_node_that_runs(self) -> None:
        run = start(make_plan(1)).run
        give(run, LeaseTask(0, "w1", 1, 1), Progress(0, 1, "w1", 0.5, "half"))
        view = view_node(run, 0)
        shown = {"workerId": "w1", "attempt": 1, "progress": 0.5, "message": "half"}
        assert {name: view[name] for name in shown} == shown
        assert (view["startedAt"], view["finishedAt"]) == (WHEN, None)

    def test_a_node_that_succeeded(self) -> None:
        run = start(make_plan(1)).run
        give(run, LeaseTask(0, "w1", 1, 1), Report(0, 1, "w1", "SUCCEEDED", RESULT, (ARTIFACT,)))
        view = view_node(run, 0)
        assert (view["result"], view["artifacts"]) == tuple(as_json((RESULT, [SHOWN_ARTIFACT])))
        assert (view["status"], view["finishedAt"]) == ("succeeded", WHEN)

    def test_a_node_that_failed_and_one_that_was_skipped_say_why(self) -> None:
        run = start(make_plan(2, [(0, 1)])).run
        give(run, LeaseTask(0, "w1", 1, 1), Report(0, 1, "w1", "FAILED", error=ERROR))
        assert view_node(run, 0)["error"] == SHOWN_ERROR
        assert view_node(run, 1)["error"] == {
            "code": errors.TASK_UPSTREAM_FAILED.code,
            "message": "",
        }

    def test_a_node_is_ready_when_all_before_it_have_ended(self) -> None:
        run = start(make_plan(3, [(0, 2), (1, 2)])).run
        give(run, LeaseTask(0, "w1", 1, 1), Report(0, 1, "w1", "SUCCEEDED"))
        assert projections.ready_at(run, 0) == AT
        assert projections.ready_at(run, 2) is None
        assert view_run(run)["counts"] == {"succeeded": 1, "ready": 1, "pending": 1}
        give(run, LeaseTask(1, "w1", 1, 1), Report(1, 1, "w1", "SUCCEEDED"))
        assert projections.ready_at(run, 2) == AT
        assert projections.count_nodes(run) == {"succeeded": 2, "ready": 1}

    def test_a_run_that_has_just_been_accepted(self) -> None:
        view = view_run(start(make_plan(2)).run)
        assert set(view) == RUN_KEYS
        assert (view["runId"], view["workflowId"], view["status"]) == ("run1", "wf", "queued")
        assert (view["createdAt"], view["startedAt"], view["finishedAt"]) == (WHEN, None, None)
        assert (view["cancelRequested"], view["lastEvent"]) == (False, 1)
        assert [node["nodeId"] for node in view["nodes"]] == ["n0", "n1"]

    def test_a_run_that_failed_says_why(self) -> None:
        run = start(make_plan(1)).run
        give(run, LeaseTask(0, "w1", 1, 1), Report(0, 1, "w1", "FAILED", error=ERROR))
        view = view_run(run)
        assert set(view) == RUN_KEYS | {"error"}
        assert (view["status"], view["error"]) == ("failed", SHOWN_ERROR)
        assert (view["startedAt"], view["finishedAt"]) == (WHEN, WHEN)

    def test_the_artifacts_of_a_run_are_those_of_its_nodes(self) -> None:
        run = start(make_plan(2)).run
        other = ArtifactRef("r2", "w1", "file")
        for task, artifact in ((1, other), (0, ARTIFACT)):
            report = Report(task, 1, "w1", "SUCCEEDED", artifacts=(artifact,))
            give(run, LeaseTask(task, "w1", 1, 1), report)
        assert [one["resourceId"] for one in view_run(run)["artifacts"]] == ["r1", "r2"]

    def test_a_list_shows_runs_without_their_nodes(self) -> None:
        assert set(as_json(projections.view_head(start(make_plan(1)).run))) == RUN_KEYS - {
            "nodes",
            "artifacts",
        }

    def test_a_cancel_is_shown_while_the_run_goes_on(self) -> None:
        run = start(make_plan(1)).run
        give(run, LeaseTask(0, "w1", 1, 1), Cancel("ann", 5))
        view = view_run(run)
        assert (view["status"], view["cancelRequested"]) == ("running", True)


REPORT_FAILED = Report(0, 1, "w1", "FAILED", error=ERROR_AGAIN)
LEASE = LeaseTask(0, "w1", 1, 1)


@each_row(
    "commands",
    [
        (LEASE, Start(0, 1, "w1"), Report(0, 1, "w1", "SUCCEEDED")),
        (LEASE, Progress(0, 1, "w1", 0.5), Report(0, 1, "w1", "SKIPPED")),
        (LEASE, REPORT_FAILED, Wait(0, WaitReason("slot")), LeaseTask(0, "w2", 1, 1)),
        (LEASE, Lose(0, 1, "gone"), Wait(0, WaitReason("slot")), REPORT_FAILED),
        (LEASE, Refuse(0, 1, "w1", errors.DISPATCH_STALE.code)),
        (LEASE, Withdraw(0, 1), Progress(0, 1, "w1", 0.5), Lose(0, 1, "gone")),
        (LEASE, Start(0, 1, "w1"), TimeOut(0, 1, 5), StopOverdue(0, 1)),
        (LEASE, Cancel("ann", 5), Report(0, 1, "w1", "CANCELLED")),
        (LEASE, Cancel("ann", 5), StopOverdue(0, 1)),
        (Cancel("ann", 5),),
    ],
)
def test_folding_the_events_gives_the_statuses_of_the_view(
    commands: tuple[RunCommand, ...],
) -> None:
    decision = start(make_plan(3, [(0, 1)], nodes={0: retrying(2)}))
    run, facts = decision.run, list(decision.facts)
    for command in commands:
        facts += give(run, command)
        seen = {"run": "", "n0": "pending", "n1": "pending", "n2": "pending"}
        first, shown = 1, TaskPlaces(run.plan)
        for fact in facts:
            for event in events_of(fact, first, shown):
                assert event["id"] == first
                first += 1
                if event["type"] in ("node.state", "run.status"):
                    seen[event["scope"].get("nodeId", "run")] = event["data"]["status"]
        view = view_run(run)
        assert view["lastEvent"] == first - 1
        assert seen.pop("run") == view["status"]
        assert seen == {
            node["nodeId"]: "pending" if node["status"] == "ready" else node["status"]
            for node in view["nodes"]
        }


class TestCalls:
    """n1 wraps n2, which wraps n0."""

    def called(self) -> tuple[Any, list[Fact]]:
        run = start(wrapped(2)).run
        facts = give(run, LeaseTask(0, "w1", 1, 1), Call(0, 1, "w1", "a", 0))
        facts += give(run, LeaseTask(3, "w1", 1, 1), Call(3, 1, "w1", "b", 1))
        facts += give(run, LeaseTask(4, "w2", 1, 1), Report(4, 1, "w2", "SUCCEEDED", RESULT))
        return run, facts

    def test_the_events_of_calls_name_the_call_its_host_and_its_place(self) -> None:
        run, facts = self.called()
        shown = TaskPlaces(run.plan)
        seen: dict[str, list[Any]] = {}
        for fact in facts:
            for event in events_of(fact, 1, shown):
                body = event["data"]
                if event["type"] == "node.state" and "callId" in body:
                    assert event["scope"] == {"nodeId": body["nodeId"]}
                    about = (body["nodeId"], body["hostNodeId"], body["chainIndex"])
                    seen.setdefault(body["callId"], []).append((*about, body["status"]))
        assert seen == {
            run.task_id(3): [("n2", "n0", 1, "ready"), ("n2", "n0", 1, "dispatched")],
            run.task_id(4): [
                ("n0", "n0", None, "ready"),
                ("n0", "n0", None, "dispatched"),
                ("n0", "n0", None, "succeeded"),
            ],
        }

    def test_the_events_of_the_hosts_own_task_name_the_outermost_middleware(self) -> None:
        run, facts = self.called()
        [leased] = [fact for fact in facts if isinstance(fact, TaskLeased) and fact.task == 0]
        [event] = events_of(leased, 1, TaskPlaces(run.plan, facts))
        chain = {"hostNodeId": "n0", "chainIndex": 0, "middlewareNodeId": "n1"}
        assert event["data"] == {
            **NODE,
            **chain,
            "status": "dispatched",
            "attempt": 1,
            "workerId": "w1",
        }

    def test_before_it_runs_a_chain_waits_as_its_host_does(self) -> None:
        run = start(wrapped(2)).run
        host, outer, inner = view_run(run)["nodes"]
        assert (host["status"], outer["status"], inner["status"]) == ("ready", "ready", "pending")
        assert (host["middlewares"], host["calls"]) == (["n1", "n2"], 0)
        assert (outer["hostNodeId"], outer["chainIndex"], outer["calls"]) == ("n0", 0, 0)
        assert (inner["hostNodeId"], inner["chainIndex"], inner["calls"]) == ("n0", 1, 0)
        assert "hostNodeId" not in host
        assert "middlewares" not in outer

    def test_while_it_runs_a_middleware_is_shown_with_its_last_call(self) -> None:
        run, _ = self.called()
        host, outer, inner = view_run(run)["nodes"]
        assert (host["status"], host["calls"], host["result"]) == ("dispatched", 1, None)
        assert (outer["status"], outer["calls"]) == ("dispatched", 0)
        assert (outer["attempt"], outer["workerId"], outer["pendingAck"]) == (1, "w1", True)
        assert "lastCall" not in outer
        assert "lastCall" not in inner
        last = host["lastCall"]
        assert (last["callId"], last["status"], last["attempt"]) == (run.task_id(4), "succeeded", 1)
        assert (last["workerId"], last["error"], last["waitingFor"]) == ("w2", None, None)
        assert last["finishedAt"] is not None
        assert (inner["status"], inner["calls"], inner["attempt"]) == ("dispatched", 1, 1)
        give(run, Call(0, 1, "w1", "c", 0))
        inner = view_node(run, 2)
        assert (inner["status"], inner["calls"], inner["attempt"]) == ("ready", 2, 0)

    def test_a_host_says_what_its_last_call_waits_for(self) -> None:
        run = start(wrapped(1)).run
        give(run, LeaseTask(0, "w1", 1, 1), Call(0, 1, "w1", "a", 0))
        give(run, Wait(2, WaitReason("package", "acme 1.0.0")))
        last = view_node(run, 0)["lastCall"]
        assert (last["status"], last["waitingFor"]["kind"]) == ("waiting", "package")

    def test_a_middleware_that_fails_is_shown_with_its_own_error(self) -> None:
        run = start(wrapped(1)).run
        give(run, LeaseTask(0, "w1", 1, 1), Call(0, 1, "w1", "a", 0), LeaseTask(2, "w2", 1, 1))
        give(
            run, Report(2, 1, "w2", "SUCCEEDED", RESULT), Report(0, 1, "w1", "FAILED", error=ERROR)
        )
        host, outer = view_run(run)["nodes"]
        assert (outer["status"], outer["error"]) == ("failed", SHOWN_ERROR)
        assert (host["status"], host["lastCall"]["status"]) == ("failed", "succeeded")
        assert outer["finishedAt"] == host["finishedAt"]

    def test_after_its_end_what_was_never_called_was_skipped(self) -> None:
        run = start(wrapped(2)).run
        give(run, LeaseTask(0, "w1", 1, 1), Report(0, 1, "w1", "SUCCEEDED", RESULT))
        host, outer, inner = view_run(run)["nodes"]
        assert (host["status"], host["result"]) == ("succeeded", as_json(RESULT))
        assert (outer["status"], inner["status"]) == ("succeeded", "skipped")

    def test_after_its_end_a_host_shows_its_own_result_and_a_middleware_that_of_its_call(
        self,
    ) -> None:
        run, _ = self.called()
        give(run, Report(3, 1, "w1", "FAILED", error=ERROR))
        give(run, Report(0, 1, "w1", "SUCCEEDED", RESULT))
        host, outer, inner = view_run(run)["nodes"]
        assert run.status == "succeeded"
        assert [one["status"] for one in (host, outer, inner)] == [
            "succeeded",
            "succeeded",
            "failed",
        ]
        assert (inner["error"], host["error"]) == (SHOWN_ERROR, None)

"""PROTOCOL §9 and RELIABILITY §7.3, sentence by sentence, from outside."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from tests.http_workers.foreign import ForeignPool, Task
from tests.http_workers.workflows import node, put_pool, workflow
from tests.processes.system import SECRET, System

RETRY = {"maxAttempts": 3, "backoff": {"initialSeconds": 0.05, "maxSeconds": 0.1}}


class Running:
    """A run of one node that was delivered to a pool."""

    def __init__(self, system: System, pool: ForeignPool, settings: dict[str, Any], **more: Any):
        self.system = system
        self.pool = pool
        self.name = put_pool(system, pool, **settings)
        self.run_id = system.rest.submit(workflow(node(self.name, **more)))
        self.task = pool.next()

    @property
    def status(self) -> str:
        return self.system.rest.run_status(self.run_id)

    def node(self) -> dict[str, Any]:
        return self.system.rest.nodes(self.run_id)["n"]

    def events(self) -> str:
        """The stream of the run, without spaces."""
        query = {"runId": self.run_id}
        return self.system.rest.http.get("/api/v1/events", params=query).text.replace(" ", "")

    def ended(self) -> dict[str, Any]:
        return self.system.rest.finished(self.run_id)

    def cancel(self) -> None:
        self.system.rest.post(f"runs/{self.run_id}/cancel", wanted=200)


Make = Callable[..., Running]


@pytest.fixture
def make(system: System, pool: ForeignPool) -> Make:
    def make(settings: dict[str, Any] | None = None, **more: Any) -> Running:
        return Running(system, pool, settings or {}, **more)

    return make


def refused(answer: httpx.Response, status: int, error: str) -> dict[str, Any]:
    assert answer.status_code == status, answer.text
    body: dict[str, Any] = answer.json()
    assert body["error"] == error, body
    assert body["message"]
    return body


def b64(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def forged(
    token: str, *, key: str = SECRET, head: dict[str, Any] | None = None, **claims: Any
) -> str:
    """The token with other claims, signed by whoever has the key."""
    first, body, _ = token.split(".")

    def padded(text: str) -> bytes:
        return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))

    changed = {**json.loads(padded(body)), **claims}
    if head is not None:
        first = b64(json.dumps(head, separators=(",", ":")).encode())
    signed = f"{first}.{b64(json.dumps(changed, separators=(',', ':')).encode())}"
    return f"{signed}.{b64(hmac.digest(key.encode(), signed.encode(), hashlib.sha256))}"


class TestEnvelope:
    def test_it_says_what_the_node_asks_for(self, make: Make) -> None:
        running = make(type="core.noop", resources={"cpu": 64, "memoryBytes": 2**40, "gpu": 0})
        assert running.task.envelope["resources"] == {"cpu": 64, "memoryBytes": 2**40}
        assert running.task.succeed().status_code == 200

    def test_it_has_every_field_of_the_contract(self, make: Make) -> None:
        running = make(type="core.echo", parameters={"value": [1, "two"]}, timeoutSeconds=50)
        envelope = running.task.envelope
        assert envelope["runId"] == running.run_id
        assert envelope["tenantId"] == "default"
        assert envelope["workspaceId"] == "default"
        assert envelope["attempt"] == 1
        assert envelope["failures"] == 0
        assert envelope["nodeType"] == "core.echo"
        assert envelope["package"]["name"] == "core"
        assert envelope["parameters"] == {"value": [1, "two"]}
        assert envelope["taskKey"].endswith("/" + envelope["assetId"])
        assert envelope["heartbeatIntervalMs"] == 30_000
        assert envelope["heartbeatTimeoutMs"] == 90_000
        assert envelope["cancelGracePeriodMs"] == 30_000
        assert envelope["resources"] == {}
        assert envelope["callbackBaseUrl"] == running.system.url
        assert envelope["dispatchId"] == running.node()["dispatchId"]
        for name in ("attemptId", "dispatchId", "enqueuedAt", "tokenExpiresAt", "deadline"):
            assert envelope[name], name
        assert running.task.succeed(value=7).status_code == 200

    def test_the_secret_of_the_pool_has_its_own_header(self, make: Make) -> None:
        running = make({"secret": "between us"})
        assert running.task.headers["x-astraflow-pool-secret"] == "between us"
        shown = running.system.rest.get(f"pools/{running.name}")
        assert shown["hasSecret"] is True
        assert "between us" not in json.dumps(shown)
        assert running.task.succeed().status_code == 200

    @pytest.mark.parametrize("prefix", ["/v1", "/api/v1"])
    def test_callbacks_under_both_prefixes(self, make: Make, prefix: str) -> None:
        task = make().task
        assert task.post("started", prefix=prefix).json()["acknowledged"] is True
        beat = task.post("heartbeat", prefix=prefix).json()
        assert beat["acknowledged"] is True
        assert beat["shouldCancel"] is False
        done = task.post("completed", prefix=prefix, outcome="SUCCEEDED", output={"a": 1})
        assert done.json()["finalState"] == "SUCCEEDED"
        assert done.json()["serverTime"]


class TestTokens:
    def test_every_bad_token_gets_the_same_answer(self, make: Make) -> None:
        running = make()
        task = running.task
        running.system.rest.submit(workflow(node(running.name)))
        other = running.pool.next(1)
        body = json.dumps({"attempt": 1, "workerId": "w"}).encode()
        unsigned = task.token.rpartition(".")[0] + "."
        bad = {
            "missing": "",
            "garbled": "not.a.token",
            "of another task": other.token,
            "truncated": task.token[:-3],
            "alg none": b64(b'{"alg":"none"}') + "." + task.token.split(".")[1] + ".",
            "unsigned": unsigned,
            "key swapped": forged(task.token, key="another secret of enough length"),
            "another algorithm": forged(task.token, head={"alg": "HS512", "typ": "JWT"}),
            "expired": forged(task.token, exp=1_000_000_000),
        }
        answers = {name: task.send("started", body, token=token) for name, token in bad.items()}
        assert {one.status_code for one in answers.values()} == {401}
        assert len({one.text for one in answers.values()}) == 1, answers
        assert next(iter(answers.values())).json()["error"] == "invalid_token"
        assert running.node()["status"] == "dispatched"

    def test_the_token_is_checked_before_the_body_and_before_the_task(self, make: Make) -> None:
        task = make().task
        refused(task.send("started", b"not json", token="bad"), 401, "invalid_token")
        refused(task.send("started", b"{}", path="nobody.0"), 401, "invalid_token")

    def test_a_query_is_ignored(self, make: Make) -> None:
        task = make().task
        raw = json.dumps({"attempt": 1, "workerId": task.worker_id}).encode()
        refused(task.send("started?x=1", raw, token="none"), 401, "invalid_token")
        answer = task.send("started?x=1&x=%00&access_token=none", raw)
        assert answer.status_code == 200

    def test_a_token_of_another_tenant_workspace_or_run_is_none(self, make: Make) -> None:
        task = make().task
        body = json.dumps({"attempt": 1, "workerId": "w"}).encode()
        for claim in ("tenant", "workspace", "run"):
            changed: dict[str, Any] = {claim: "01JZZZZZZZZZZZZZZZZZZZZZZZ"}
            stranger = forged(task.token, **changed)
            refused(task.send("started", body, token=stranger), 401, "invalid_token")

    def test_a_token_with_more_or_fewer_claims_is_none(self, make: Make) -> None:
        task = make().task
        body = json.dumps({"attempt": 1, "workerId": "w"}).encode()
        refused(
            task.send("started", body, token=forged(task.token, role="admin")), 401, "invalid_token"
        )

    def test_a_heartbeat_renews_it(self, make: Make) -> None:
        running = make({"tokenTtlSeconds": 2})
        task = running.task
        assert task.start().status_code == 200

        def renewed() -> str | None:
            token: str | None = task.post("heartbeat").json().get("taskToken")
            return token

        fresh = running.system.until(renewed, "a renewed token")
        assert fresh != task.token
        task.token = fresh
        assert task.succeed().status_code == 200


class TestBodies:
    @pytest.mark.parametrize(
        ("what", "body", "field"),
        [
            ("started", {"attempt": 0}, "attempt"),
            ("started", {"attempt": "1"}, "attempt"),
            ("started", {"attempt": 1.5}, "attempt"),
            ("started", {"workerId": ""}, "workerId"),
            ("started", {"workerId": None}, "workerId"),
            ("started", {"startedAt": "yesterday"}, "startedAt"),
            ("heartbeat", {"progressPct": -1}, "progressPct"),
            ("heartbeat", {"progressPct": 101}, "progressPct"),
            ("heartbeat", {"progressPct": "45"}, "progressPct"),
            ("heartbeat", {"progressPct": 4.5}, "progressPct"),
            ("completed", {"outcome": "WON"}, "outcome"),
            ("completed", {}, "outcome"),
            ("completed", {"outcome": "FAILED"}, "error"),
            ("completed", {"outcome": "FAILED", "error": {"category": "BAD_LUCK"}}, "error"),
            ("completed", {"outcome": "SUCCEEDED", "error": {"category": "USER_CODE"}}, "error"),
            ("completed", {"outcome": "FAILED", "error": {"message": "m"}}, "error.category"),
            ("completed", {"outcome": "SUCCEEDED", "output": [1]}, "output"),
            ("completed", {"outcome": "SUCCEEDED", "output": {"a": "\0"}}, "output"),
            ("completed", {"outcome": "SUCCEEDED", "metrics": {"a": "b"}}, "metrics"),
            ("heartbeat", {"message": "\0"}, "message"),
            ("heartbeat", {"unknown": 2**64}, "unknown"),
            ("started", {"attempt": 2**53 + 1}, "attempt"),
        ],
    )
    def test_a_bad_field_is_named(
        self, make: Make, what: str, body: dict[str, Any], field: str
    ) -> None:
        task = make().task
        answer = refused(task.post(what, **body), 400, "invalid_argument")
        named = answer["field"]
        assert named == field or named.startswith(f"{field}."), answer
        assert not named.endswith("."), answer
        assert answer["message"].startswith(f"{named}: "), answer

    @pytest.mark.parametrize("place", ["attempt", "output"])
    def test_a_key_that_stands_twice_is_refused(self, make: Make, place: str) -> None:
        running = make()
        task = running.task
        inner = '{"a":1,"a":2}' if place == "output" else "{}"
        again = '"attempt":1,' if place == "attempt" else ""
        raw = f'{{{again}"attempt":1,"workerId":"w","outcome":"SUCCEEDED","output":{inner}}}'
        answer = refused(task.send("completed", raw.encode()), 400, "invalid_argument")
        assert answer["field"] == ("a" if place == "output" else "attempt")
        assert running.node()["status"] == "dispatched"

    @pytest.mark.parametrize("attempt", [2, 2**31 + 1, 2**32 - 1, 2**53])
    def test_any_other_attempt_is_a_mismatch(self, make: Make, attempt: int) -> None:
        task = make().task
        answer = refused(task.post("started", attempt=attempt), 409, "attempt_mismatch")
        assert (answer["expectedAttempt"], answer["receivedAttempt"]) == (1, attempt)

    @pytest.mark.parametrize(
        "raw",
        [
            b"",
            b"[]",
            b"not json",
            b'{"attempt": NaN}',
            b'{"attempt":1,"workerId":"\\ud800"}',
            b"{" * 70,
        ],
    )
    def test_a_body_that_is_no_object(self, make: Make, raw: bytes) -> None:
        refused(make().task.send("started", raw), 400, "invalid_argument")

    def test_values_that_no_store_can_hold(self, make: Make) -> None:
        task = make().task
        head = f'{{"attempt":1,"workerId":"{task.worker_id}","outcome":"SUCCEEDED","output":'
        for bad in ('{"a":"\\u0000"}', '{"a":1e999}', '{"a":"\\udc00"}'):
            refused(task.send("completed", f"{head}{bad}}}".encode()), 400, "invalid_argument")
        assert task.succeed().status_code == 200

    def test_sizes(self, make: Make) -> None:
        task = make().task
        assert task.start().status_code == 200
        refused(task.post("heartbeat", message="m" * 4_097), 413, "payload_too_large")
        assert task.post("heartbeat", message="m" * 4_096).status_code == 200
        big = {"a": "x" * (256 * 1024)}
        refused(task.post("completed", outcome="SUCCEEDED", output=big), 413, "payload_too_large")
        refused(
            task.post("completed", outcome="SUCCEEDED", output={"a": "x" * 1_100_000}),
            413,
            "payload_too_large",
        )
        assert task.succeed().status_code == 200

    def test_a_long_stack_trace_is_cut_with_a_mark(self, make: Make) -> None:
        running = make()
        assert running.task.fail(stackTrace="s" * 200_000).status_code == 200
        run = running.ended()
        stack = run["nodes"][0]["error"]["stack"]
        assert len(stack.encode()) < 66_000
        assert "cut" in stack[-80:]

    def test_unknown_fields_are_ignored_and_result_is_read_as_output(self, make: Make) -> None:
        running = make()
        assert running.task.post("started", mood="good").status_code == 200
        done = running.task.post("completed", outcome="SUCCEEDED", result={"a": 1}, mood="good")
        assert done.status_code == 200
        assert running.ended()["nodes"][0]["result"] == {"a": 1}

    def test_metrics_are_kept(self, make: Make) -> None:
        running = make()
        running.task.start()
        metrics = {"cpuTimeMs": 45_000, "peakMemoryBytes": 2147483648}
        done = running.task.post("completed", outcome="SUCCEEDED", output={}, metrics=metrics)
        assert done.status_code == 200
        assert running.ended()["nodes"][0]["metrics"] == metrics

    def test_output_wins_over_result(self, make: Make) -> None:
        running = make()
        running.task.post("completed", outcome="SUCCEEDED", output={"a": 1}, result={"a": 2})
        assert running.ended()["nodes"][0]["result"] == {"a": 1}


class TestStarted:
    def test_again_by_the_same_worker_keeps_the_first_time(self, make: Make) -> None:
        running = make()
        assert running.task.start().status_code == 200
        first = running.node()["startedAt"]
        assert running.task.start().status_code == 200
        assert running.node()["startedAt"] == first

    def test_by_another_worker(self, make: Make) -> None:
        running = make()
        assert running.task.start().status_code == 200
        other = Task(running.task.envelope, {})
        body = refused(other.start(), 409, "already_started")
        assert body["state"] == "RUNNING"
        refused(other.post("heartbeat"), 409, "already_started")
        refused(other.succeed(), 409, "already_started")
        assert running.task.succeed().status_code == 200

    def test_after_a_cancel(self, make: Make) -> None:
        running = make()
        running.cancel()
        assert running.ended()["status"] == "cancelled"
        body = refused(running.task.start(), 409, "task_already_terminal")
        assert body["state"] == "CANCELLED"

    def test_after_the_end(self, make: Make) -> None:
        running = make()
        assert running.task.succeed().status_code == 200
        assert refused(running.task.start(), 409, "task_already_terminal")["state"] == "SUCCEEDED"

    def test_nobody_starts_it_in_time(self, make: Make) -> None:
        running = make({"startTimeoutSeconds": 0.5})
        second = running.pool.next(1)
        assert second.attempt == 2
        assert second.envelope["failures"] == 0
        body = refused(running.task.start(), 409, "attempt_mismatch")
        assert (body["expectedAttempt"], body["receivedAttempt"]) == (2, 1)
        assert second.succeed().status_code == 200
        assert running.ended()["status"] == "succeeded"


class TestHeartbeats:
    def test_before_the_start(self, make: Make) -> None:
        refused(make().task.post("heartbeat"), 409, "not_started")

    def test_progress_and_message_are_shown(self, make: Make) -> None:
        running = make()
        running.task.start()
        beat = running.task.post("heartbeat", progressPct=45, message="partition 5 of 10")
        assert beat.status_code == 200
        shown = running.node()
        assert shown["progress"] == 0.45
        assert shown["message"] == "partition 5 of 10"

    @pytest.mark.parametrize("at", ["2019-01-01T00:00:00Z", "2999-01-01T00:00:00+14:00"])
    def test_the_time_of_the_receipt_counts(self, make: Make, at: str) -> None:
        running = make({"heartbeatIntervalSeconds": 0.2, "heartbeatTimeoutSeconds": 1.0})
        running.task.start()
        for _ in range(3):
            assert running.task.post("heartbeat", heartbeatAt=at).status_code == 200
        assert running.status == "running"
        assert running.task.succeed().status_code == 200

    def test_silence_fails_the_attempt_and_nothing_revives_it(self, make: Make) -> None:
        running = make({"heartbeatIntervalSeconds": 0.2, "heartbeatTimeoutSeconds": 0.5})
        running.task.start()
        run = running.ended()
        assert run["status"] == "failed"
        assert run["nodes"][0]["error"]["code"] == "HEARTBEAT_TIMEOUT"
        refused(running.task.post("heartbeat"), 410, "task_expired")
        body = refused(running.task.succeed(), 409, "task_already_terminal")
        assert body["state"] == "FAILED"

    def test_the_retry_policy_decides_about_a_silent_one(self, make: Make) -> None:
        running = make(
            {"heartbeatIntervalSeconds": 0.2, "heartbeatTimeoutSeconds": 0.5}, retry=RETRY
        )
        running.task.start()
        second = running.pool.next(1)
        assert (second.attempt, second.envelope["failures"]) == (2, 1)
        refused(running.task.post("heartbeat"), 409, "attempt_mismatch")
        assert second.succeed().status_code == 200
        assert running.ended()["status"] == "succeeded"


class TestCompleted:
    def test_without_a_start(self, make: Make) -> None:
        running = make()
        assert running.task.succeed(a=1).json()["finalState"] == "SUCCEEDED"
        assert running.ended()["nodes"][0]["result"] == {"a": 1}

    def test_the_same_outcome_again_also_after_the_end_of_the_run(self, make: Make) -> None:
        running = make()
        assert running.task.succeed(a=1).status_code == 200
        running.ended()
        again = running.task.succeed(a=2)
        assert again.status_code == 200
        assert again.json()["finalState"] == "SUCCEEDED"
        assert running.ended()["nodes"][0]["result"] == {"a": 1}

    def test_another_outcome(self, make: Make) -> None:
        running = make()
        assert running.task.succeed().status_code == 200
        assert refused(running.task.fail(), 409, "task_already_terminal")["state"] == "SUCCEEDED"

    def test_a_failure_that_is_retried_is_answered_again_the_same(self, make: Make) -> None:
        running = make(retry={"maxAttempts": 2, "backoff": {"initialSeconds": 60}})
        assert running.task.fail().json()["finalState"] == "FAILED"
        assert running.task.fail().json()["finalState"] == "FAILED"
        assert refused(running.task.succeed(), 409, "task_already_terminal")["state"] == "FAILED"
        running.cancel()

    def test_of_an_older_attempt(self, make: Make) -> None:
        running = make(retry=RETRY)
        assert running.task.fail().status_code == 200
        second = running.pool.next(1)
        body = refused(running.task.succeed(), 409, "attempt_mismatch")
        assert (body["expectedAttempt"], body["receivedAttempt"]) == (2, 1)
        # Only the token is older.
        old = Task({**second.envelope, "taskToken": running.task.token}, {})
        body = refused(old.succeed(), 409, "attempt_mismatch")
        assert (body["expectedAttempt"], body["receivedAttempt"]) == (2, 1)
        assert second.succeed().status_code == 200

    def test_the_attempt_id_is_checked_when_sent(self, make: Make) -> None:
        running = make()
        task = running.task
        refused(task.post("started", attemptId="of another"), 409, "attempt_mismatch")
        assert task.post("started", attemptId=task.envelope["attemptId"]).status_code == 200

    def test_cancelled_without_a_cancel_is_a_failure_that_is_not_retried(self, make: Make) -> None:
        running = make(retry=RETRY)
        running.task.start()
        done = running.task.post("completed", outcome="CANCELLED")
        assert done.status_code == 200
        run = running.ended()
        assert run["status"] == "failed"
        assert run["nodes"][0]["error"]["category"] == "CANCELLED"

    @pytest.mark.parametrize("is_timed_out", [False, True])
    def test_cancelled_that_counts_as_failed_is_answered_again_the_same(
        self, make: Make, is_timed_out: bool
    ) -> None:
        running = make(timeoutSeconds=0.2) if is_timed_out else make()
        task = running.task
        task.start()
        if is_timed_out:
            running.system.until(
                lambda: task.post("heartbeat").json()["shouldCancel"], "the end of its time"
            )
        where: dict[str, Any] = {
            "cancelledDuringPhase": "loading",
            "partialProgress": {"recordsProcessed": 5},
        }
        for _ in range(2):
            done = task.post("completed", outcome="CANCELLED", **where)
            assert (done.status_code, done.json()["finalState"]) == (200, "FAILED")
        running.ended()
        done = task.post("completed", outcome="CANCELLED", **where)
        assert (done.status_code, done.json()["finalState"]) == (200, "FAILED")
        assert refused(task.succeed(), 409, "task_already_terminal")["state"] == "FAILED"
        assert '"partialProgress":{"recordsProcessed":5}' in running.events()
        assert '"cancelledDuringPhase":"loading"' in running.events()

    def test_a_failure_is_not_a_cancel(self, make: Make) -> None:
        running = make()
        assert running.task.fail().status_code == 200
        late = running.task.post("completed", outcome="CANCELLED")
        assert refused(late, 409, "task_already_terminal")["state"] == "FAILED"

    def test_the_output_of_a_failure_is_evidence(self, make: Make) -> None:
        running = make()
        error = {"category": "DATA_QUALITY", "message": "bad rows"}
        done = running.task.post("completed", outcome="FAILED", error=error, output={"badRows": 3})
        assert done.status_code == 200
        run = running.ended()
        assert run["nodes"][0]["result"] is None
        events = running.events()
        assert '"badRows":3' in events

    @pytest.mark.parametrize(
        ("category", "more", "is_retried"),
        [
            ("USER_CODE", {}, True),
            ("DATA_QUALITY", {}, False),
            ("INFRASTRUCTURE", {}, True),
            ("CONFIGURATION", {}, False),
            ("TIMEOUT", {}, True),
            ("CANCELLED", {}, False),
            ("DATA_QUALITY", {"retryable": True}, True),
            ("USER_CODE", {"retryable": False}, False),
        ],
    )
    def test_the_category_decides_about_another_attempt(
        self, make: Make, category: str, more: dict[str, Any], is_retried: bool
    ) -> None:
        running = make(retry=RETRY)
        assert running.task.fail(category, **more).status_code == 200
        if is_retried:
            assert running.pool.next(1).succeed().status_code == 200
        assert running.ended()["status"] == ("succeeded" if is_retried else "failed")


class TestCancel:
    def test_it_is_told_by_the_heartbeat_and_confirmed(self, make: Make) -> None:
        running = make()
        running.task.start()
        running.cancel()
        beat = running.task.post("heartbeat").json()
        assert beat["shouldCancel"] is True
        assert beat["cancelReason"] == "user_requested"
        done = running.task.post(
            "completed",
            outcome="CANCELLED",
            cancelledDuringPhase="processing",
            partialProgress={"recordsProcessed": 500_000},
        )
        assert done.json()["finalState"] == "CANCELLED"
        assert running.ended()["status"] == "cancelled"
        events = running.events()
        assert '"cancelledDuringPhase":"processing"' in events
        assert '"recordsProcessed":500000' in events

    def test_a_success_during_the_grace_counts(self, make: Make) -> None:
        running = make()
        running.task.start()
        running.cancel()
        assert running.task.post("heartbeat").json()["shouldCancel"] is True
        assert running.task.succeed().json()["finalState"] == "SUCCEEDED"
        assert running.ended()["status"] == "cancelled"

    def test_the_grace_counts_from_the_first_answer(self, make: Make) -> None:
        running = make({"cancelGraceSeconds": 0.3})
        running.task.start()
        running.cancel()
        assert running.task.post("heartbeat").json()["shouldCancel"] is True
        run = running.ended()
        assert run["status"] == "cancelled"
        assert run["nodes"][0]["status"] == "failed"
        assert run["nodes"][0]["error"]["code"] == "CANCEL_TIMEOUT"
        refused(running.task.post("heartbeat"), 410, "task_expired")

    def test_a_repeated_start_of_a_cancelled_attempt_is_told_to_stop(self, make: Make) -> None:
        running = make({"cancelGraceSeconds": 0.3})
        running.task.start()
        running.cancel()
        assert refused(running.task.start(), 409, "task_already_terminal")["state"] == "CANCELLED"
        assert running.ended()["nodes"][0]["error"]["code"] == "CANCEL_TIMEOUT"

    def test_the_timeout_of_the_node_stops_it(self, make: Make) -> None:
        running = make(timeoutSeconds=0.1)
        running.task.start()

        def told() -> dict[str, Any] | None:
            beat: dict[str, Any] = running.task.post("heartbeat").json()
            return beat if beat.get("shouldCancel") else None

        assert running.system.until(told, "the stop")["cancelReason"] == "timeout"
        running.task.post("completed", outcome="CANCELLED")
        assert running.ended()["nodes"][0]["error"]["category"] == "TIMEOUT"


class TestPushes:
    def test_a_push_is_repeated_until_it_is_taken(self, system: System, pool: ForeignPool) -> None:
        pool.answers = [503, 500, 429]
        name = put_pool(system, pool)
        run_id = system.rest.submit(workflow(node(name)))
        task = pool.next()
        assert task.attempt == 1
        assert task.succeed().status_code == 200
        assert system.rest.finished(run_id)["status"] == "succeeded"

    def test_the_query_of_its_url_is_in_no_log(self, system: System, pool: ForeignPool) -> None:
        keyed = ForeignPool(f"{pool.url}?code=canary-0815")
        run_id = system.rest.submit(workflow(node(put_pool(system, keyed))))
        assert pool.next().succeed().status_code == 200
        assert system.rest.finished(run_id)["status"] == "succeeded"
        assert "canary-0815" not in system.scheduler.said()

    def test_a_refusal_is_another_try(self, system: System, pool: ForeignPool) -> None:
        pool.answers = [400]
        name = put_pool(system, pool)
        run_id = system.rest.submit(workflow(node(name)))
        task = pool.next()
        assert task.attempt == 2
        assert task.succeed().status_code == 200
        assert system.rest.finished(run_id)["status"] == "succeeded"

    def test_a_pool_that_refuses_everything(self, system: System, pool: ForeignPool) -> None:
        pool.answers = [404] * 10
        name = put_pool(system, pool)
        run = system.rest.run(workflow(node(name)))
        assert run["status"] == "failed"
        assert run["nodes"][0]["error"]["code"] == "E.DISPATCH.UNAVAILABLE"

    def test_slots_bound_what_is_under_way(self, system: System, pool: ForeignPool) -> None:
        name = put_pool(system, pool, maxParallel=2)
        run_id = system.rest.submit(workflow(*[node(name) for _ in range(5)]))
        system.until(lambda: len(pool.tasks) == 2, "two deliveries")
        assert system.rest.get(f"pools/{name}")["inflight"] == 2
        done = 0
        while done < 5:
            assert pool.next(done).succeed().status_code == 200
            done += 1
        assert system.rest.finished(run_id)["status"] == "succeeded"
        assert len(pool.tasks) == 5

    def test_a_paused_pool_gets_nothing_and_a_busy_one_stays(
        self, system: System, pool: ForeignPool
    ) -> None:
        name = put_pool(system, pool)
        first = system.rest.submit(workflow(node(name)))
        task = pool.next()
        answer = system.rest.http.delete(f"/api/v1/pools/{name}")
        assert answer.status_code == 409
        assert answer.json()["code"] == "E.POOL.BUSY"
        put_pool(system, pool, name, isPaused=True)
        second = system.rest.submit(workflow(node(name)))
        assert task.succeed().status_code == 200
        assert system.rest.finished(first)["status"] == "succeeded"
        waits = system.until(
            lambda: system.rest.nodes(second)["n"]["waitingFor"], "the reason of the wait"
        )
        assert waits["kind"] == "worker"
        put_pool(system, pool, name)
        assert pool.next(1).succeed().status_code == 200
        assert system.rest.finished(second)["status"] == "succeeded"
        assert system.rest.http.delete(f"/api/v1/pools/{name}").status_code == 204
        assert system.rest.http.get(f"/api/v1/pools/{name}").status_code == 404

    def test_downstream_nodes_get_the_output(self, system: System, pool: ForeignPool) -> None:
        name = put_pool(system, pool)
        first = node(name, "core.echo", label="a")
        second = node(name, "core.echo", label="b")
        edge = {
            "source": {"node": first["id"], "port": "value"},
            "target": {"node": second["id"], "port": "value"},
        }
        run_id = system.rest.submit(workflow(first, second, edges=[edge]))
        assert pool.next().succeed(value={"deep": [1]}).status_code == 200
        second_task = pool.next(1)
        assert second_task.envelope["parameters"]["value"] == {"deep": [1]}
        assert second_task.succeed(value=2).status_code == 200
        assert system.rest.finished(run_id)["status"] == "succeeded"


class TestSettings:
    @pytest.mark.parametrize(
        ("change", "pointer"),
        [
            ({"url": "ftp://example.com"}, "/url"),
            ({"url": "http://user:pass@example.com/"}, "/url"),
            ({"url": "http://"}, "/url"),
            ({"heartbeatTimeoutSeconds": 59}, "/heartbeatTimeoutSeconds"),
            ({"heartbeatIntervalSeconds": 0}, "/heartbeatIntervalSeconds"),
            ({"tokenTtlSeconds": 0}, "/tokenTtlSeconds"),
            ({"tokenTtlSeconds": 7_201}, "/tokenTtlSeconds"),
            ({"startTimeoutSeconds": -1}, "/startTimeoutSeconds"),
            ({"packages": []}, "/packages"),
            ({"maxParallel": 0}, "/maxParallel"),
            ({"dispatcher": "pigeon"}, "/dispatcher"),
            ({"dispatcher": "cloud_tasks"}, "/options/queue"),
            ({"dispatcher": "nats"}, "/url"),
            ({"callbackUrl": "nowhere"}, "/callbackUrl"),
        ],
    )
    def test_what_could_not_work_is_refused(
        self, system: System, change: dict[str, Any], pointer: str
    ) -> None:
        body = {"url": "http://127.0.0.1:9/", "packages": [{"name": "core"}], **change}
        answer = system.rest.http.put("/api/v1/pools/bad", json=body)
        assert answer.status_code in (400, 422), answer.text
        assert answer.json()["errors"][0]["pointer"] == pointer
        assert system.rest.http.get("/api/v1/pools/bad").status_code == 404

    @pytest.mark.parametrize("name", ["a b", "x" * 65, ".hidden", "a%2Fb"])
    def test_bad_names(self, system: System, name: str) -> None:
        body = {"url": "http://127.0.0.1:9/", "packages": [{"name": "core"}]}
        assert system.rest.http.put(f"/api/v1/pools/{name}", json=body).status_code in (
            400,
            404,
            422,
        )

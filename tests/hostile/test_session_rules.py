"""What the protocol says about sessions and reports, asked for by a worker that shares no code with the product."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.hostile.foreign import Foreign, echo
from tests.processes.rest import TOKEN
from tests.processes.system import System, running
from tests.rawsocket import CLOSE, TEXT, RawSocket, frame, hello, new_id


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    folder: Path = tmp_path_factory.mktemp("rules")
    with running(folder, heartbeat_ms=20_000) as server:
        yield server


OFFER = {"capabilities": {"concurrency": {"max_parallel": 1}}}


async def told(port: int, *frames: bytes) -> list[tuple[str, Any]]:
    """Send these frames on one connection; what comes until it is closed, or until the session is accepted."""
    socket = await RawSocket.open(port)
    for one in frames:
        socket.send(one)
    got: list[tuple[str, Any]] = []
    while not got or got[-1][0] not in ("close", "control.session.accept"):
        kind, raw = await socket.receive()
        if kind == CLOSE:
            got.append(("close", int.from_bytes(raw[:2], "big")))
        elif kind == TEXT:
            read = json.loads(raw)
            got.append((read["type"], read["payload"]))
    await socket.close()
    return got


async def opening(port: int, name: str, **changed: Any) -> list[tuple[str, Any]]:
    return await told(
        port,
        frame(name, "control.handshake", hello(name, TOKEN, **changed)),
        frame(name, "control.register", OFFER),
    )


def assert_denied(got: list[tuple[str, Any]], code: str = "E.SESSION.DENIED") -> None:
    (kind, reset), closed = got[-2:]
    assert (kind, reset.get("code"), closed) == ("control.reset", code, ("close", 1008)), got


def claims_of(token: str) -> dict[str, Any]:
    body = token.split(".")[1]
    return dict(json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4))))


# --- tokens of a session ---


async def test_each_session_token_is_one_of_its_own(server: System) -> None:
    tokens = []
    async with Foreign(server.port, "tokens") as worker:
        await worker.enter()
        tokens.append(worker.accepts[0]["session_token"])
        for _ in range(3):
            resume = {
                "session_id": worker.accepts[0]["session_id"],
                "session_token": tokens[-1],
                "last_seen_seq": None,
            }
            answer = await told(server.port, frame("tokens", "control.resume", resume))
            assert answer[-1][0] == "control.session.accept", answer
            tokens.append(answer[-1][1]["session_token"])
    assert len(set(tokens)) == 4
    assert len({claims_of(token)["jti"] for token in tokens}) == 4


# --- the opening ---


@pytest.mark.parametrize("name", ["a/b", "a b", "..%2f", "ü", "x" * 129, "a\nb", "a?b"])
async def test_an_instance_id_that_no_path_can_hold_is_refused(server: System, name: str) -> None:
    got = await opening(server.port, name)
    assert_denied(got)
    assert "opening" not in got[-2][1]["reason"], "it was told at once"


async def test_an_instance_id_may_use_all_that_is_allowed(server: System) -> None:
    name = "A-z.0_9:" + "x" * 120
    got = await opening(server.port, name)
    assert got[-1][0] == "control.session.accept", got
    assert server.rest.get(f"workers/{name}")["workerId"] == name


async def test_a_lower_incarnation_is_refused_also_after_a_restart(tmp_path: Path) -> None:
    with running(tmp_path, heartbeat_ms=1000) as server:
        higher = await opening(server.port, "clone", incarnation=7)
        assert higher[-1][0] == "control.session.accept"
        assert_denied(await opening(server.port, "clone", incarnation=6))
        server.restart()
        assert_denied(await opening(server.port, "clone", incarnation=6))
        higher = await opening(server.port, "clone", incarnation=7)
        assert higher[-1][0] == "control.session.accept"


@pytest.mark.parametrize(
    "second",
    [
        ("control.handshake", hello("twice", TOKEN)),
        ("control.heartbeat", {"attempts": []}),
    ],
)
async def test_what_comes_too_early_ends_the_session(
    server: System, second: tuple[str, Any]
) -> None:
    assert_denied(
        await told(
            server.port,
            frame("twice", "control.handshake", hello("twice", TOKEN)),
            frame("twice", *second),
        )
    )


async def test_a_second_register_before_the_accept_ends_the_session(server: System) -> None:
    got = await told(
        server.port,
        frame("again", "control.handshake", hello("again", TOKEN)),
        frame("again", "control.register", OFFER),
        frame("again", "control.register", OFFER),
    )
    assert_denied(got)


# --- frames ---


async def test_a_key_that_stands_twice_is_refused_everywhere(server: System) -> None:
    async with Foreign(server.port, "keys") as worker:
        await worker.enter()
        text = frame("keys", "biz.pkg.event", {}, seq=0)
        worker.send_raw(text.replace(b'"seq": 0', b'"seq": 0, "seq": 0'))
        while await worker.step() is not None:
            pass
        assert [one["code"] for one in worker.errors] == ["E.PROTOCOL.BAD_FRAME"]
        await worker.enter()
        worker.errors.clear()
        event = {"name": "p", "version": "1.0.0", "status": "failed", "details": {"k": 1}}
        for there, twice in ((b'"name": "p"', b'"name": "p", "name": "p"'),
                             (b'{"k": 1}', b'{"k": 1, "k": 1}')):  # fmt: skip
            text = frame("keys", "biz.pkg.event", event, seq=worker.seq)
            assert there in text
            worker.send_raw(text.replace(there, twice))
            worker.seq += 1
        await worker.until(lambda: worker.acked == 1)
        assert [one["code"] for one in worker.errors] == ["E.PROTOCOL.BAD_PAYLOAD"] * 2
        assert len(worker.accepts) == 2


# --- reports ---


async def run_through(server: System, name: str, before: Any) -> tuple[dict[str, Any], Foreign]:
    """A run of one node on one foreign worker, which says `before(dispatch)` ahead of its good result."""
    async with Foreign(server.port, name) as worker:
        await worker.enter()

        def answer(dispatch: dict[str, Any]) -> dict[str, Any]:
            for kind, payload in before(dispatch):
                worker.tell(kind, payload, dispatch["task_id"])
            named = {key: dispatch[key] for key in ("run_id", "task_id", "attempt")}
            return {**named, "status": "SUCCEEDED", "result": {"value": 1}}

        worker.answer = answer
        run_id = await asyncio.to_thread(server.rest.submit, echo())
        await worker.until(lambda: worker.done == 1)
        await worker.until_acked()
        return await asyncio.to_thread(server.rest.get, f"runs/{run_id}"), worker


def audits(server: System, action: str) -> list[dict[str, Any]]:
    return [row for row in server.rest.get("audit?limit=200")["items"] if row["action"] == action]


async def test_a_bad_feedback_costs_its_attempt_nothing(server: System) -> None:
    def before(dispatch: dict[str, Any]) -> list[tuple[str, Any]]:
        named = {key: dispatch[key] for key in ("run_id", "task_id", "attempt")}
        return [("biz.exec.feedback", {**named, "progress": 17})]

    run, worker = await run_through(server, "feedback", before)
    assert run["status"] == "succeeded", run
    assert [one["code"] for one in worker.errors] == ["E.PROTOCOL.BAD_PAYLOAD"]


async def test_a_report_under_another_run_is_one_of_an_unknown_task(server: System) -> None:
    def before(dispatch: dict[str, Any]) -> list[tuple[str, Any]]:
        named = {"run_id": "another", "task_id": dispatch["task_id"], "attempt": 1}
        return [("biz.exec.result", {**named, "status": "FAILED"})]

    run, worker = await run_through(server, "other-run", before)
    assert run["status"] == "succeeded", run
    assert worker.errors == []
    assert [row["who"] for row in audits(server, "report.foreign")]


async def test_unknown_and_foreign_reports_are_audited_alike(server: System) -> None:
    async with Foreign(server.port, "owner") as owner, Foreign(server.port, "thief") as thief:
        await owner.enter()
        await thief.enter(register={"packages": []})
        seen: list[dict[str, Any]] = []
        owner.answer = lambda dispatch: seen.append(dispatch) or {}  # type: ignore[func-returns-value]
        run_id = await asyncio.to_thread(server.rest.submit, echo())
        await owner.until(lambda: bool(seen))
        named = {key: seen[0][key] for key in ("run_id", "task_id", "attempt")}
        reports: list[tuple[str, dict[str, Any]]] = [
            ("biz.exec.result", {**named, "status": "SUCCEEDED"}),
            (
                "biz.exec.result",
                {"run_id": "r", "task_id": "r.0", "attempt": 1, "status": "FAILED"},
            ),
            ("biz.exec.feedback", {**named, "message": "m"}),
            ("biz.exec.error", {**named, "code": "E.X"}),
            ("biz.exec.next.request", {**named, "request_id": "q", "chain_index": 0}),
        ]
        for kind, payload in reports:
            thief.tell(kind, payload, payload["task_id"])
        await thief.until_acked()
        assert thief.errors == []
        assert await asyncio.to_thread(server.rest.run_status, run_id) == "running"
    rows = [row for row in audits(server, "report.foreign") if row["detail"]["worker"] == "thief"]
    assert len(rows) == 5, rows
    assert {row["code"] for row in rows} == {"E.TASK.UNKNOWN"}


async def test_an_inline_artifact_above_the_limit_fails_its_attempt(server: System) -> None:
    async with Foreign(server.port, "inline") as worker:
        await worker.enter()

        def answer(dispatch: dict[str, Any]) -> dict[str, Any]:
            named = {key: dispatch[key] for key in ("run_id", "task_id", "attempt")}
            artifact = {
                "resource_id": "big", "worker_id": "inline", "type": "file", "inline": True,
                "metadata": {"data": "x" * 3 * 1024**2},
            }  # fmt: skip
            return {**named, "status": "SUCCEEDED", "artifacts": [artifact]}

        worker.answer = answer
        run_id = await asyncio.to_thread(server.rest.submit, echo())
        await worker.until(lambda: worker.done == 1)
        await worker.until_acked()
        run = await asyncio.to_thread(server.rest.get, f"runs/{run_id}")
    assert run["status"] == "failed", run
    assert run["error"]["code"] == "E.ARTIFACT.INLINE_LIMIT", run


# --- heartbeats ---


async def test_a_worker_that_is_not_healthy_gets_nothing_new_until_it_is(server: System) -> None:
    async with Foreign(server.port, "ill") as ill:
        await ill.enter()
        ill.say("control.heartbeat", {"attempts": [], "healthy": False})
        await asyncio.to_thread(
            server.until, lambda: server.rest.worker("ill")["status"] == "degraded"
        )
        run_id = await asyncio.to_thread(server.rest.submit, echo())
        ill.tell("biz.pkg.event", {"name": "p", "version": "1.0.0", "status": "failed"})
        await ill.until_acked()
        assert ill.done == 0
        ill.say("control.heartbeat", {"attempts": []})
        await ill.until(lambda: ill.done == 1)
        await ill.until_acked()
        assert await asyncio.to_thread(server.rest.run_status, run_id) == "succeeded"


# --- bundles ---


def bundle(name: str, *payloads: Any, seq: int = 0, kind: str = "biz.exec.feedback") -> bytes:
    head = json.loads(frame(name, kind, {}, seq=seq))
    common = {key: head[key] for key in ("type", "ts", "tenant", "sender", "seq")}
    return json.dumps([common, *([new_id(), None, one] for one in payloads)]).encode()


UNKNOWN = {"run_id": "r", "task_id": "r.0", "attempt": 1, "progress": 0.5}
OFFERS_BUNDLES = {
    "capabilities": {"concurrency": {"max_parallel": 1}, "features": ["frames.bundled", "new"]}
}


async def test_frames_of_a_bundle_are_acknowledged_and_refused_one_by_one(server: System) -> None:
    async with Foreign(server.port, "bundles") as worker:
        await worker.enter(register=OFFERS_BUNDLES)
        assert worker.accepts[-1]["features"] == ["frames.bundled"]
        bad = {**UNKNOWN, "attempt": 0}
        worker.send_raw(bundle("bundles", UNKNOWN, bad, UNKNOWN))
        await worker.until(lambda: worker.acked == 2)
        assert [(one["code"], one["pointer"]) for one in worker.errors] == [
            ("E.PROTOCOL.BAD_PAYLOAD", "/payload/attempt")
        ]
        worker.send_raw(bundle("bundles", UNKNOWN, UNKNOWN, seq=2))  # the first of them came before
        await worker.until(lambda: worker.acked == 3)


async def test_a_worker_that_does_not_offer_bundles_has_none(server: System) -> None:
    async with Foreign(server.port, "plain") as worker:
        await worker.enter()
        assert worker.accepts[-1]["features"] == []


async def test_a_bundle_before_the_handshake_ends_the_connection(server: System) -> None:
    assert_denied(await told(server.port, bundle("early", UNKNOWN, UNKNOWN)))


async def test_a_bundle_in_the_name_of_another_worker_ends_the_session(server: System) -> None:
    async with Foreign(server.port, "liar") as worker:
        await worker.enter(register=OFFERS_BUNDLES)
        worker.send_raw(bundle("another", UNKNOWN, UNKNOWN))
        await worker.until(lambda: bool(worker.errors))
        assert worker.errors[0]["code"] == "E.SESSION.DENIED"

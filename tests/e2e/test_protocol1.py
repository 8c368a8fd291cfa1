"""Protocol 1 against a real scheduler, by a worker that was written from the text of the protocol."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.definitions import link, node, workflow
from tests.e2e.old_worker import OldWorker, envelope, greeting
from tests.hostile.foreign import Flood, echo, working
from tests.processes.system import System, running
from tests.processes.waiting import until
from tests.rawsocket import BINARY, RawSocket, masked


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    with running(tmp_path_factory.mktemp("old"), heartbeat_ms=20_000) as server:
        yield server


async def in_thread(what: Any, *given: Any, **named: Any) -> Any:
    """Ask REST without stopping the worker of the test."""
    return await asyncio.to_thread(what, *given, **named)


async def leave(worker: OldWorker) -> None:
    """Let nothing more come to a worker of the shared scheduler."""
    await worker.until_acked(worker.beat(draining=True))
    await worker.close()


def chain() -> dict[str, Any]:
    first = node("core.echo", "first", parameters={"value": 1})
    second = node("core.echo", "second", parameters={"value": 2})
    return workflow(first, second, edges=[link(first, second)])


# --- the exchange of the text ---


@pytest.mark.parametrize("subprotocol", ["astraflow.v1", None, "other, astraflow.v1"])
async def test_the_exchange_of_the_text(server: System, subprotocol: str | None) -> None:
    async with OldWorker(server.port, "exchange", subprotocol) as worker:
        await worker.enter()
        assert worker.socket is not None
        wanted = None if subprotocol is None else "astraflow.v1"
        assert worker.socket.headers.get("sec-websocket-protocol") == wanted
        shown = await in_thread(server.rest.worker, "exchange")
        assert (shown["status"], shown["maxParallel"]) == ("online", 4)
        run = await in_thread(server.rest.submit, echo("hello"))
        command = await worker.next("cmd.dispatch")
        given = command["payload"]
        assert (command["seq"], command["corr"]) == (1, given["task_id"])
        assert command["ack"] == {"request": True}
        assert given["run_id"] == run
        assert given["parameters"] == {"value": "hello"}
        assert given["constraints"]["timeout_ms"] == 3_600_000
        assert not {"attempt", "lease", "failures"} & set(given)
        await worker.until_acked(worker.report(command))
        view = await in_thread(server.rest.finished, run)
        assert view["status"] == "succeeded"
        await worker.until_acked(worker.beat())
        await leave(worker)


async def test_items_of_a_map_are_tasks_as_any_other(server: System) -> None:
    mapped = node("core.echo", "map", parameters={"value": "=item"}, map={"over": "=range(9)"})
    async with OldWorker(server.port, "items") as worker:
        await worker.enter()
        run = await in_thread(server.rest.submit, workflow(mapped))
        for _ in range(9):
            command = await worker.next("cmd.dispatch")
            given = command["payload"]
            assert (given["node_id"], command["corr"]) == (mapped["id"], given["task_id"])
            await worker.until_acked(worker.report(command, given["parameters"]))
        view = await in_thread(server.rest.finished, run)
        assert view["nodes"][0]["result"]["items"] == [{"value": n} for n in range(9)]
        await leave(worker)


async def test_ids_may_be_any_text_and_names_any_sender(server: System) -> None:
    async with OldWorker(server.port, "büro 7/worker") as worker:
        await worker.connect()
        worker.say("handshake", greeting(), id="handshake#1", ack={"request": True})
        await worker.until_acked("handshake#1")
        offer = {"packages": [{"name": "core", "version": "1.0.0", "status": "installed"}]}
        worker.say("register", offer, id="register#1")
        await worker.until_acked("register#1")
        (shown,) = [
            one for one in await in_thread(server.rest.online) if one["name"] == worker.name
        ]
        assert shown["workerId"].startswith("v1:")
        run = await in_thread(server.rest.submit, echo())
        worker.report(await worker.next("cmd.dispatch"), id="result#1")
        await worker.until_acked("result#1")
        assert (await in_thread(server.rest.finished, run))["status"] == "succeeded"
        await leave(worker)


async def test_everything_may_be_sent_without_waiting_for_acks(server: System) -> None:
    async with OldWorker(server.port, "hasty") as worker:
        await worker.connect()
        worker.say("handshake", greeting(worker_name="shown", worker_id="hasty"))
        offer = {"packages": [{"name": "core", "version": "1.0.0"}]}
        sent = [worker.say("register", offer), worker.beat(), worker.beat()]
        for one in sent:
            await worker.until_acked(one)
        assert (await in_thread(server.rest.worker, "hasty"))["name"] == "shown"
        await worker.close()


# --- seq: counts, gaps, duplicates ---


async def test_seq_counts_by_run_and_starts_anew_on_a_connection(server: System) -> None:
    async with OldWorker(server.port, "counting") as worker:
        await worker.enter()
        for _ in range(2):
            run = await in_thread(server.rest.submit, chain())
            for number in (1, 2):
                command = await worker.next("cmd.dispatch")
                assert (command["payload"]["run_id"], command["seq"]) == (run, number)
                worker.report(command)
            assert (await in_thread(server.rest.finished, run))["status"] == "succeeded"
        await leave(worker)


async def test_a_gap_is_refused_and_the_right_number_is_taken(server: System) -> None:
    async with OldWorker(server.port, "gaps") as worker:
        await worker.enter()
        run = await in_thread(server.rest.submit, echo())
        command = await worker.next("cmd.dispatch")
        wrong = worker.report(command, seq=command["seq"] + 1)
        error = await worker.next("error")
        assert error["payload"]["code"] == "E.RESULT.SEQ_GAP"
        assert error["payload"]["for"] == wrong
        assert await in_thread(server.rest.run_status, run) == "running"
        await worker.until_acked(worker.report(command))
        assert (await in_thread(server.rest.finished, run))["status"] == "succeeded"
        await leave(worker)


async def test_the_first_result_counts_and_duplicates_are_acked(server: System) -> None:
    async with OldWorker(server.port, "twice") as worker:
        await worker.enter()
        run = await in_thread(server.rest.submit, echo())
        command = await worker.next("cmd.dispatch")
        first = worker.report(command, {"value": "first"})
        again = [worker.report(command, {"value": "second"}) for _ in range(3)]
        worker.report(command, {"value": "first"}, id=first)
        for one in [first, *again]:
            await worker.until_acked(one)
        view = await in_thread(server.rest.finished, run)
        assert view["status"] == "succeeded"
        shown = await in_thread(server.rest.get, f"runs/{run}/nodes/{view['nodes'][0]['nodeId']}")
        assert "first" in json.dumps(shown) and "second" not in json.dumps(shown)
        await leave(worker)


# --- acks and retries ---


async def test_an_unacknowledged_dispatch_is_sent_again_with_the_same_id(server: System) -> None:
    async with OldWorker(server.port, "slow-acks") as worker:
        await worker.enter()
        worker.acks_commands = False
        run = await in_thread(server.rest.submit, echo())
        commands = [await worker.next("cmd.dispatch") for _ in range(3)]
        assert len({(one["id"], one["seq"]) for one in commands}) == 1
        worker.say("ack", {"for": commands[0]["id"]})
        await worker.until_acked(worker.beat())
        run_view = await in_thread(server.rest.get, f"runs/{run}")
        assert run_view["status"] == "running"
        await worker.until_acked(worker.report(commands[0]))
        assert (await in_thread(server.rest.finished, run))["status"] == "succeeded"
        await leave(worker)


async def test_a_dispatch_that_is_never_acked_is_withdrawn_and_given_again(tmp_path: Path) -> None:
    with running(tmp_path, heartbeat_ms=1000) as server:
        async with OldWorker(server.port, "deaf") as worker:
            await worker.enter()
            worker.acks_commands = False
            run = await in_thread(server.rest.submit, echo())
            first = await worker.next("cmd.dispatch")

            async def beat_on() -> None:
                while True:
                    worker.beat()
                    await asyncio.sleep(0.3)

            beating = asyncio.create_task(beat_on())
            other = await worker.find(
                lambda one: one["type"] == "cmd.dispatch" and one["id"] != first["id"], "another"
            )
            assert other["seq"] == first["seq"] + 1
            assert other["corr"] == first["corr"]
            worker.say("ack", {"for": other["id"]})
            await worker.until_acked(worker.report(other))
            beating.cancel()
            assert (await in_thread(server.rest.finished, run))["status"] == "succeeded"


@pytest.mark.parametrize("how", ["command.error", "error", "ack", "ack-code"])
async def test_a_refused_dispatch_is_tried_again(server: System, how: str) -> None:
    async with OldWorker(server.port, f"refusing-{how}") as worker:
        await worker.enter()
        worker.acks_commands = False
        run = await in_thread(server.rest.submit, echo())
        command = await worker.next("cmd.dispatch")
        busy = {"code": "E.DISPATCH.OVERLOADED", "message": "busy"}
        corr = command["corr"]
        if how == "command.error":
            worker.say("ack", {"for": command["id"]})
            named = {"run_id": run, "task_id": corr}
            worker.say("command.error", {**named, **busy}, corr=corr, seq=command["seq"])
        elif how == "error":
            worker.say("error", {"for": command["id"], **busy})
        elif how == "ack":
            worker.say("ack", {"for": command["id"], "ok": False, "error": busy})
        else:
            worker.say("ack", {"for": command["id"], "error": "E.DISPATCH.OVERLOADED"})
        again = await worker.find(
            lambda one: one["type"] == "cmd.dispatch" and one["id"] != command["id"], "another"
        )
        assert again["seq"] == 2
        worker.acks_commands = True
        worker.say("ack", {"for": again["id"]})
        worker.report(again)
        assert (await in_thread(server.rest.finished, run))["status"] == "succeeded"
        await leave(worker)


# --- reports and commands ---


async def test_feedback_reaches_the_events_of_the_run(server: System) -> None:
    async with OldWorker(server.port, "telling") as worker:
        await worker.enter()
        run = await in_thread(server.rest.submit, echo())
        command = await worker.next("cmd.dispatch")
        said = {
            "run_id": run,
            "task_id": command["corr"],
            "stage": "running",
            "progress": 0.5,
            "message": "half of it",
            "chunks": [{"channel": "stdout", "index": 0, "text": "a line\n"}],
        }
        asked = worker.say("feedback", said, corr=command["corr"], ack={"request": True})
        await worker.until_acked(asked)
        unasked = worker.say("feedback", {**said, "message": "more"}, corr=command["corr"])
        await worker.until_acked(worker.report(command))
        acked = [one["payload"]["for"] for one in worker.frames if one["type"] == "ack"]
        assert unasked not in acked
        await in_thread(server.rest.finished, run)
        assert "a line" in json.dumps(await in_thread(server.rest.get, f"runs/{run}/logs"))
        await leave(worker)


async def test_what_is_optional_may_be_null_or_left_out(server: System) -> None:
    """As a worker writes frames that has no more than the text of protocol 1."""
    async with OldWorker(server.port, "büro 8/sparse") as worker:
        await worker.connect()
        blank = {"corr": None, "seq": None, "flags": None, "ack": {"request": True}}
        hello = worker.say("handshake", greeting(worker=None, worker_name=None), **blank)
        await worker.until_acked(hello)
        offer = {"packages": [{"name": "core", "version": "1.0.0", "manifest_sha256": None}]}
        more = {"capabilities": {"concurrency": None, "features": None}, "labels": None}
        await worker.until_acked(worker.say("register", {**offer, **more}, **blank))
        beat = {"healthy": True, "metrics": {"cpu_pct": None}, "packages": None}
        await worker.until_acked(worker.say("heartbeat", beat, **blank))
        run = await in_thread(server.rest.submit, echo())
        command = await worker.next("cmd.dispatch")
        chunks = [{"channel": "log", "text": text, "metadata": None} for text in ("one\n", "two\n")]
        said = {"progress": None, "chunks": chunks, "metrics": None}
        asked = worker.say("feedback", said, corr=command["corr"], ack={"request": True})
        await worker.until_acked(asked)
        kept = {"resource_id": "kept", "worker_id": worker.name, "type": "file", "inline": None}
        numbered = {"corr": command["corr"], "seq": command["seq"]}
        done = {"status": "SUCCEEDED", "result": {"a": None}, "artifacts": [kept], "error": None}
        await worker.until_acked(worker.say("result", done, **numbered))
        ended = await in_thread(server.rest.finished, run)
        assert (ended["status"], ended["nodes"][0]["result"]) == ("succeeded", {"a": None})
        (artifact,) = ended["nodes"][0]["artifacts"]
        assert artifact["resourceId"] == "kept"
        logs = json.dumps(await in_thread(server.rest.get, f"runs/{run}/logs"))
        assert "one" in logs and "two" in logs
        run = await in_thread(server.rest.submit, echo())
        command = await worker.next("cmd.dispatch")
        broken = {"status": "FAILED", "result": None, "error": {"code": "E.MINE", "message": "m"}}
        numbered = {"corr": command["corr"], "seq": command["seq"]}
        await worker.until_acked(worker.say("result", broken, **numbered))
        failed = (await in_thread(server.rest.finished, run))["nodes"][0]["error"]
        assert (failed["code"], failed["category"]) == ("E.MINE", "USER_CODE")
        assert not [one for one in worker.frames if one["type"] == "error"]
        await leave(worker)


async def test_a_failure_and_a_bad_result_fail_the_node(server: System) -> None:
    async with OldWorker(server.port, "failing") as worker:
        await worker.enter()
        error = {"code": "E.MINE", "category": "DATA_QUALITY", "message": "not mine"}
        for payload in ({"status": "FAILED", "error": error}, {"status": "MAYBE"}):
            run = await in_thread(server.rest.submit, echo())
            command = await worker.next("cmd.dispatch")
            named = {"run_id": run, "task_id": command["corr"]}
            numbered = {"corr": command["corr"], "seq": command["seq"]}
            await worker.until_acked(worker.say("result", {**named, **payload}, **numbered))
            assert (await in_thread(server.rest.finished, run))["status"] == "failed"
        codes = [one["payload"]["code"] for one in worker.frames if one["type"] == "error"]
        assert codes == ["E.PROTOCOL.BAD_PAYLOAD"]
        await leave(worker)


async def test_drain_takes_new_work_away_and_a_register_brings_it_back(server: System) -> None:
    async with OldWorker(server.port, "draining") as worker:
        await worker.enter()
        body = {"type": "drain", "reason": "enough"}
        await in_thread(server.rest.post, "workers/draining/commands", body)
        command = await worker.next("cmd.drain")
        assert command["payload"]["reason"] == "enough"
        await worker.until_acked(worker.beat(draining=True))
        assert (await in_thread(server.rest.worker, "draining"))["status"] == "draining"
        await worker.close()


async def test_packages_are_installed_and_reported(tmp_path: Path) -> None:
    with running(tmp_path, heartbeat_ms=5000) as server:
        name, version = _some_package(server)
        async with OldWorker(server.port, "packages") as worker:
            await worker.enter(capabilities={"features": ["pkg.install"]})
            body = {"type": "pkg.install", "name": name, "version": version}
            await in_thread(server.rest.post, "workers/packages/commands", body)
            command = await worker.next("pkg.install")
            given = command["payload"]
            assert (given["name"], given["version"]) == (name, version)
            assert given["url"] and given["sha256"]
            done = {"name": name, "version": version, "status": "installed"}
            await worker.until_acked(worker.say("pkg.event", done))
            worker.say("register", {"packages": [{"name": name, "version": version}]})
            shown = await in_thread(
                until, lambda: _installed(server.rest.worker("packages"), name), "the package"
            )
            assert shown
            body["type"] = "pkg.uninstall"
            await in_thread(server.rest.post, "workers/packages/commands", body)
            assert (await worker.next("pkg.uninstall"))["payload"]["name"] == name


def _some_package(server: System) -> tuple[str, str]:
    for package in server.rest.get("packages")["items"]:
        versions = server.rest.get(f"packages/{package['name']}")["versions"]
        return str(package["name"]), str(versions[0]["version"])
    raise AssertionError("no package is published")


def _installed(worker: dict[str, Any], name: str) -> bool:
    return any(one["name"] == name and one["status"] == "installed" for one in worker["packages"])


# --- reconnecting ---


async def test_a_new_connection_rebinds_what_the_worker_has(server: System) -> None:
    async with OldWorker(server.port, "back") as worker:
        await worker.enter()
        run = await in_thread(server.rest.submit, chain())
        worker.report(await worker.next("cmd.dispatch"))
        command = await worker.next("cmd.dispatch")
        assert command["seq"] == 2
        await worker.until_acked(worker.beat())
        await worker.enter()
        await worker.until_acked(worker.report(command))
        view = await in_thread(server.rest.finished, run)
        assert view["status"] == "succeeded"
        assert [one["attempt"] for one in view["nodes"]] == [1, 1]
        await leave(worker)


async def test_a_register_that_names_its_tasks_gives_up_the_others(server: System) -> None:
    async with OldWorker(server.port, "restarted") as worker:
        await worker.enter()
        run = await in_thread(server.rest.submit, echo())
        first = await worker.next("cmd.dispatch")
        await worker.until_acked(worker.beat())
        await worker.enter(inflight=[])
        again = await worker.next("cmd.dispatch")
        assert again["id"] != first["id"]
        worker.report(again)
        assert (await in_thread(server.rest.finished, run))["status"] == "succeeded"
        await leave(worker)


async def test_work_goes_on_after_the_scheduler_was_killed(tmp_path: Path) -> None:
    with running(tmp_path, heartbeat_ms=1000) as server:
        async with OldWorker(server.port, "survivor") as worker:
            await worker.enter()
            run = await in_thread(server.rest.submit, chain())
            command = await worker.next("cmd.dispatch")
            await worker.until_acked(worker.beat())
            server.restart()  # from this thread: a child ends with the one that made it
            await worker.enter()
            result = worker.report(command, id="the result")
            await worker.until_acked(result)
            second = await worker.next("cmd.dispatch")
            server.restart()  # from this thread: a child ends with the one that made it
            await worker.enter()
            worker.report(command, id="the result")  # it may be unsure that it was taken
            worker.report(second)
            view = await in_thread(server.rest.finished, run)
            assert view["status"] == "succeeded"
            assert view["nodes"][0]["attempt"] == 1


async def test_a_second_connection_takes_over(server: System) -> None:
    async with OldWorker(server.port, "one") as first, OldWorker(server.port, "one") as second:
        await first.enter()
        await second.enter()
        told = await first.until_closed()
        assert told[-1]["payload"]["code"] == "E.SESSION.STALE_BINDING"
        await second.close()


# --- both protocols in one run ---


async def test_both_protocols_execute_halves_of_one_workflow(tmp_path: Path) -> None:
    nodes = [node("core.echo", f"n{number}", parameters={"value": number}) for number in range(16)]
    last = node("core.echo", "last", parameters={"value": "end"})
    edges = [link(one, last) for one in nodes]
    with running(tmp_path, heartbeat_ms=1000) as server:
        async with OldWorker(server.port, "old") as old, working(server.port, "new") as new:
            await old.enter(capabilities={"concurrency": {"max_parallel": 1}})
            at_work = asyncio.create_task(old.work())
            run = await in_thread(server.rest.submit, workflow(*nodes, last, edges=edges))
            view = await in_thread(server.rest.finished, run)
            at_work.cancel()
            assert view["status"] == "succeeded"
            done = [one["workerId"] for one in view["nodes"]]
            assert set(done) == {"old", "new"}, done
            assert new.done == done.count("new")


# --- who is refused ---


async def refused(server: System, *frames: dict[str, Any] | bytes, opcode: int = 1) -> Any:
    """The last `error` of a connection that sends these, and the code it is closed with."""
    socket = await RawSocket.open(server.port, subprotocol="astraflow.v1")
    for one in frames:
        socket.send(one if isinstance(one, bytes) else json.dumps(one).encode(), opcode)
    got, closed = await socket.until_close()
    await socket.close()
    assert got[-1]["type"] == "error", got
    return got[-1]["payload"]["code"], closed


async def test_a_bad_token_is_told_and_closed(server: System) -> None:
    bad = greeting(auth={"mode": "token", "token": "wrong"})
    assert await refused(server, envelope("w", "handshake", bad)) == ("E.AUTH.INVALID_TOKEN", 1008)
    none = {"protocol": 1, "auth": {"mode": "token"}}
    assert await refused(server, envelope("w", "handshake", none)) == ("E.AUTH.INVALID_TOKEN", 1008)


@pytest.mark.parametrize(
    "first",
    [
        envelope("w", "result", {"task_id": "t", "status": "SUCCEEDED"}, corr="t", seq=1),
        envelope("w", "register", {}),
        envelope("w", "heartbeat", {}),
        envelope("w", "handshake", greeting(protocol=3)),
        envelope("w", "handshake", {"protocol": 1}),
        envelope("w", "handshake", greeting(), sender={"role": "scheduler", "id": "w"}),
        envelope("w", "control.handshake", greeting()),
        envelope("w", "what.is.this", {}),
    ],
)
async def test_what_may_not_come_first_is_denied(server: System, first: dict[str, Any]) -> None:
    assert await refused(server, first) == ("E.SESSION.DENIED", 1008)


@pytest.mark.parametrize(
    "changed",
    [{"tenant": "other"}, {"sender": {"role": "worker", "id": "somebody"}}],
)
async def test_a_frame_of_another_tenant_or_sender_is_denied(
    server: System, changed: dict[str, Any]
) -> None:
    frames = [
        envelope("mine", "handshake", greeting()),
        envelope("mine", "register", {}),
        envelope("mine", "heartbeat", {}, **changed),
    ]
    assert await refused(server, *frames) == ("E.SESSION.DENIED", 1008)


@pytest.mark.parametrize(
    ("raw", "code"),
    [
        (b"not json", 1007),
        (b"[]", 1002),
        (b'{"type":"handshake"}', 1002),
        (b'{"type":"handshake","type":"handshake"}', 1002),
        (b'{"a":' * 70 + b"1" + b"}" * 70, 1007),
        (b'"' + b"x" * 70_000 + b'"', 1009),
        (json.dumps(envelope("w", "handshake", greeting(), ts="yesterday")).encode(), 1002),
    ],
)
async def test_a_bad_frame_ends_the_connection(server: System, raw: bytes, code: int) -> None:
    assert await refused(server, raw) == ("E.PROTOCOL.BAD_FRAME", code)


async def test_a_binary_message_ends_the_connection(server: System) -> None:
    code, _ = await refused(server, b"\x00", opcode=BINARY)
    assert code == "E.PROTOCOL.BAD_FRAME"


async def test_unknown_types_and_acks_of_nothing_end_no_session(server: System) -> None:
    async with OldWorker(server.port, "odd") as worker:
        await worker.enter()
        for kind in ("what.is.this", "biz.exec.result", "control.resume", "cmd.dispatch"):
            sent = worker.say(kind, {})
            error = await worker.next("error")
            assert (error["payload"]["code"], error["payload"]["for"]) == ("E.CMD.UNKNOWN", sent)
            assert kind in error["payload"]["message"]
        worker.say("ack", {"for": "never sent"})
        worker.say("ack", {})
        assert (await worker.next("error"))["payload"]["code"] == "E.PROTOCOL.BAD_PAYLOAD"
        await worker.until_acked(worker.beat())
        foreign = {"run_id": "r", "task_id": "not mine", "status": "SUCCEEDED"}
        await worker.until_acked(worker.say("result", foreign, corr="not mine", seq=1))
        await worker.close()


async def test_rubbish_without_end_ends_the_session(server: System) -> None:
    async with OldWorker(server.port, "rubbish") as worker:
        await worker.enter()
        for _ in range(50):
            worker.say("rubbish", {})
        told = await worker.until_closed()
        assert told[-1]["payload"]["code"] == "E.SESSION.DENIED"
        assert worker.closed_with == 1008


def test_a_worker_that_does_not_read_is_owed_nothing(tmp_path: Path) -> None:
    """It asks for an answer to each frame and reads none: what is kept for it is bounded, it is put out, and nobody
    else waits for it."""
    opening = [envelope("deaf", "handshake", greeting()), envelope("deaf", "register", {})]
    beats = masked(json.dumps(envelope("deaf", "heartbeat", {}, ack={"request": True})).encode())
    with running(tmp_path, 1, heartbeat_ms=1000) as server:
        flood = Flood(server.port)
        try:
            raw = b"".join(masked(json.dumps(one).encode()) for one in opening)
            assert flood.pour(raw, len(raw))
            until(lambda: any(one["name"] == "deaf" for one in server.rest.online()), "it is in")
            before_mib = server.scheduler.rss_mib
            flood.pour(beats * 1000, 256 * 1024**2)
            assert server.scheduler.rss_mib < before_mib + 64
            until(lambda: all(one["name"] != "deaf" for one in server.rest.online()), "it is out")
            assert server.rest.run(echo())["status"] == "succeeded"
        finally:
            flood.close()

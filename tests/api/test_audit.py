"""The audit over REST: filters, the export, and the verification of its chain."""

from __future__ import annotations

import asyncio
import json
import socket
from hashlib import sha256
from typing import Any

import pytest

from astraflow.core.security.policy import Role
from astraflow.core.timestamps import parse_iso
from astraflow.scheduler.audits import PIECE, READS_BURST
from tests.api.rig import Rig, problem_of, serving
from tests.api.scripted import token_of
from tests.processes.waiting import until_seen

AUDIT = "/api/v1/audit"
ZEROS = "0" * 64


async def make_entries(rig: Rig) -> None:
    for label in ("a", "b", "c"):
        made = await rig.post("/api/v1/tokens", json={"label": label})
        assert made.status_code == 201, made.text
    async with rig.worker():
        order = {"type": "drain"}
        answer = await rig.post("/api/v1/workers/w1/commands", json=order)
        assert answer.status_code < 300, answer.text
    refused = await rig.as_(Role.VIEWER, "POST", "/api/v1/workers/w1/commands", json=order)
    assert refused.status_code == 403


async def items(rig: Rig, query: str = "") -> list[dict[str, Any]]:
    answer = await rig.get(f"{AUDIT}?{query}")
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()["items"]
    return found


async def verified(rig: Rig, expect: str = "") -> dict[str, Any]:
    answer = await rig.get(f"{AUDIT}/verify" + (f"?expect={expect}" if expect else ""))
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def tamper(rig: Rig, *orders: str) -> None:
    """What somebody can do who can write the database."""
    connection = rig.scheduler.audits._store.database.writer.connection
    for order in orders:
        connection.execute(order)


async def test_entries_are_filtered() -> None:
    async with serving() as rig:
        await make_entries(rig)
        created = await items(rig, "action=token.create")
        assert [one["action"] for one in created] == ["token.create"] * 3
        assert await items(rig, "action=token.") == created
        assert await items(rig, "action=token") == []
        (refused,) = await items(rig, "outcome=refused")
        assert refused["code"] == "E.AUTH.FORBIDDEN"
        assert await items(rig, "code=E.AUTH.FORBIDDEN") == [refused]
        assert refused not in await items(rig, "outcome=ok")
        assert await items(rig, f"who={refused['who']}") == [refused]
        (first,) = await items(rig, f"corr={created[-1]['corr']}")
        assert first == created[-1]
        of_worker = await items(rig, "workerId=w1")
        assert "drain" in [one["action"] for one in of_worker]
        assert {one["workerId"] for one in of_worker} == {"w1"}
        everything = await items(rig)
        assert await items(rig, "since=2000-01-01T00:00:00Z") == everything
        assert await items(rig, "until=2000-01-01T00:00:00Z") == []


@pytest.mark.parametrize(
    "query", ["since=yesterday", "until=2026-13-01T00:00:00Z", "outcome=maybe", "surprise=1"]
)
async def test_a_filter_that_cannot_be_is_refused(query: str) -> None:
    async with serving() as rig:
        for path in (AUDIT, f"{AUDIT}/export"):
            problem_of(await rig.get(f"{path}?{query}"), 400, "E.REQUEST.INVALID")


async def test_the_export_is_json_lines_that_anybody_can_verify() -> None:
    async with serving() as rig:
        await make_entries(rig)
        answer = await rig.get(f"{AUDIT}/export")
        assert answer.headers["content-type"] == "application/x-ndjson"
        rows = [json.loads(line) for line in answer.text.split("\n")[:-1]]
        assert rows[::-1] == await items(rig)
        previous = ZEROS
        for number, row in enumerate(rows, 1):
            content = [
                *("default", number, parse_iso(row["occurredAt"]), row["who"], row["action"]),
                *(row["workerId"] or "", row["corr"], row["code"]),
                json.dumps(row["detail"], separators=(",", ":"), ensure_ascii=False),
            ]
            text = json.dumps(content, separators=(",", ":"), ensure_ascii=False)
            found = sha256(bytes.fromhex(previous) + text.encode()).hexdigest()
            assert (row["number"], row["previous"], row["hash"]) == (number, previous, found)
            previous = found
        only = await rig.get(f"{AUDIT}/export?outcome=refused")
        assert len(only.text.splitlines()) == 1
        head = await rig.client.head(f"{AUDIT}/export")
        assert (head.status_code, head.content) in ((200, b""), (405, b""))


async def test_a_long_export_is_whole() -> None:
    async with serving() as rig:
        count = 2 * PIECE + 7
        for number in range(count):
            rig.scheduler.audits.keep("default", "ann", f"act.{number}")
        await rig.scheduler._current.writer.barrier()
        answer = await rig.get(f"{AUDIT}/export?action=act.")
        assert [json.loads(line)["action"] for line in answer.text.splitlines()] == [
            f"act.{number}" for number in range(count)
        ]
        report = await verified(rig)
        assert report["ok"] and report["to"] >= count


async def test_who_stops_reading_an_export_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rest is never read from the store: what waits for the reader is a piece or two."""
    monkeypatch.setattr("astraflow.api.downloads.STALL_S", 0.5)
    pieces = 40
    async with serving() as rig:
        audits = rig.scheduler.audits
        for number in range(pieces * PIECE):
            audits.keep("default", "ann", f"act.{number}", subject="x" * 500)
        await rig.scheduler._current.writer.barrier()
        reads = 0
        ask = audits._store.audit_after

        async def counted(*given: Any, **more: Any) -> Any:
            nonlocal reads
            reads += 1
            return await ask(*given, **more)

        monkeypatch.setattr(audits._store, "audit_after", counted)
        before = rig.connections()
        with socket.socket() as peer:
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            peer.connect(("127.0.0.1", rig.port))
            request = (
                f"GET {AUDIT}/export HTTP/1.1\r\nHost: 127.0.0.1\r\n"
                f"Authorization: Bearer {token_of(Role.ADMIN)}\r\n\r\n"
            )
            peer.sendall(request.encode())
            await until_seen(lambda: reads and rig.connections() <= before)
        assert 0 < reads < pieces
        assert (await rig.get(f"{AUDIT}?limit=1")).status_code == 200


async def test_another_tenant_sees_and_verifies_only_its_own() -> None:
    async with serving() as rig:
        await make_entries(rig)
        rig.scheduler.audits.keep("other", "eve", "login")
        assert "eve" not in {one["who"] for one in await items(rig)}
        assert "eve" not in (await rig.get(f"{AUDIT}/export")).text
        for role in (Role.VIEWER, Role.OPERATOR, Role.EDITOR, Role.WORKER):
            for path in ("", "/export", "/verify"):
                refused = await rig.as_(role, "GET", f"{AUDIT}{path}")
                problem_of(refused, 403, "E.AUTH.FORBIDDEN")


async def test_a_chain_that_nobody_touched_is_whole() -> None:
    async with serving() as rig:
        assert await verified(rig) == {
            "ok": True, "from": None, "to": None, "head": f"0:{ZEROS}", "unchained": 0,
        }  # fmt: skip
        await make_entries(rig)
        report = await verified(rig)
        newest = (await items(rig))[0]
        assert report["ok"], report
        assert (report["from"], report["to"]) == (1, newest["number"])
        assert report["head"] == f"{newest['number']}:{newest['hash']}"
        rig.scheduler.audits.keep("default", "ann", "later")
        later = await verified(rig, report["head"])
        assert later["ok"] and later["head"] != report["head"]


@pytest.mark.parametrize(
    ("orders", "says"),
    [
        (["UPDATE audits SET who = 'nobody' WHERE chain_number = 2"], "entry 2 was changed"),
        (["DELETE FROM audits WHERE chain_number = 2"], "entry 2 is missing"),
        (["DELETE FROM audits WHERE chain_number = 1"], "entries 1 to 1 are missing"),
        (["DELETE FROM audits"], "are missing"),
        (["DELETE FROM audits WHERE chain_number > 2"], "are missing"),
        (
            # Somebody who knows how the end is kept: the running scheduler still knows it better.
            [
                "DELETE FROM audits WHERE chain_number > 2",
                "UPDATE audit_heads SET number = 2, hash = (SELECT hash FROM audits WHERE chain_number = 2)"
                " WHERE tenant = 'default'",
            ],
            "before the expected",
        ),
        (["UPDATE audits SET detail = x'ff' WHERE chain_number = 2"], "entry 2 was changed"),
        (["UPDATE audit_heads SET removed = 1 WHERE tenant = 'default'"], "removed by retention"),
        (
            [
                "INSERT INTO audits (tenant, at, who, action, detail, chain_number, previous, hash) SELECT"
                " tenant, at, who, action, detail, chain_number, previous, hash FROM audits WHERE chain_number = 2"
            ],
            "entry 2 stands behind entry",
        ),
        (
            [
                "INSERT INTO audits (tenant, at, who, action, detail, chain_number, previous, hash) SELECT"
                " tenant, at, who, action, detail, 99, previous, hash FROM audits WHERE chain_number = 2"
            ],
            "entry 99 stands behind entry",
        ),
    ],
)
async def test_tampering_in_the_database_shows(orders: list[str], says: str) -> None:
    async with serving() as rig:
        await make_entries(rig)
        assert (await verified(rig))["ok"]
        tamper(rig, *orders)
        report = await verified(rig)
        assert not report["ok"]
        assert says in report["problem"]


async def test_a_row_that_is_no_json_makes_no_page_unreadable() -> None:
    async with serving() as rig:
        await make_entries(rig)
        tamper(rig, "UPDATE audits SET detail = x'ff' WHERE chain_number = 2")
        (found,) = [one for one in await items(rig) if one["number"] == 2]
        assert found["detail"] == {"unreadable": "/w=="}
        lines = (await rig.get(f"{AUDIT}/export")).text.splitlines()
        assert found in [json.loads(line) for line in lines]


@pytest.mark.parametrize("path", ["export", "verify"])
async def test_reading_everything_is_limited_for_each_tenant(path: str) -> None:
    async with serving() as rig:
        wrong = "since=yesterday" if path == "export" else "expect=x"
        for _ in range(
            READS_BURST
        ):  # refused for its parameters: nothing is read, nothing is counted
            assert (await rig.get(f"{AUDIT}/{path}?{wrong}")).status_code == 400
        answers = [await rig.get(f"{AUDIT}/{path}") for _ in range(READS_BURST)]
        assert {one.status_code for one in answers} == {200}
        refused = await rig.get(f"{AUDIT}/{path}")
        while refused.status_code == 200:  # on a slow machine some have come back meanwhile
            refused = await rig.get(f"{AUDIT}/{path}")
        problem_of(refused, 429, "E.QUOTA.RATE")
        assert int(refused.headers["retry-after"]) >= 1
        assert (await rig.get(AUDIT)).status_code == 200


@pytest.mark.parametrize("expect", ["1", "x:y", f"1:{'0' * 63}", "-1:00"])
async def test_a_head_that_is_none_is_refused(expect: str) -> None:
    async with serving() as rig:
        refused = await rig.get(f"{AUDIT}/verify?expect={expect}")
        problem_of(refused, 400, "E.REQUEST.INVALID")


async def test_a_head_that_never_was_shows() -> None:
    async with serving() as rig:
        await make_entries(rig)
        assert "another hash" in (await verified(rig, f"1:{ZEROS}"))["problem"]
        assert "before the expected 99" in (await verified(rig, f"99:{ZEROS}"))["problem"]


async def test_what_was_done_with_a_run_is_read_from_its_facts() -> None:
    async with serving() as rig:
        run_id = await rig.submit(headers={"x-request-id": "submit-1"})
        await rig.post(f"/api/v1/runs/{run_id}/cancel")
        await rig.status(run_id, "cancelled")
        path = f"{AUDIT}/runs/{run_id}"
        whole = (await rig.get(path)).json()
        rows = whole["items"]
        assert [row["action"] for row in rows][:2] == ["run.submit", "run.cancel"]
        assert rows[-1]["action"] == "run.finish"
        assert (rows[0]["who"], rows[0]["corr"]) == ("admin of default", "submit-1")
        assert rows[1]["who"] == "admin of default"
        assert {row["detail"]["runId"] for row in rows} == {run_id}
        paged: list[Any] = []
        cursor: str | None = ""
        while cursor is not None:
            page = (await rig.get(f"{path}?limit=1&cursor={cursor}")).json()
            paged += page["items"]
            cursor = page["nextCursor"]
        assert paged == rows
        problem_of(await rig.get(f"{AUDIT}/runs/nothing"), 404, "E.RUN.NOT_FOUND")


async def test_dispatches_and_results_name_the_worker_and_the_code() -> None:
    async with serving() as rig, rig.worker() as worker:
        run_id = await rig.submit()
        (await worker.task()).fail()
        path = f"{AUDIT}/runs/{run_id}"
        found = await rig.until(path, lambda body: any(row["code"] for row in body["items"]))
        by_action = {row["action"]: row for row in found["items"]}
        assert by_action["task.dispatch"]["workerId"] == "w1"
        failed = by_action.get("attempt.fail") or by_action["task.fail"]
        assert failed["code"].startswith("E.")
        assert failed["detail"]["attempt"] == 1


async def test_entries_are_verified_while_others_are_written() -> None:
    async with serving() as rig:
        await make_entries(rig)
        async with asyncio.TaskGroup() as group:
            writes = [
                group.create_task(rig.post("/api/v1/tokens", json={"label": str(number)}))
                for number in range(20)
            ]
            reports = [group.create_task(verified(rig)) for _ in range(5)]
        assert all(task.result().status_code == 201 for task in writes)
        assert all(task.result()["ok"] for task in reports)

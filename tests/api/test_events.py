from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from astraflow.api.routes import Timing
from astraflow.core import errors
from astraflow.store.memory import MemoryDatabase
from astraflow.store.rows import Changes
from astraflow.store.store import Claim
from tests.api.rig import NODE_A, NODE_B, WAIT_S, Rig, problem_of, serving

PATH = "/api/v1/events"
PIECES = 300


class Stream:
    """An event stream as a client reads it."""

    def __init__(self, lines: AsyncIterator[str]) -> None:
        self._lines = lines
        self.comments: list[str] = []

    async def next(self) -> dict[str, Any] | None:
        """The next event, or None at the end."""
        fields: dict[str, Any] = {}
        async for line in self._lines:
            if line.startswith(":"):
                self.comments.append(line)
            elif line:
                name, _, value = line.partition(": ")
                fields[name] = value
            elif fields:
                fields["data"] = json.loads(fields["data"])
                return fields
        return None

    async def all(self) -> list[dict[str, Any]]:
        found = []
        while (event := await self.next()) is not None:
            found.append(event)
        return found

    async def comment(self, count: int) -> None:
        async for line in self._lines:
            if line.startswith(":"):
                self.comments.append(line)
            if len(self.comments) >= count:
                return


@asynccontextmanager
async def following(rig: Rig, query: str, **headers: str) -> AsyncIterator[Stream]:
    async with rig.client.stream("GET", f"{PATH}{query}", headers=headers) as answer:
        assert answer.status_code == 200, await answer.aread()
        assert answer.headers["content-type"].startswith("text/event-stream")
        yield Stream(answer.aiter_lines())


async def ended(rig: Rig) -> str:
    """A run with a dozen events, the last of which is terminal."""
    async with rig.worker() as worker:
        run_id = await rig.submit()
        first, second = await worker.tasks(NODE_A, NODE_B)
        first.say("a", "b")
        first.succeed()
        second.succeed()
        await rig.status(run_id, "succeeded")
    return run_id


async def test_a_run_is_replayed_from_its_first_event_and_the_stream_ends_with_it() -> None:
    async with serving() as rig:
        run_id = await ended(rig)
        async with following(rig, f"?runId={run_id}") as stream:
            events = await stream.all()
        assert [int(event["id"]) for event in events] == list(range(1, len(events) + 1))
        assert events[0]["event"] == "run.status"
        assert events[0]["data"]["data"] == {"status": "queued"}
        assert events[-1]["data"]["data"]["status"] == "succeeded"
        for event in events:
            body = event["data"]
            assert set(body) == {"id", "type", "occurredAt", "scope", "data"}
            assert (str(body["id"]), body["type"]) == (event["id"], event["event"])
        assert rig.followers == 0


async def test_a_stream_opens_while_a_commit_is_under_way_and_shows_what_is_durable(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    commit = MemoryDatabase.commit
    is_slow, is_held, gate = False, asyncio.Event(), asyncio.Event()

    async def held(self: MemoryDatabase, claim: Claim, number: int, changes: Changes) -> None:
        if is_slow:
            is_held.set()
            await gate.wait()
        await commit(self, claim, number, changes)

    monkeypatch.setattr(MemoryDatabase, "commit", held)
    async with serving() as rig:
        run_id = await rig.submit()
        last, _ = await rig.scheduler.reader.last_event("default", run_id)
        is_slow = True
        cancelling = asyncio.create_task(rig.post(f"/api/v1/runs/{run_id}/cancel"))
        await is_held.wait()
        async with following(rig, f"?runId={run_id}") as stream:
            events = [await stream.next() or {} for _ in range(last)]
            decided = {"last-event-id": str(last + 1)}  # and known to nobody
            assert (await rig.get(f"{PATH}?runId={run_id}", headers=decided)).status_code == 400
            gate.set()
            events += await stream.all()
        assert [int(event["id"]) for event in events] == list(range(1, len(events) + 1))
        assert events[-1]["data"]["data"]["status"] == "cancelled"
        assert (await cancelling).status_code == 200


async def test_events_arrive_as_they_happen() -> None:
    async with serving() as rig:
        async with rig.worker() as worker:
            run_id = await rig.submit()
            tasks = await worker.tasks(NODE_A, NODE_B)
            async with following(rig, f"?runId={run_id}") as stream:
                assert (await stream.next() or {})["id"] == "1"
                while (event := await stream.next()) is not None:
                    if (
                        event["data"]["data"]["status"] == "running"
                        and event["event"] != "run.status"
                    ):
                        break
                tasks[0].succeed()
                while (event := await stream.next()) is not None:
                    if event["event"] == "node.result.snapshot":
                        break
                assert event is not None
                assert event["data"]["scope"] == {"nodeId": NODE_A}
                assert rig.metrics.sse_readers.value("default") == 1
        await rig.until_left()


@pytest.mark.parametrize("by_header", [True, False])
async def test_a_reader_that_comes_back_misses_none_and_sees_none_twice(by_header: bool) -> None:
    async with serving() as rig:
        run_id = await ended(rig)
        last, _ = await rig.scheduler.reader.last_event("default", run_id)
        for after in range(last):
            headers = {"last-event-id": str(after)} if by_header else {}
            query = f"?runId={run_id}" + ("" if by_header else f"&lastEventId={after}")
            async with following(rig, query, **headers) as stream:
                ids = [int(event["id"]) for event in await stream.all()]
            assert ids == list(range(after + 1, last + 1))


async def test_coming_back_at_the_end_is_answered_with_no_content() -> None:
    async with serving() as rig:
        run_id = await ended(rig)
        last, _ = await rig.scheduler.reader.last_event("default", run_id)
        answer = await rig.get(f"{PATH}?runId={run_id}", headers={"last-event-id": str(last)})
        assert (answer.status_code, answer.content) == (204, b"")
        answer = await rig.get(f"{PATH}?runId={run_id}&lastEventId={last}")
        assert answer.status_code == 204


async def test_the_header_wins_over_the_parameter() -> None:
    async with serving() as rig:
        run_id = await ended(rig)
        last, _ = await rig.scheduler.reader.last_event("default", run_id)
        query = f"?runId={run_id}&lastEventId=1"
        answer = await rig.get(PATH + query, headers={"last-event-id": str(last)})
        assert answer.status_code == 204


@pytest.mark.parametrize("given", ["x", "-1", "1.5", "", "999999", "9" * 30, "１", "+1", "0x1"])
async def test_a_last_id_that_cannot_be_is_refused(given: str) -> None:
    async with serving() as rig:
        run_id = await rig.submit()
        answer = await rig.get(
            f"{PATH}?runId={run_id}", headers={"last-event-id": given.encode("utf-8")}
        )
        problem_of(answer, 400, "E.REQUEST.INVALID")
        answer = await rig.get(PATH, params={"runId": run_id, "lastEventId": given})
        problem_of(answer, 400, "E.REQUEST.INVALID")
        assert rig.followers == 0


async def test_an_unknown_run_is_not_found_before_the_stream_begins() -> None:
    async with serving() as rig:
        problem_of(await rig.get(f"{PATH}?runId=nope"), 404, "E.RUN.NOT_FOUND")


async def test_a_snapshot_has_no_id_and_the_events_go_on_from_it() -> None:
    async with serving() as rig:
        async with rig.worker() as worker:
            run_id = await rig.submit()
            first, second = await worker.tasks(NODE_A, NODE_B)
            async with following(rig, f"?runId={run_id}&snapshot=true") as stream:
                begun = await stream.next()
                assert begun is not None
                assert (begun["event"], "id" in begun) == ("run.snapshot", False)
                assert set(begun["data"]) == {"type", "scope", "data"}
                last = begun["data"]["data"]["lastEvent"]
                first.succeed()
                after = await stream.next()
                assert after is not None
                assert int(after["id"]) == last + 1
            second.succeed()
            await rig.status(run_id, "succeeded")
        async with following(rig, f"?runId={run_id}&snapshot=true") as stream:
            events = await stream.all()
        assert [event["event"] for event in events] == ["run.snapshot", "run.status"]


async def test_a_silent_stream_is_kept_alive_by_comments() -> None:
    async with serving(timing=Timing(ping_s=0.01)) as rig:
        run_id = await rig.submit()
        async with following(rig, f"?runId={run_id}&lastEventId=1") as stream:
            await asyncio.wait_for(stream.comment(3), WAIT_S)
        assert stream.comments == [": ping"] * 3


async def test_the_tenants_stream_has_ids_of_its_own() -> None:
    async with serving() as rig, rig.worker("w9", "umbrella"), rig.worker("w1"), rig.worker("w2"):
        last = (await rig.scheduler.events.heads("default")).home
        async with following(rig, "?lastEventId=1") as stream:
            seen = [await stream.next() for _ in range(last - 1)]
        assert [event and event["id"] for event in seen] == [
            str(number) for number in range(2, last + 1)
        ]
        assert seen[-1] is not None
        online = {"workerId": "w2", "name": "w2", "status": "online"}
        assert (seen[-1]["event"], seen[-1]["data"]["data"]) == ("worker.online", online)
        answer = await rig.get(f"{PATH}?lastEventId={last + 1}")
        problem_of(answer, 400, "E.REQUEST.INVALID")
        async with following(rig, "") as stream:
            await stream.comment(1)


async def test_too_many_readers_are_told_to_come_back() -> None:
    async with serving(max_sse_readers=1) as rig:
        run_id = await rig.submit()
        async with following(rig, f"?runId={run_id}") as stream:
            await stream.next()
            answer = await rig.get(f"{PATH}?runId={run_id}")
            problem_of(answer, 503, "E.OVERLOADED")
            assert answer.headers["retry-after"] == "1"
        await rig.until_left()
        async with following(rig, f"?runId={run_id}") as stream:
            assert await stream.next() is not None


async def test_a_failure_of_the_store_ends_the_stream_with_its_code() -> None:
    async with serving() as rig:
        run_id = await rig.submit()
        read = rig.scheduler.audits._store.read_segments

        async def fail(run_id: str, after: int, *more: Any) -> Any:
            if after:
                raise errors.StoreError(errors.STORE_UNAVAILABLE, "the store is gone")
            return (await read(run_id, after, *more))[:1]

        rig.scheduler.audits._store.read_segments = fail
        rig.scheduler._feed.tapes.clear()
        async with following(rig, f"?runId={run_id}") as stream:
            events = await stream.all()
        assert events[0]["event"] == "run.status"
        assert events[-1]["event"] == "error"
        assert events[-1]["data"]["code"] == "E.STORE.UNAVAILABLE"
        assert "id" not in events[-1]


async def test_a_reader_that_does_not_read_is_dropped_and_may_come_back() -> None:
    """The reader opens its stream and never reads; the run says more than all buffers between them hold."""

    async with serving(timing=Timing(stall_s=0.2)) as rig, rig.worker() as worker:
        run_id = await rig.submit()
        task = (await worker.tasks(NODE_A, NODE_B))[0]
        text = "x" * 100_000
        last, _ = await rig.scheduler.reader.last_event("default", run_id)
        for _ in range(PIECES):
            task.say(text)
        await rig.until(
            f"/api/v1/runs/{run_id}?nodes=false",
            lambda run: run["lastEvent"] >= last + PIECES,
        )
        reader, writer = await asyncio.open_connection("127.0.0.1", rig.port, limit=1024)
        writer.write(
            f"GET {PATH}?runId={run_id} HTTP/1.1\r\nhost: localhost\r\n"
            "authorization: Bearer token-of-default-admin\r\n\r\n".encode()
        )
        await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), WAIT_S)
        await rig.until_left()
        rest = await asyncio.wait_for(_read_all(reader), WAIT_S)
        writer.close()
        assert rig.metrics.sse_dropped.value("default") == 1
        assert len(rest) < PIECES * len(text)
        numbers = [int(line[4:]) for line in rest.split(b"\n") if line.startswith(b"id: ")]
        seen = numbers[-2]  # the last one may have been cut
        async with following(rig, f"?runId={run_id}", **{"last-event-id": str(seen)}) as stream:
            event = await stream.next()
        assert event is not None
        assert int(event["id"]) == seen + 1


async def _read_all(reader: asyncio.StreamReader) -> bytes:
    try:
        return await reader.read()
    except ConnectionResetError:
        return b""


async def test_a_stream_ends_when_its_reader_hangs_up() -> None:
    async with serving() as rig:
        run_id = await rig.submit()
        for _ in range(5):
            async with following(rig, f"?runId={run_id}") as stream:
                await stream.next()
                assert rig.followers == 1
            await rig.until_left()

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from astraflow.api.events import Timing
from astraflow.store.rows import TenantEvent
from tests.api.rig import WAIT_S, Rig, problem_of, serve

PATH = "/api/v1/events"


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
    """A run with six events or so, the last of which is terminal."""
    run_id = await rig.submit()
    fake = rig.scheduler
    await fake.start(run_id, 0, 1)
    await fake.say(run_id, 0, "a", "b")
    await fake.succeed(run_id, 0)
    await fake.succeed(run_id, 1)
    await fake.finish(run_id)
    return run_id


def test_a_run_is_replayed_from_its_first_event_and_the_stream_ends_with_it() -> None:
    async def test(rig: Rig) -> None:
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
        assert rig.scheduler.following == 0

    serve(test)


def test_events_arrive_as_they_happen() -> None:
    async def test(rig: Rig) -> None:
        run_id = await rig.submit()
        async with following(rig, f"?runId={run_id}") as stream:
            assert (await stream.next() or {})["id"] == "1"
            await rig.scheduler.start(run_id, 0)
            seen = [await stream.next() for _ in range(3)]
            assert [event["data"]["data"]["status"] for event in seen if event] == [
                "running",
                "dispatched",
                "running",
            ]
            assert rig.metrics.sse_readers.value("default") == 1
        await rig.scheduler.left.wait()
        assert rig.scheduler.following == 0

    serve(test)


@pytest.mark.parametrize("by_header", [True, False])
def test_a_reader_that_comes_back_misses_none_and_sees_none_twice(by_header: bool) -> None:
    async def test(rig: Rig) -> None:
        run_id = await ended(rig)
        last, _ = await rig.scheduler.reader.last_event("default", run_id)
        for after in range(last):
            headers = {"last-event-id": str(after)} if by_header else {}
            query = f"?runId={run_id}" + ("" if by_header else f"&lastEventId={after}")
            async with following(rig, query, **headers) as stream:
                ids = [int(event["id"]) for event in await stream.all()]
            assert ids == list(range(after + 1, last + 1))

    serve(test)


def test_coming_back_at_the_end_is_answered_with_no_content() -> None:
    async def test(rig: Rig) -> None:
        run_id = await ended(rig)
        last, _ = await rig.scheduler.reader.last_event("default", run_id)
        answer = await rig.get(f"{PATH}?runId={run_id}", headers={"last-event-id": str(last)})
        assert (answer.status_code, answer.content) == (204, b"")
        answer = await rig.get(f"{PATH}?runId={run_id}&lastEventId={last}")
        assert answer.status_code == 204

    serve(test)


def test_the_header_wins_over_the_parameter() -> None:
    async def test(rig: Rig) -> None:
        run_id = await ended(rig)
        last, _ = await rig.scheduler.reader.last_event("default", run_id)
        query = f"?runId={run_id}&lastEventId=1"
        answer = await rig.get(PATH + query, headers={"last-event-id": str(last)})
        assert answer.status_code == 204

    serve(test)


@pytest.mark.parametrize("given", ["x", "-1", "1.5", "", "999999", "9" * 30, "１", "+1", "0x1"])
def test_a_last_id_that_cannot_be_is_refused(given: str) -> None:
    async def test(rig: Rig) -> None:
        run_id = await rig.submit()
        answer = await rig.get(
            f"{PATH}?runId={run_id}", headers={"last-event-id": given.encode("utf-8")}
        )
        problem_of(answer, 400, "E.REQUEST.INVALID")
        answer = await rig.get(PATH, params={"runId": run_id, "lastEventId": given})
        problem_of(answer, 400, "E.REQUEST.INVALID")
        assert rig.scheduler.following == 0

    serve(test)


def test_an_unknown_run_is_not_found_before_the_stream_begins() -> None:
    async def test(rig: Rig) -> None:
        problem_of(await rig.get(f"{PATH}?runId=nope"), 404, "E.RUN.NOT_FOUND")

    serve(test)


def test_a_snapshot_has_no_id_and_the_events_go_on_from_it() -> None:
    async def test(rig: Rig) -> None:
        run_id = await rig.submit()
        await rig.scheduler.start(run_id, 0)
        async with following(rig, f"?runId={run_id}&snapshot=true") as stream:
            first = await stream.next()
            assert first is not None
            assert (first["event"], "id" in first) == ("run.snapshot", False)
            last = first["data"]["data"]["lastEvent"]
            await rig.scheduler.succeed(run_id, 0)
            after = await stream.next()
            assert after is not None
            assert int(after["id"]) == last + 1
        done = await ended(rig)
        async with following(rig, f"?runId={done}&snapshot=true") as stream:
            events = await stream.all()
        assert [event["event"] for event in events] == ["run.snapshot", "run.status"]

    serve(test)


def test_a_silent_stream_is_kept_alive_by_comments() -> None:
    async def test(rig: Rig) -> None:
        run_id = await rig.submit()
        async with following(rig, f"?runId={run_id}&lastEventId=1") as stream:
            await asyncio.wait_for(stream.comment(3), WAIT_S)
        assert stream.comments == [": ping"] * 3

    serve(test, timing=Timing(ping_s=0.01))


def test_the_tenants_stream_has_ids_of_its_own() -> None:
    async def test(rig: Rig) -> None:
        for number in (1, 2, 3):
            row = TenantEvent("default", number, number, "worker.online", b'{"workerId":"w1"}')
            rig.scheduler.tenant_log.append(row)
        rig.scheduler.tenant_log.append(TenantEvent("umbrella", 1, 1, "worker.online", b"{}"))
        async with following(rig, "?lastEventId=1") as stream:
            seen = [await stream.next(), await stream.next()]
        assert [event and event["id"] for event in seen] == ["2", "3"]
        assert seen[0] is not None
        assert seen[0]["data"]["data"] == {"workerId": "w1"}
        answer = await rig.get(f"{PATH}?lastEventId=4")
        problem_of(answer, 400, "E.REQUEST.INVALID")
        async with following(rig, "") as stream:
            await stream.comment(1)

    serve(test)


def test_too_many_readers_are_told_to_come_back() -> None:
    async def test(rig: Rig) -> None:
        run_id = await rig.submit()
        async with following(rig, f"?runId={run_id}") as stream:
            await stream.next()
            answer = await rig.get(f"{PATH}?runId={run_id}")
            problem_of(answer, 503, "E.OVERLOADED")
            assert answer.headers["retry-after"] == "1"
        await rig.scheduler.left.wait()
        async with following(rig, f"?runId={run_id}") as stream:
            assert await stream.next() is not None

    serve(test, max_sse_readers=1)


def test_a_failure_of_the_store_ends_the_stream_with_its_code() -> None:
    from astraflow.core import errors
    from tests.api.fake import FakeScheduler

    class Failing(FakeScheduler):
        async def follow_run(self, tenant: str, run_id: str, after: int):  # type: ignore[no-untyped-def,override]
            yield self.runs[run_id].events
            raise errors.StoreError(errors.STORE_UNAVAILABLE, "the store is gone")

    async def test(rig: Rig) -> None:
        run_id = await rig.submit()
        async with following(rig, f"?runId={run_id}") as stream:
            events = await stream.all()
        assert [event["event"] for event in events] == ["run.status", "error"]
        assert events[-1]["data"]["code"] == "E.STORE.UNAVAILABLE"
        assert "id" not in events[-1]

    serve(test, scheduler=None or Failing())


def test_a_reader_that_does_not_read_is_dropped_and_may_come_back() -> None:
    """The reader opens its stream and never reads; the run says more than all buffers between them hold."""

    async def test(rig: Rig) -> None:
        run_id = await rig.submit()
        await rig.scheduler.start(run_id, 0)
        text = "x" * 100_000
        for _ in range(300):
            await rig.scheduler.say(run_id, 0, text)
        reader, writer = await asyncio.open_connection("127.0.0.1", rig.port, limit=1024)
        writer.write(
            f"GET {PATH}?runId={run_id} HTTP/1.1\r\nhost: localhost\r\n"
            "authorization: Bearer token-of-default-admin\r\n\r\n".encode()
        )
        await asyncio.wait_for(rig.scheduler.left.wait(), WAIT_S)
        assert rig.scheduler.following == 0
        rest = await asyncio.wait_for(_read_all(reader), WAIT_S)
        writer.close()
        assert rig.metrics.sse_dropped.value("default") == 1
        assert len(rest) < 300 * len(text)
        numbers = [int(line[4:]) for line in rest.split(b"\n") if line.startswith(b"id: ")]
        seen = numbers[-2]  # the last one may have been cut
        async with following(rig, f"?runId={run_id}", **{"last-event-id": str(seen)}) as stream:
            event = await stream.next()
        assert event is not None
        assert int(event["id"]) == seen + 1

    serve(test, timing=Timing(stall_s=0.2))


async def _read_all(reader: asyncio.StreamReader) -> bytes:
    try:
        return await reader.read()
    except ConnectionResetError:
        return b""


def test_a_stream_ends_when_its_reader_hangs_up() -> None:
    async def test(rig: Rig) -> None:
        run_id = await rig.submit()
        for _ in range(5):
            rig.scheduler.left.clear()
            async with following(rig, f"?runId={run_id}") as stream:
                await stream.next()
            await asyncio.wait_for(rig.scheduler.left.wait(), WAIT_S)
        assert rig.scheduler.following == 0

    serve(test)

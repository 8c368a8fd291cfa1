"""One stream for a tenant and many runs, from outside, on real sockets."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from astraflow.api.routes import Timing
from astraflow.client import AsyncClient
from astraflow.core import errors
from astraflow.core.contract.streams import StreamItem
from astraflow.core.security.policy import Role
from tests.api.rig import NODE_A, NODE_B, OTHER, WAIT_S, Rig, problem_of, serving
from tests.api.scripted import token_of

PATH = "/api/v1/stream"
PIECES = 300
Item = dict[str, Any]


class Mixed:
    """A mixed stream as a browser reads it."""

    def __init__(self, lines: AsyncIterator[str]) -> None:
        self._lines = lines
        self.position = ""
        self.items: list[Item] = []
        self.batches = 0
        self.ends: list[str] = []

    async def batch(self) -> bool:
        """Read the next message; False at the end."""
        fields: dict[str, str] = {}
        async for line in self._lines:
            if line and not line.startswith(":"):
                name, _, value = line.partition(": ")
                fields[name] = value
            elif not line and fields:
                if fields["event"] == "batch":
                    self.position = fields["id"]
                    self.items += json.loads(fields["data"])["events"]
                    self.batches += 1
                else:
                    self.ends.append(fields["event"])
                return True
        return False

    async def until(self, holds: Callable[[list[Item]], Any]) -> list[Item]:
        async with asyncio.timeout(WAIT_S):
            while not holds(self.items):
                assert await self.batch(), "the stream has ended"
        return self.items

    def of(self, run_id: str | None) -> list[Item]:
        return [one for one in self.items if one.get("runId") == run_id]


@asynccontextmanager
async def mixed(
    rig: Rig, *runs: str, query: str = "", position: str | None = None
) -> AsyncIterator[Mixed]:
    headers = {} if position is None else {"last-event-id": position}
    path = f"{PATH}?runs={','.join(runs)}{query}"
    async with rig.client.stream("GET", path, headers=headers) as answer:
        assert answer.status_code == 200, await answer.aread()
        assert answer.headers["content-type"].startswith("text/event-stream")
        stream = Mixed(answer.aiter_lines())
        assert await stream.batch()  # the position, at once
        yield stream


def is_over(run_id: str) -> Callable[[list[Item]], bool]:
    def holds(items: list[Item]) -> bool:
        return any(
            one.get("runId") == run_id
            and one["type"] == "run.status"
            and one["data"]["status"] in ("succeeded", "failed", "cancelled")
            for one in items
        )

    return holds


def _has(run_id: str) -> Callable[[list[Item]], bool]:
    return lambda items: any(one.get("runId") == run_id for one in items)


def numbers(items: list[Item]) -> list[int]:
    return [one["id"] for one in items]


async def finished(rig: Rig) -> str:
    async with rig.worker() as worker:
        run_id = await rig.submit()
        first, second = await worker.tasks(NODE_A, NODE_B)
        first.say("a", "b")
        first.succeed()
        second.succeed()
        await rig.status(run_id, "succeeded")
    return run_id


async def test_the_tenant_and_several_runs_arrive_on_one_connection_each_without_a_gap() -> None:
    async with serving() as rig, rig.worker() as worker:
        runs = [await rig.submit() for _ in range(3)]
        async with mixed(rig, *runs) as stream:
            for _ in range(2 * len(runs)):
                (await worker.task()).succeed()
            for run_id in runs:
                await stream.until(is_over(run_id))
            await stream.until(
                lambda items: (
                    sum(one["data"].get("status") == "succeeded" for one in stream.of(None)) == 3
                )
            )
        for run_id in runs:
            seen = numbers(stream.of(run_id))
            last, _ = await rig.scheduler.reader.last_event("default", run_id)
            assert seen == list(range(1, last + 1))
        tenant = numbers(stream.of(None))
        assert tenant == list(range(tenant[0], tenant[0] + len(tenant)))
        await rig.until_left()


async def test_a_run_reads_the_same_as_in_its_own_stream() -> None:
    async with serving() as rig:
        run_id = await finished(rig)
        alone = [
            json.loads(line[6:])
            for line in (await rig.get(f"/api/v1/events?runId={run_id}")).text.splitlines()
            if line.startswith("data: ")
        ]
        async with mixed(rig, run_id) as stream:
            await stream.until(is_over(run_id))
        shown = [{"scope": {}, **one} for one in stream.of(run_id)]
        assert [{**one, "runId": run_id} for one in alone] == shown


async def test_every_position_resumes_all_of_them() -> None:
    async with serving() as rig:
        first, second = await finished(rig), await finished(rig)
        ends = {
            run_id: (await rig.scheduler.reader.last_event("default", run_id))[0]
            for run_id in (first, second)
        }
        for after in range(ends[first]):
            position = f"0,{first}:{after},{second}:{ends[second]}"
            async with mixed(rig, first, second, position=position) as stream:
                assert stream.position == position
                await stream.until(is_over(first))
                assert numbers(stream.of(first)) == list(range(after + 1, ends[first] + 1))
                assert stream.of(second) == []


async def test_runs_are_added_and_left_out_by_coming_back_with_the_last_id() -> None:
    async with serving() as rig:
        first, second, third = [await finished(rig) for _ in range(3)]
        async with mixed(rig, first, second) as stream:
            await stream.until(lambda items: is_over(first)(items) and is_over(second)(items))
        query = f"&lastEventId={stream.position}"
        async with mixed(rig, second, third, query=query) as again:
            await again.until(is_over(third))
        assert again.of(second) == []
        assert again.of(first) == []
        assert numbers(again.of(third))[0] == 1
        assert first not in again.position


async def test_what_happens_while_nobody_listens_comes_after_the_first_position() -> None:
    """A browser that is cut off before the first event has a position, too."""
    async with serving() as rig:
        async with mixed(rig) as stream:
            position = stream.position
        run_id = await rig.submit()
        async with mixed(rig, position=position) as stream:
            items = await stream.until(len)
        assert (items[0]["type"], items[0]["data"]["runId"]) == ("run.status", run_id)


async def test_a_snapshot_has_the_output_so_far_and_the_events_go_on_from_it() -> None:
    async with serving() as rig, rig.worker() as worker:
        run_id = await rig.submit()
        task, other = await worker.tasks(NODE_A, NODE_B)
        task.say("to", "ken")
        await rig.until(f"/api/v1/runs/{run_id}/logs", lambda page: len(page["items"]) == 2)
        async with mixed(rig, run_id, query="&snapshot=true") as stream:
            items = await stream.until(len)
            snapshot = items[0]
            assert (snapshot["type"], snapshot["id"]) == (
                "run.snapshot",
                snapshot["data"]["lastEvent"],
            )
            output = snapshot["data"]["output"]
            assert [(one["nodeId"], one["text"], one["pieces"]) for one in output] == [
                (NODE_A, "token", 2)
            ]
            assert "outputTruncated" not in snapshot["data"]
            task.succeed()
            other.succeed()
            await stream.until(is_over(run_id))
            seen = numbers(stream.of(run_id))
            assert seen == list(range(seen[0], seen[0] + len(seen)))
        async with mixed(rig, run_id, query="&snapshot=true") as stream:
            items = await stream.until(len)
            assert [one["type"] for one in items] == ["run.snapshot"]
            assert items[0]["data"]["status"] == "succeeded"
            assert stream.position.endswith(f"{run_id}:{items[0]['id']}")


async def test_a_snapshot_says_when_older_output_is_not_in_it() -> None:
    async with serving() as rig, rig.worker() as worker:
        run_id = await rig.submit()
        task = (await worker.tasks(NODE_A, NODE_B))[0]
        for number in range(20):
            task.say(str(number % 10) * 100_000)
        path = f"/api/v1/runs/{run_id}/logs"
        await rig.until(path, lambda page: len(page["items"]) == 20)
        async with mixed(rig, run_id, query="&snapshot=true") as stream:
            body = (await stream.until(len))[0]["data"]
        assert body["outputTruncated"] is True
        text = "".join(one["text"] for one in body["output"])
        assert 0 < len(text) <= 1024**2
        assert text.endswith("9")


async def test_deltas_are_joined_and_nothing_is_lost() -> None:
    async with serving() as rig, rig.worker() as worker:
        run_id = await rig.submit()
        one, two = await worker.tasks(NODE_A, NODE_B)
        async with mixed(rig, run_id, query="&coalesceMs=100") as stream:
            for number in range(200):
                one.say(f"a{number};")
                two.say(f"b{number};")
            one.succeed()
            two.succeed()
            await stream.until(is_over(run_id))
        deltas = [item for item in stream.of(run_id) if item["type"] == "node.result.delta"]
        for node, letter in ((NODE_A, "a"), (NODE_B, "b")):
            text = "".join(d["data"]["text"] for d in deltas if d["data"]["nodeId"] == node)
            assert text == "".join(f"{letter}{number};" for number in range(200))
        assert sum(delta["data"].get("pieces", 1) for delta in deltas) == 400
        assert len(deltas) < 200
        ends = [place for place, item in enumerate(stream.items) if item["type"] == "node.state"]
        last_delta = max(place for place, item in enumerate(stream.items) if item in deltas)
        assert last_delta < ends[-1]


async def test_ten_streams_see_the_same() -> None:
    async with serving() as rig, rig.worker() as worker, AsyncExitStack() as stack:
        runs = [await rig.submit() for _ in range(4)]
        streams = [
            await stack.enter_async_context(
                mixed(rig, *runs, query="&coalesceMs=100" if number % 2 else "")
            )
            for number in range(10)
        ]
        for _ in range(2 * len(runs)):
            task = await worker.task()
            task.say("x", "y")
            task.succeed()
        for stream in streams:
            for run_id in runs:
                await stream.until(is_over(run_id))
        for run_id in runs:
            ends = {numbers(stream.of(run_id))[-1] for stream in streams}
            assert len(ends) == 1
        assert len({stream.position.partition(",")[2].count(":") for stream in streams}) == 1


async def test_a_reader_that_does_not_read_is_dropped_bounded_and_may_resume() -> None:
    async with serving(timing=Timing(stall_s=0.2)) as rig, rig.worker() as worker:
        runs = [await rig.submit() for _ in range(2)]
        dispatched = [await worker.task() for _ in range(4)]
        tasks = [task for task in dispatched if task.node_id == NODE_A]
        text = "x" * 100_000
        reader, writer = await asyncio.open_connection("127.0.0.1", rig.port, limit=1024)
        writer.write(
            f"GET {PATH}?runs={','.join(runs)} HTTP/1.1\r\nhost: localhost\r\n"
            f"authorization: Bearer {token_of(Role.ADMIN)}\r\n\r\n".encode()
        )
        await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), WAIT_S)
        for _ in range(PIECES):
            for task in tasks:
                task.say(text)
        await rig.until_left()
        rest = await asyncio.wait_for(_read_all(reader), WAIT_S)
        writer.close()
        assert rig.metrics.sse_dropped.value("default") == 1
        assert len(rest) < 2 * PIECES * len(text)
        positions = [line[4:].decode() for line in rest.split(b"\n") if line.startswith(b"id: ")]
        position = positions[-2]  # the last batch may have been cut
        seen = dict(one.split(":") for one in position.split(",")[1:])
        async with mixed(rig, *runs, position=position) as stream:
            for run_id in runs:
                await stream.until(_has(run_id))
                assert numbers(stream.of(run_id))[0] == int(seen.get(run_id, 0)) + 1


async def _read_all(reader: asyncio.StreamReader) -> bytes:
    try:
        return await reader.read()
    except ConnectionResetError:
        return b""


async def test_a_stream_is_resumed_at_the_next_scheduler(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/store.db"
    async with serving(url, folder=tmp_path) as rig:
        runs = [await rig.submit() for _ in range(3)]
        async with mixed(rig, *runs) as stream:
            await stream.until(lambda items: all(stream.of(run_id) for run_id in runs))
            rig.scheduler.end_streams()
            while await stream.batch():
                pass
        position = stream.position
    seen = {run_id: stream.of(run_id) for run_id in runs}
    async with serving(url, folder=tmp_path) as rig, rig.worker() as worker:
        async with mixed(rig, *runs, position=position) as again:
            for _ in range(2 * len(runs)):
                (await worker.task()).succeed()
            for run_id in runs:
                await again.until(is_over(run_id))
        for run_id in runs:
            whole = numbers(seen[run_id] + again.of(run_id))
            assert whole == list(range(1, len(whole) + 1))


async def test_runs_of_others_are_missing_and_the_rest_goes_on() -> None:
    async with serving() as rig, rig.worker("w9", OTHER):
        run_id = await finished(rig)
        other = await rig.client.post(
            "/api/v1/runs",
            json={"workflow": {"id": NODE_A, "nodes": [{"id": NODE_B, "type": "core.noop"}]}},
            headers={"authorization": f"Bearer {token_of(Role.ADMIN, OTHER)}"},
        )
        foreign = other.json()["runId"]
        async with mixed(rig, foreign, "nope", run_id, run_id) as stream:
            await stream.until(is_over(run_id))
        missing = [one["data"]["runId"] for one in stream.items if one["type"] == "run.missing"]
        assert missing == [foreign, "nope"]
        assert numbers(stream.of(run_id)) == sorted(set(numbers(stream.of(run_id))))


@pytest.mark.parametrize(
    "given",
    ["x", "-1", "1,", "1,a", "1,a:", "1,a:b", "1,a:-1", "9" * 30, "1,a:1:2", "１", "1 ,a:1"],
)
async def test_a_position_that_cannot_be_is_refused(given: str) -> None:
    async with serving() as rig:
        answer = await rig.get(PATH, headers={"last-event-id": given.encode()})
        problem_of(answer, 400, "E.REQUEST.INVALID")
        answer = await rig.get(PATH, params={"lastEventId": given})
        problem_of(answer, 400, "E.REQUEST.INVALID")


async def test_a_position_ahead_too_many_runs_and_too_many_streams_are_refused() -> None:
    async with serving(max_sse_readers=1) as rig:
        run_id = await rig.submit()
        problem_of(await rig.get(f"{PATH}?lastEventId=999"), 400, "E.REQUEST.INVALID")
        ahead = f"{PATH}?runs={run_id}&lastEventId=0,{run_id}:999"
        problem_of(await rig.get(ahead), 400, "E.REQUEST.INVALID")
        many = ",".join(f"run{number}" for number in range(101))
        problem_of(await rig.get(f"{PATH}?runs={many}"), 400, "E.REQUEST.INVALID")
        problem_of(await rig.get(f"{PATH}?coalesceMs=5001"), 400, "E.REQUEST.INVALID")
        async with mixed(rig, run_id):
            problem_of(await rig.get(PATH), 503, "E.OVERLOADED")
            problem_of(await rig.get("/api/v1/events"), 503, "E.OVERLOADED")
        await rig.until_left()


async def test_a_failure_of_the_store_ends_the_stream_with_its_code() -> None:
    async with serving() as rig:
        run_id = await rig.submit()

        async def fail(*_: Any) -> Any:
            raise errors.StoreError(errors.STORE_UNAVAILABLE, "the store is gone")

        rig.scheduler.audits._store.read_segments = fail
        rig.scheduler._feed.tapes.clear()
        async with mixed(rig, run_id) as stream:
            while await stream.batch():
                pass
        assert stream.ends == ["error"]


async def test_events_that_retention_has_removed_are_named() -> None:
    async with serving() as rig, rig.worker():
        store = rig.scheduler.audits._store
        last = (await rig.scheduler.events.heads("default")).home
        assert last >= 1
        events = await store.tenant_events("default", 0, 10)

        async def left(tenant: str, after: int, limit: int) -> Any:
            return [one for one in events if one.number > max(after, last - 1)]

        store.tenant_events = left
        await rig.submit()
        async with mixed(rig, position="0") as stream:
            items = await stream.until(len)
        if last > 1:
            assert items[0]["type"] == "stream.reset"
            assert items[0]["data"] == {"from": 1, "to": last - 1, "reason": "retention"}
        assert items[-1]["id"] == last


async def test_who_may_not_read_gets_no_stream() -> None:
    async with serving() as rig:
        answer = await rig.as_(Role.WORKER, "GET", PATH)
        problem_of(answer, 403, "E.AUTH.FORBIDDEN")


@pytest.mark.parametrize("ping_s", [15.0, 0.01])
async def test_the_client_reads_it_and_comes_back_by_itself(ping_s: float) -> None:
    async with serving(timing=Timing(ping_s=ping_s)) as rig, rig.worker() as worker:
        runs = [await rig.submit() for _ in range(2)]
        seen: list[StreamItem] = []
        url, token = f"http://127.0.0.1:{rig.port}", token_of(Role.ADMIN)
        async with (
            AsyncClient(url, token) as client,
            aclosing(client.stream(runs, snapshot=True, coalesce_ms=1)) as items,
        ):
            async for item in items:
                seen.append(item)
                if len(seen) == 2:
                    # The connections end, as at a restart; the client goes on where it was.
                    rig.scheduler.end_streams()
                    rig.scheduler._feed.begin()
                    for _ in range(4):
                        (await worker.task()).succeed()
                ends = [one for one in seen if one.run_id and one.type == "run.status"]
                if sum(one.body["status"] == "succeeded" for one in ends) == 2:
                    break
        for run_id in runs:
            ids = [one.id for one in seen if one.run_id == run_id]
            assert ids == list(range(ids[0], ids[0] + len(ids)))


async def test_a_ping_is_an_event_without_an_id() -> None:
    """A page sees it, and a browser keeps the position of the last batch."""
    async with serving(timing=Timing(ping_s=0.01)) as rig, mixed(rig) as stream:
        before = stream.position
        async with asyncio.timeout(WAIT_S):
            while "ping" not in stream.ends:
                assert await stream.batch()
        assert stream.position == before

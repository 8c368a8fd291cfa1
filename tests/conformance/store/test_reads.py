from __future__ import annotations

from typing import Any

from astraflow.core.ids import RunId
from astraflow.store.rows import SubmissionRow
from astraflow.store.runs import RunFilter
from tests.conformance.store.backends import Backend
from tests.conformance.store.samples import (
    NEWEST,
    PLAN,
    audit,
    change,
    event,
    finished,
    run,
    segment,
)


async def test_what_is_not_there_is_not_found(backend: Backend) -> None:
    async with backend.opened() as store:
        assert await store.find_run("default", RunId("run-0001")) is None
        assert await store.find_plan("plan-1") is None
        assert await store.read_segments(RunId("run-0001")) == []
        assert await store.active_runs() == []
        assert await store.list_runs("default", limit=10) == []
        assert await store.submissions(0) == []
        assert await store.workers() == []
        assert await store.event_heads() == {}
        assert await store.tenant_events("default", 0, 10) == []
        assert await store.audit("default", limit=10) == []


async def test_a_run_of_another_tenant_is_not_found(backend: Backend) -> None:
    async with backend.desk() as desk:
        await desk.write(plans=[PLAN], runs=[run(1)])
        assert await desk.store.find_run("other", run(1).run_id) is None
        assert await desk.store.list_runs("other", limit=10) == []


async def test_active_runs_are_those_without_an_end_oldest_first(backend: Backend) -> None:
    async with backend.desk() as desk:
        await desk.write(plans=[PLAN], runs=[run(3), run(1), finished(2, 9), run(4)])
        await desk.write(run_changes=[change(run(3), status="failed", finished_at=9)])
        assert await desk.store.active_runs() == [run(1), run(4)]


async def test_a_list_of_runs_goes_from_new_to_old_page_by_page(backend: Backend) -> None:
    runs = [run(number, created_at=1_000 + number // 3) for number in range(10)]
    async with backend.desk() as desk:
        await desk.write(plans=[PLAN], runs=runs)
        seen = []
        before = None
        while found := await desk.store.list_runs("default", limit=4, before=before):
            assert len(found) <= 4
            seen += found
            before = (found[-1].created_at, found[-1].run_id)
        assert seen == runs[::-1]


async def test_ids_are_ordered_by_their_bytes_everywhere(backend: Backend) -> None:
    ids = ["A", "B", "a", "b", "Ä", "é", "–", "𝄞", "1", "_", " "]
    async with backend.desk() as desk:
        await desk.write(plans=[PLAN], runs=[run(1, run_id=one) for one in ids])
        found = await desk.store.list_runs("default", limit=20)
        assert [row.run_id for row in found] == sorted(ids, reverse=True)
        assert [row.run_id for row in await desk.store.active_runs()] == sorted(ids)


async def test_a_list_can_be_narrowed_to_a_status_and_a_workflow(backend: Backend) -> None:
    async with backend.desk() as desk:
        await desk.write(
            plans=[PLAN],
            runs=[
                run(1),
                run(2, workflow_id="other"),
                finished(3, 9),
                finished(4, 9, workflow_id="other"),
                finished(5, 9, workflow_id="other"),
            ],
        )

        async def ids(**wanted: object) -> list[str]:
            found = await desk.store.list_runs("default", limit=10, **wanted)  # type: ignore[arg-type]
            return [row.run_id[-1] for row in found]

        assert await ids(status="succeeded") == ["5", "4", "3"]
        assert await ids(workflow_id="other") == ["5", "4", "2"]
        assert await ids(status="succeeded", workflow_id="other") == ["5", "4"]
        assert await ids(status="succeeded", before=(1_004, "run-0004")) == ["3"]
        assert await ids(workflow_id="other", before=(1_004, "run-0004")) == ["2"]
        assert await ids(status="succeeded", workflow_id="other", before=(1_005, "run-0005")) == [
            "4"
        ]
        assert await ids(status="cancelled") == []


async def test_pages_are_read_in_order_from_where_a_reader_stands(backend: Backend) -> None:
    segments = [segment(run(1), 1, 3), segment(run(1), 4, 4), segment(run(1), 5, 9)]
    async with backend.desk() as desk:
        await desk.write(
            plans=[PLAN], runs=[run(1), run(2)], segments=[*segments, segment(run(2), 1, 1)]
        )
        store, run_id = desk.store, run(1).run_id
        assert await store.read_segments(run_id) == segments
        assert await store.read_segments(run_id, after=2) == segments
        assert await store.read_segments(run_id, after=3) == segments[1:]
        assert await store.read_segments(run_id, after=7) == segments[2:]
        assert await store.read_segments(run_id, after=9) == []


async def test_a_read_of_pages_stops_at_its_size_but_never_before_the_first(
    backend: Backend,
) -> None:
    segments = [segment(run(1), number, number, b"x" * 100) for number in range(1, 6)]
    async with backend.desk() as desk:
        await desk.write(plans=[PLAN], runs=[run(1)], segments=segments)
        store, run_id = desk.store, run(1).run_id
        assert await store.read_segments(run_id, max_bytes=250) == segments[:2]
        assert await store.read_segments(run_id, max_bytes=300) == segments[:3]
        assert await store.read_segments(run_id, max_bytes=1) == segments[:1]
        assert await store.read_segments(run_id, after=2, max_bytes=200) == segments[2:4]


async def test_runs_are_found_by_what_they_are(backend: Backend) -> None:
    async with backend.desk() as desk:
        rows = [
            run(1, name="Nightly sync", trigger_name="night", submitted_by="ada"),
            finished(2, 2_000, name="nightly_report"),
            run(3, name="100% done", workflow_id="other"),
            run(4, name="Über-Straße ΑΒΓ"),
        ]
        await desk.write(plans=[PLAN], runs=rows)

        async def ids(before: tuple[int, str] | None = None, **wanted: Any) -> list[str]:
            found = await desk.store.search_runs(
                "default", RunFilter(**wanted), limit=10, before=before
            )
            return [row.run_id[-1] for row in found]

        assert await ids() == ["4", "3", "2", "1"]
        assert await ids(text="NIGHTLY") == ["2", "1"]
        for text in ("Über", "ΑΒΓ", "BER-", "straße"):
            assert await ids(text=text) == ["4"], text
        assert await ids(text="y_r") == ["2"]
        assert await ids(text="%") == ["3"]
        assert await ids(text="!") == []
        assert await ids(text="run-0003") == ["3"]
        assert await ids(trigger="night") == ["1"]
        assert await ids(submitted_by="ada") == ["1"]
        assert await ids(submitted_by="ad") == []
        assert await ids(status="succeeded", text="nightly") == ["2"]
        assert await ids(workflow_id="other") == ["3"]
        at = rows[1].created_at
        assert await ids(since=at) == ["4", "3", "2"]
        assert await ids(until=at) == ["1"]
        assert await ids(before=(at, rows[1].run_id), text="nightly") == ["1"]
        found = await desk.store.find_run("default", rows[0].run_id)
        assert found is not None
        assert (found.submitted_by, found.trigger_name) == ("ada", "night")


async def test_pages_are_read_back_from_where_a_reader_stands(backend: Backend) -> None:
    segments = [segment(run(1), 1, 3), segment(run(1), 4, 4), segment(run(1), 5, 9)]
    async with backend.desk() as desk:
        await desk.write(
            plans=[PLAN], runs=[run(1), run(2)], segments=[*segments, segment(run(2), 1, 1)]
        )
        store, run_id = desk.store, run(1).run_id
        assert await store.read_segments_back(run_id, 10) == segments[::-1]
        assert await store.read_segments_back(run_id, 6) == segments[::-1]
        assert await store.read_segments_back(run_id, 5) == segments[1::-1]
        assert await store.read_segments_back(run_id, 1) == []


async def test_a_read_back_stops_at_its_size_but_never_before_the_first(backend: Backend) -> None:
    segments = [segment(run(1), number, number, b"x" * 100) for number in range(1, 6)]
    async with backend.desk() as desk:
        await desk.write(plans=[PLAN], runs=[run(1)], segments=segments)
        store, run_id = desk.store, run(1).run_id
        assert await store.read_segments_back(run_id, 6, 250) == [segments[4], segments[3]]
        assert await store.read_segments_back(run_id, 6, 1) == [segments[4]]


async def test_keys_are_listed_from_a_time_on(backend: Backend) -> None:
    async with backend.desk() as desk:
        await desk.write(
            plans=[PLAN],
            runs=[
                run(3, idempotency_key="c", fingerprint="f"),
                run(1, idempotency_key="a"),
                run(2),
            ],
        )
        third = SubmissionRow("default", "c", "f", RunId("run-0003"), 1_003)
        assert await desk.store.submissions(0) == [
            SubmissionRow("default", "a", None, RunId("run-0001"), 1_001),
            third,
        ]
        assert await desk.store.submissions(1_003) == [third]
        assert await desk.store.submissions(1_004) == []
        assert await desk.store.find_submission("default", "c") == third
        assert await desk.store.find_submission("other", "c") is None
        assert await desk.store.find_submission("default", "b") is None


async def test_a_key_that_was_forgotten_may_be_used_anew(backend: Backend) -> None:
    async with backend.desk() as desk:
        await desk.write(plans=[PLAN], runs=[run(1, idempotency_key="a")])
        await desk.write(runs=[run(2, idempotency_key="a")])
        assert [one.run_id for one in await desk.store.submissions(0)] == ["run-0002"]


async def test_a_tenants_events_are_read_from_a_number_on(backend: Backend) -> None:
    async with backend.desk() as desk:
        await desk.write(events=[event(1), event(2), event(1, "other"), event(3)])
        assert await desk.store.tenant_events("default", 1, 10) == [event(2), event(3)]
        assert await desk.store.tenant_events("default", 0, 1) == [event(1)]
        assert await desk.store.event_heads() == {"default": 3, "other": 1}


async def test_the_audit_goes_from_new_to_old_page_by_page(backend: Backend) -> None:
    async with backend.desk() as desk:
        await desk.write(audits=[audit(1), audit(2), audit(9, "other")])
        await desk.write(audits=[audit(3)])
        first = await desk.store.audit("default", limit=2)
        assert [row for _, row in first] == [audit(3), audit(2)]
        rest = await desk.store.audit("default", limit=2, before=first[-1][0])
        assert [row for _, row in rest] == [audit(1)]


async def test_usage_counts_what_is_held(backend: Backend) -> None:
    async with backend.desk() as desk:
        empty = await desk.store.usage()
        assert (empty.runs, empty.active_runs, empty.schema_version) == (0, 0, NEWEST)
        await desk.write(
            plans=[PLAN],
            runs=[run(1), run(2), finished(3, 9)],
            segments=[segment(run(1), 1, 1, b"x" * 100_000)],
        )
        held = await desk.store.usage()
        assert (held.runs, held.active_runs) == (3, 2)
        assert held.bytes >= empty.bytes + 90_000  # some of it in pages that were there

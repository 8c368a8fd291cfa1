"""Resources that workers hold: what they tell, what is asked of them, and what is lost."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from astraflow.core import errors
from astraflow.core.engine.commands import (
    CloseResource,
    ExportResource,
    ExtendResource,
    NoteCopy,
)
from astraflow.core.engine.effects import CopyFailed
from astraflow.core.engine.resources import UNHEARD, check_refs, close_unlisted
from astraflow.core.fleet.resources import (
    ResourceGone,
    ResourceListed,
    ResourceRecord,
    ResourceRegistered,
)
from astraflow.core.protocol import business
from astraflow.core.runs.facts import RunFinished, TaskFailed, TaskFailure, TaskRebuilt
from astraflow.core.timestamps import parse_iso
from astraflow.core.workflow.plan import ResourceRefValue
from tests.unit.core.engine.rig import TENANT, Rig, Worker, _offer
from tests.unit.plans import make_plan

PAGE = business.PackageId("web", "1.0")
R1: Any = {"tenant": TENANT, "worker_id": "w1", "resource_id": "r1"}


def ready(resource_id: str = "r1", **fields: Any) -> business.ResourceEvent:
    fields.setdefault("run_id", "run1")
    fields.setdefault("scope", fields["run_id"])
    return business.ResourceEvent(resource_id, "ready", type="page", **fields)


def tell(worker: Worker, event: business.ResourceEvent) -> None:
    worker.live.tell(
        f"resource/{event.resource_id}", business.RESOURCE_EVENT, event, None, worker.rig.now
    )
    worker.rig.run()


def ref(worker_id: str | None, resource_id: str = "r1") -> dict[str, Any]:
    reference = {"resourceId": resource_id, "type": "page"}
    return {"resourceRef": reference if worker_id is None else {**reference, "workerId": worker_id}}


def record(rig: Rig, resource_id: str = "r1", worker: str = "w1") -> ResourceRecord:
    found = rig.engine.view.resources.find(TENANT, resource_id, worker)
    assert found is not None
    return found


def asked(worker: Worker, kind: type) -> list[Any]:
    return [frame.payload for frame in worker.rig.carried if isinstance(frame.payload, kind)]


def opened(policy: str | None = None, **settings: Any) -> tuple[Rig, Worker, Worker]:
    """A page that w1 has opened, and a second node that waits to use it: w1 has no slot for it."""
    rig = Rig(**settings)
    first, second = rig.worker("w1", per_node_limits={"t.use": 0}), rig.worker("w2")
    rig.submit(
        make_plan(2, [(0, 1)], nodes={1: {"type": "t.use", "on_resource_lost": policy}}, reads=True)
    )
    tell(first, ready(package=PAGE))
    first.finish(value=ref("w1"))
    rig.new_facts()
    return rig, first, second


class TestTold:
    def test_what_a_worker_tells_of_a_resource_is_kept(self, rig: Rig) -> None:
        worker = rig.worker("w1")
        rig.submit(make_plan(1))
        event = ready(
            size_bytes=7,
            expires_at="2026-01-15T11:00:00Z",
            node_id="n0",
            package=PAGE,
            created_at="2026-01-15T10:00:00Z",
            metadata=msgspec.Raw(b'{"k":1}'),
        )
        tell(worker, event)
        kept = record(rig)
        assert (kept.type, kept.scope, kept.run_id, kept.node_id) == ("page", "run1", "run1", "n0")
        assert (kept.package, kept.size_bytes, kept.metadata) == ("web 1.0", 7, b'{"k":1}')
        assert kept.created_at == parse_iso("2026-01-15T10:00:00Z")
        assert kept.expires_at == parse_iso("2026-01-15T11:00:00Z")
        assert [one.record for one in rig.recorded(ResourceRegistered)] == [kept]
        rig.engine.check()

    def test_a_worker_of_another_make_may_tell_less(self, rig: Rig) -> None:
        worker = rig.worker("w1")
        tell(worker, business.ResourceEvent("r1", "ready"))
        assert (record(rig).type, record(rig).expires_at) == ("resource", None)

    def test_touched_moves_its_end_and_evicting_its_state(self, rig: Rig) -> None:
        worker = rig.worker("w1")
        rig.submit(make_plan(1))
        tell(worker, ready())
        tell(worker, business.ResourceEvent("r1", "touched", expires_at="2026-01-15T12:00:00Z"))
        assert record(rig).expires_at == parse_iso("2026-01-15T12:00:00Z")
        tell(worker, business.ResourceEvent("r1", "evicting"))
        assert record(rig).state == "evicting"

    def test_an_id_that_was_registered_again_is_another_resource(self, rig: Rig) -> None:
        worker = rig.worker("w1")
        rig.submit(make_plan(1))
        tell(worker, ready(created_at="2026-01-15T10:00:00Z"))
        rig.execute(copied("copy of the first"))
        tell(worker, ready(created_at="2026-01-15T10:00:00Z", size_bytes=7))
        assert record(rig).blob == "copy of the first"
        tell(worker, ready(created_at="2026-01-15T10:05:00Z", scope="session:a"))
        assert (record(rig).blob, record(rig).scope) == (None, "session:a")
        rig.engine.check()

    @pytest.mark.parametrize("state", ["evicted", "released"])
    def test_what_is_gone_is_no_longer_found(self, state: Any, rig: Rig) -> None:
        worker = rig.worker("w1")
        rig.submit(make_plan(1))
        tell(worker, ready())
        tell(worker, business.ResourceEvent("r1", state))
        assert len(rig.engine.view.resources) == 0
        assert [one.state for one in rig.recorded(ResourceGone)] == [state]
        tell(worker, business.ResourceEvent("r1", state))
        assert len(rig.engine.view.resources) == 0

    def test_an_artifact_in_a_result_is_a_resource_that_outlives_its_run(self, rig: Rig) -> None:
        worker = rig.worker("w1")
        rig.submit(make_plan(1))
        artifact = business.ResultArtifact("r1", "w1", "file", 12, "2026-01-15T11:00:00Z")
        inline = business.ResultArtifact("r2", "w1", "text", inline=True)
        worker.finish(artifacts=(artifact, inline))
        kept = record(rig)
        assert (kept.is_artifact, kept.type, kept.size_bytes) == (True, "file", 12)
        assert (kept.run_id, kept.node_id) == ("run1", "n0")
        assert len(rig.engine.view.resources) == 1

    def test_a_new_boot_has_nothing_in_memory_whether_it_says_so_or_not(self, rig: Rig) -> None:
        worker = rig.worker("w1")
        rig.submit(make_plan(1))
        tell(worker, ready("page", package=PAGE))
        tell(worker, ready("file"))
        worker.crash()
        worker.boot()
        rig.wait(1.0)
        assert [one.resource_id for one in rig.engine.view.resources] == ["file"]

    def test_a_scheduler_that_starts_anew_does_not_take_its_workers_memory_for_lost(self) -> None:
        rig = Rig()
        worker = rig.worker("w1")
        kept = ResourceRecord(
            tenant=TENANT,
            worker_id="w1",
            resource_id="r1",
            package="web 1.0",
            scope="session",
            created_at=0,
        )
        view = rig.engine.view
        view.resources.put(kept)
        view.workers.expect(TENANT, "w1").incarnation = UNHEARD
        for is_there in (True, False):
            worker.crash()
            worker.boot()
            rig.wait(1.0)
            assert (view.resources.find(TENANT, "r1", "w1") is kept) == is_there

    def test_the_boot_of_a_stored_worker_is_known_before_it_registers(self, rig: Rig) -> None:
        rig.engine.restore_worker(TENANT, "w9", None, 4)
        found = rig.engine.view.workers.find(TENANT, "w9")
        assert found is not None
        assert found.incarnation == 4


class TestLost:
    def test_an_evicted_resource_fails_the_task_that_waits_for_it_at_once(self) -> None:
        rig, first, _ = opened()
        tell(first, business.ResourceEvent("r1", "evicted"))
        message = "worker w1 evicted it: r1"
        error = TaskFailure("E.RESOURCE.LOST", "INFRASTRUCTURE", message, False)
        assert rig.new_facts() == [TaskFailed(0, 1, 0, error), RunFinished(0, "failed", error)]

    def test_another_resource_that_is_evicted_does_not_touch_it(self) -> None:
        rig, first, _ = opened()
        tell(first, ready("other"))
        tell(first, business.ResourceEvent("other", "evicted"))
        assert rig.active() == ["run1"]

    def test_with_rebuild_the_maker_runs_again_on_a_worker_that_is_there(self) -> None:
        rig, first, second = opened("rebuild")
        tell(first, business.ResourceEvent("r1", "evicted"))
        assert TaskRebuilt(0, 1, "r1", "worker w1 evicted it", (0,)) in rig.new_facts()
        maker = second if second.tasks() else first
        assert maker.tasks()[-1] == ("run1.0", 2)
        maker = second if second.tasks() else first
        tell(second, ready("r2", package=PAGE))
        maker.finish(value=ref("w2", "r2"))
        assert second.tasks()[-1] == ("run1.1", 1)
        second.finish()
        assert rig.active() == []

    def test_the_default_policy_is_the_schedulers(self) -> None:
        rig, first, _ = opened(resource_lost="rebuild")
        tell(first, business.ResourceEvent("r1", "evicted"))
        assert any(isinstance(fact, TaskRebuilt) for fact in rig.new_facts())

    def test_a_worker_that_does_not_come_back_has_it_made_again_elsewhere(self) -> None:
        rig, first, second = opened("rebuild", resource_grace_s=20.0)
        first.crash()
        rig.wait(26.0)
        rebuilt = [fact for fact in rig.new_facts() if isinstance(fact, TaskRebuilt)]
        assert [fact.again for fact in rebuilt] == [(0,)]
        assert second.tasks() == [("run1.0", 2)]

    @pytest.mark.parametrize("code", ["E.RESOURCE.LOST", "E.RESOURCE.EXPIRED"])
    def test_a_worker_that_says_so_when_it_is_to_use_it_has_it_made_again(self, code: str) -> None:
        rig = Rig(resource_lost="rebuild")
        worker = rig.worker("w1")
        rig.submit(make_plan(2, [(0, 1)], reads=True))
        worker.finish(value=ref("w1"))
        error = business.AttemptError(code, "INFRASTRUCTURE", "there is no r1 any more", False)
        worker.finish(status="FAILED", error=error)
        assert worker.tasks()[-1] == ("run1.0", 2)

    def test_with_fail_it_is_the_end_of_the_task(self, rig: Rig) -> None:
        worker = rig.worker("w1")
        rig.submit(make_plan(2, [(0, 1)], reads=True))
        worker.finish(value=ref("w1"))
        error = business.AttemptError("E.RESOURCE.LOST", "INFRASTRUCTURE", "gone", False)
        worker.finish(status="FAILED", error=error)
        assert rig.active() == []

    def test_sticky_work_that_says_so_fails_with_its_worker(self) -> None:
        from astraflow.core.workflow.plan import AffinityHint

        rig = Rig(affinity_grace_s=25.0)
        first, second = rig.worker("w1"), rig.worker("w2")
        node = {"affinity": AffinityHint("model", "sticky"), "on_resource_lost": "fail"}
        rig.submit(make_plan(1, nodes={0: node}), "run1")
        holder = first if first.tasks() else second
        holder.finish()
        holder.crash()
        rig.wait(16.0)
        rig.submit(make_plan(1, nodes={0: node}), "run2")
        rig.wait(15.0)
        assert rig.active() == []
        [failed] = [fact for fact in rig.facts("run2") if isinstance(fact, TaskFailed)]
        assert failed.error.code == "E.RESOURCE.LOST"


class TestPlaced:
    def test_a_reference_without_a_worker_goes_where_the_resource_is(self, rig: Rig) -> None:
        rig.worker("w1", slots=1)
        second = rig.worker("w2", slots=1)
        rig.submit(make_plan(1), "filler")
        tell(second, ready(scope="session:a", run_id=None))
        node = {"resource_refs": (ResourceRefValue("r1"),)}
        rig.submit(make_plan(1, nodes={0: node}))
        assert second.tasks()[-1] == ("run1.0", 1)
        assert second.started[-1].resource_refs == (business.RequiredResource("r1", "w2", "page"),)

    def test_a_submission_whose_resources_are_on_two_workers_is_refused(self, rig: Rig) -> None:
        rig.worker("w1")
        refs = (ResourceRefValue("a", "w1"), ResourceRefValue("b", "w2"))
        rig.submit(make_plan(1, nodes={0: {"resource_refs": refs}}))
        error = rig.replies[-1].error
        assert isinstance(error, errors.Conflict)
        assert (error.code, error.code.http) == (errors.RESOURCE_CONFLICT, 409)

    @pytest.mark.parametrize("state", ["unknown", "lost"])
    def test_a_submission_for_a_worker_that_is_away_is_refused_for_now(self, state: str) -> None:
        rig = Rig()
        if state == "lost":
            rig.worker("w1").crash()
            rig.wait(16.0)
        refs = (ResourceRefValue("a", "w1"),)
        rig.submit(make_plan(1, nodes={0: {"resource_refs": refs}}))
        error = rig.replies[-1].error
        assert isinstance(error, errors.Unavailable)
        assert error.code.http == 503

    def test_references_to_one_worker_that_is_there_are_fine(self, rig: Rig) -> None:
        rig.worker("w1")
        check_refs(rig.engine.view, TENANT, [ResourceRefValue("a", "w1"), ResourceRefValue("b")])


class TestCleanup:
    def test_the_end_of_a_run_is_told_to_every_worker_that_holds_something_of_it(self) -> None:
        rig = Rig()
        worker = rig.worker("w1")
        rig.submit(make_plan(1))
        tell(worker, ready())
        worker.finish()
        cleanups = asked(worker, business.ResourceCleanup)
        assert cleanups == [business.ResourceCleanup("run1", None, "its run has ended")]

    def test_a_run_that_left_nothing_is_nobodys_concern(self, rig: Rig) -> None:
        worker = rig.worker("w1")
        rig.submit(make_plan(1))
        worker.finish()
        assert asked(worker, business.ResourceCleanup) == []

    def test_what_is_told_after_the_run_has_ended_is_cleaned_up_too(self, rig: Rig) -> None:
        worker = rig.worker("w1")
        tell(worker, ready(run_id="run-long-over"))
        assert asked(worker, business.ResourceCleanup)[0].scope == "run-long-over"

    def test_a_worker_that_was_away_is_told_when_it_is_back(self, rig: Rig) -> None:
        worker = rig.worker("w1")
        rig.submit(make_plan(1))
        tell(worker, ready())
        worker.crash()
        rig.cancel()
        rig.wait(60.0)
        assert rig.active() == []
        assert asked(worker, business.ResourceCleanup) == []
        worker.boot()
        rig.wait(1.0)
        assert [one.scope for one in asked(worker, business.ResourceCleanup)] == ["run1"]

    def test_what_is_not_said_to_be_gone_is_asked_for_by_name(self) -> None:
        rig = Rig(cleanup_overdue_s=10.0)
        worker = rig.worker("w1")
        rig.submit(make_plan(1))
        tell(worker, ready())
        worker.finish()
        rig.wait(11.0)
        asked_for = [one.resource_id for one in asked(worker, business.ResourceCleanup)]
        assert asked_for == [None, "r1"]

    def test_what_only_a_refused_result_lists_is_closed(self, rig: Rig) -> None:
        worker = rig.worker("w1")
        rig.submit(make_plan(1))
        tell(worker, ready())
        view = rig.engine.view
        close_unlisted(view, TENANT, "w1", [business.ResultArtifact("r1", "w1", "page")])
        assert record(rig).state == "evicting"
        rig.run()
        assert asked(worker, business.ResourceCleanup)[-1].resource_id == "r1"

    def test_what_an_earlier_result_listed_is_not_closed_when_it_comes_again(self) -> None:
        rig = Rig()
        worker = rig.worker("w1")
        rig.submit(make_plan(1))
        tell(worker, ready())
        rig.engine.view.record_resource(ResourceListed(TENANT, rig.at, "w1", "r1"))
        close_unlisted(rig.engine.view, TENANT, "w1", [business.ResultArtifact("r1", "w1", "page")])
        assert record(rig).state == "ready"

    def test_artifacts_and_sessions_stay(self, rig: Rig) -> None:
        worker = rig.worker("w1")
        tell(worker, ready("kept", scope="session:a", run_id=None))
        worker.crash()
        worker.boot()
        rig.wait(1.0)
        assert asked(worker, business.ResourceCleanup) == []


class TestAsked:
    def test_closing_tells_its_worker_and_again_when_it_was_away(self, rig: Rig) -> None:
        worker = rig.worker("w1")
        tell(worker, ready(scope="session:a", run_id=None))
        worker.crash()
        rig.wait(20.0)
        rig.execute(CloseResource(**R1, by="ann"))
        rig.wait(1.0)
        assert record(rig).state == "evicting"
        assert asked(worker, business.ResourceCleanup) == []
        worker.boot()
        rig.wait(1.0)
        assert [one.resource_id for one in asked(worker, business.ResourceCleanup)] == ["r1"]

    def test_closing_one_of_a_worker_that_is_there_is_told_at_once(self, rig: Rig) -> None:
        worker = rig.worker("w1")
        tell(worker, ready(scope="session:a", run_id=None))
        rig.execute(CloseResource(**R1, by="ann"))
        rig.wait(0.1)
        assert asked(worker, business.ResourceCleanup)[0].reason == "closed by ann"

    def test_prolonging_tells_its_worker(self, rig: Rig) -> None:
        worker = rig.worker("w1")
        tell(worker, ready(scope="session:a", run_id=None))
        rig.execute(ExtendResource(**R1, expires_at=5_000))
        rig.wait(0.1)
        assert asked(worker, business.ResourceTouch) == [
            business.ResourceTouch("r1", "1970-01-01T00:00:05.000Z")
        ]
        assert record(rig).expires_at == 5_000

    def test_an_export_goes_to_its_worker_and_its_copy_is_noted(self, rig: Rig) -> None:
        worker = rig.worker("w1")
        tell(worker, ready(scope="session:a", run_id=None))
        rig.execute(ExportResource(**R1))
        rig.wait(0.1)
        assert asked(worker, business.ResourceExport)[0].upload_url == "https://up.example/r1"
        rig.execute(copied("artifacts/r1"))
        assert record(rig).blob == "artifacts/r1"

    def test_what_lives_in_memory_has_no_bytes_to_export(self, rig: Rig) -> None:
        worker = rig.worker("w1")
        tell(worker, ready(scope="session:a", run_id=None, package=PAGE))
        with pytest.raises(errors.Conflict):
            rig.execute(ExportResource(**R1))

    def test_a_worker_that_is_away_can_neither_prolong_nor_export(self, rig: Rig) -> None:
        rig.worker("w1")
        kept = ResourceRecord(
            tenant=TENANT, worker_id="w9", resource_id="r9", scope="session:a", created_at=0
        )
        rig.engine.restore_resource(kept)
        who: Any = {"tenant": TENANT, "worker_id": "w9", "resource_id": "r9", "by": "ann"}
        for command in (ExportResource(**who), ExtendResource(**who, expires_at=1)):
            with pytest.raises(errors.Unavailable):
                rig.execute(command)
        rig.execute(CloseResource(**who))
        assert record(rig, "r9", "w9").state == "evicting"


class TestResults:
    def test_a_result_over_the_inline_limit_fails_its_task(self) -> None:
        rig = Rig(inline_limit_bytes=20)
        worker = rig.worker("w1")
        rig.submit(make_plan(1))
        worker.finish(value="x" * 30)
        [failed] = [fact for fact in rig.facts() if isinstance(fact, TaskFailed)]
        assert failed.error.code == "E.RESULT.TOO_LARGE"

    def test_an_inline_artifact_of_a_type_that_must_stay_fails_its_task(self) -> None:
        rig = Rig(forced_reference_types=frozenset({"video"}))
        worker = rig.worker("w1")
        rig.submit(make_plan(1))
        worker.finish(artifacts=(business.ResultArtifact("r1", "w1", "video", inline=True),))
        [failed] = [fact for fact in rig.facts() if isinstance(fact, TaskFailed)]
        assert "must stay on their worker: video" in failed.error.message


def copied(blob: str = "blob") -> NoteCopy:
    return NoteCopy(**R1, blob=blob)


def durable(rig: Rig, **metadata: Any) -> Worker:
    """A worker whose node has made a file that shall outlive it, and a second node that waits to read it."""
    holder = rig.worker("w1", per_node_limits={"t.use": 0})
    rig.submit(make_plan(2, [(0, 1)], nodes={1: {"type": "t.use"}}, reads=True))
    raw = msgspec.Raw(msgspec.json.encode({"durable": True, **metadata}))
    holder.finish(
        value=ref("w1"), artifacts=(business.ResultArtifact("r1", "w1", "file", 7, metadata=raw),)
    )
    return holder


class TestCopies:
    def test_a_durable_file_is_copied_as_soon_as_it_is_there(self) -> None:
        rig = Rig(keeps_copies=True)
        holder = durable(rig)
        assert asked(holder, business.ResourceExport) == [
            business.ResourceExport("r1", "https://up.example/r1")
        ]

    @pytest.mark.parametrize("metadata", [{"durable": False}, {"durable": "yes"}])
    def test_what_is_not_said_to_be_durable_is_not_copied(self, metadata: dict[str, Any]) -> None:
        rig = Rig(keeps_copies=True)
        holder = durable(rig, **metadata)
        assert asked(holder, business.ResourceExport) == []

    def test_a_copy_that_did_not_come_is_asked_for_after_the_next_session(self) -> None:
        rig = Rig(keeps_copies=True)
        holder = durable(rig)
        holder.crash()
        holder.boot()
        rig.wait(1.0)
        assert len(asked(holder, business.ResourceExport)) == 2

    def test_a_task_reads_the_copy_on_another_worker_when_the_owner_does_not_come_back(
        self,
    ) -> None:
        rig = Rig(resource_grace_s=20.0, keeps_copies=True)
        holder = durable(rig, mime="text/plain")
        rig.execute(copied())
        second = rig.worker("w2")
        holder.crash()
        rig.wait(26.0)
        assert second.tasks() == [("run1.1", 1)]
        [wired] = second.started[0].resource_refs
        assert (wired.resource_id, wired.worker_id) == ("r1", "w2")
        assert bytes(wired.metadata) == b'{"copyUrl":"https://down.example/r1"}'
        second.finish()
        assert rig.active() == []

    def test_a_task_that_waits_for_a_copy_goes_to_the_owner_that_is_back(self) -> None:
        rig = Rig(resource_grace_s=20.0, keeps_copies=True)
        holder = durable(rig)
        rig.execute(copied())
        holder.crash()
        rig.wait(26.0)  # queued for any worker that fetches the copy, and there is none
        holder.offer = _offer(4)
        holder.boot()
        rig.worker("w2")
        rig.wait(1.0)
        assert [one.task_id for one in holder.started] == ["run1.0", "run1.1"]
        assert rig.workers[f"{TENANT}/w2"].started == []

    def test_later_tasks_go_to_the_worker_that_fetched_it(self) -> None:
        rig = Rig(resource_grace_s=20.0, keeps_copies=True)
        durable(rig)
        rig.execute(copied())
        rig.engine.view.resources.set_adrift(record(rig))
        rig.worker("w2")
        third = rig.worker("w3")
        tell(third, ready())
        located = rig.engine.view.locate(TENANT, [ResourceRefValue("r1", "w1", "file")])
        assert [one.worker_id for one in located] == ["w3"]

    def test_an_export_that_failed_is_told_to_those_who_wait(self) -> None:
        rig = Rig(keeps_copies=True)
        holder = durable(rig)
        tell(holder, business.ResourceEvent("r1", "touched", error="the disk is gone"))
        assert rig.shell_effects[-1] == CopyFailed((TENANT, "w1", "r1"), "the disk is gone")
        tell(holder, business.ResourceEvent("r1", "evicted"))
        assert rig.shell_effects[-1] == CopyFailed((TENANT, "w1", "r1"), "it is evicted")

    def test_without_a_copy_it_is_lost(self) -> None:
        rig = Rig(resource_grace_s=20.0, keeps_copies=True)
        holder = durable(rig)
        rig.worker("w2")
        holder.crash()
        rig.wait(26.0)
        [failed] = [fact for fact in rig.facts() if isinstance(fact, TaskFailed)]
        assert failed.error.code == "E.RESOURCE.LOST"

    def test_an_owner_that_is_back_is_the_owner_again(self) -> None:
        rig = Rig(keeps_copies=True)
        holder = durable(rig)
        rig.execute(copied())
        rig.engine.view.resources.set_adrift(record(rig))
        holder.crash()
        holder.boot()
        rig.wait(1.0)
        assert not rig.engine.view.resources.is_adrift(record(rig))

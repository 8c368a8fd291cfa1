"""Cancel, grace, kill, and what becomes of the neighbours in a host."""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec
import pytest

from astraflow.core.ids import TaskId
from astraflow.core.protocol import business
from astraflow.worker.hosts import HostSpec
from tests.worker.hosts.stage import NASTY, error_of, staged, value_of

ISOLATED = msgspec.structs.replace(NASTY, isolation="attempt")
GRACE_S = 60.0


@pytest.mark.parametrize("node_type", ["nasty.waits", "nasty.waits_in_a_thread", "core.sleep"])
async def test_an_attempt_that_ends_when_asked_is_cancelled_and_its_host_lives_on(
    tmp_path: Path, node_type: str
) -> None:
    async with staged(tmp_path) as stage:
        stage.start(node_type, {"seconds": 600})
        await stage.until_ready()
        stage.pool.cancel(TaskId("t1"), 1, GRACE_S, "cancel")
        result = await stage.outcome()
        assert (result.status, result.error) == ("CANCELLED", None)
        assert stage.pool.stats().died_total == 0


async def test_an_attempt_that_goes_on_is_killed_after_its_grace_and_says_so(
    tmp_path: Path,
) -> None:
    async with staged(tmp_path, min_grace_s=0.0) as stage:
        stage.start("nasty.swallows_cancel")
        await stage.up()
        stage.pool.cancel(TaskId("t1"), 1, 0.05, "cancel")
        error = error_of(await stage.outcome())
        assert (error.code, error.category) == ("CANCEL_TIMEOUT", "CANCELLED")
        assert stage.pool.stats().hosts == 0


async def test_an_attempt_that_was_promised_no_grace_is_simply_stopped(tmp_path: Path) -> None:
    """The agent knows what for: a timeout, a drain, or a dispatch that was taken back."""

    async with staged(tmp_path, min_grace_s=0.05) as stage:
        stage.start("nasty.swallows_cancel")
        await stage.up()
        stage.pool.cancel(TaskId("t1"), 1, 0, "timeout")
        assert (await stage.outcome()).status == "CANCELLED"


async def test_a_host_whose_loop_is_blocked_is_killed_after_the_grace(tmp_path: Path) -> None:
    started = tmp_path / "started"

    async with staged(tmp_path) as stage:
        stage.start("nasty.blocks_the_loop", {"started": str(started)})
        await stage.until_exists(started)
        stage.pool.cancel(TaskId("t1"), 1, 0.05, "cancel")
        assert error_of(await stage.outcome()).code == "CANCEL_TIMEOUT"


async def test_the_kill_of_one_attempt_is_the_loss_of_the_others_in_its_host(
    tmp_path: Path,
) -> None:
    async with staged(tmp_path, min_grace_s=0.05) as stage:
        stage.start("nasty.swallows_cancel")
        stage.start("nasty.waits", task="neighbour")
        await stage.up()
        stage.pool.cancel(TaskId("t1"), 1, 0.01, "cancel")
        assert error_of(await stage.outcome()).code == "CANCEL_TIMEOUT"
        lost = error_of(await stage.outcome("neighbour"))
        assert (lost.code, lost.category) == ("E.TASK.HOST_LOST", "INFRASTRUCTURE")


async def test_an_attempt_without_grace_is_asked_first_so_that_its_host_lives_on(
    tmp_path: Path,
) -> None:
    async with staged(tmp_path, min_grace_s=GRACE_S) as stage:
        stage.start("nasty.waits")
        stage.start("nasty.waits", task="neighbour")
        await stage.up()
        await stage.up("neighbour")
        stage.pool.cancel(TaskId("t1"), 1, 0, "timeout")
        assert (await stage.outcome()).status == "CANCELLED"
        assert stage.pool.stats().attempts == 1


async def test_several_attempts_in_a_host_that_crashes_are_all_lost(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        stage.start("nasty.waits", task="innocent")
        await stage.up("innocent")
        stage.start("nasty.segfault", task="guilty")
        codes = {error_of(await stage.outcome(task)).code for task in ("innocent", "guilty")}
        assert codes == {"E.TASK.HOST_LOST"}


async def test_what_was_lost_before_runs_in_a_host_of_its_own_where_the_guilty_one_is_found(
    tmp_path: Path,
) -> None:
    async with staged(tmp_path) as stage:
        stage.start("nasty.waits", task="shared")
        stage.start("nasty.environment", task="innocent", attempt=2)
        stage.start("nasty.segfault", task="guilty", attempt=2)
        assert error_of(await stage.outcome("guilty")).code == "E.RUNNER.CRASHED"
        assert value_of(await stage.outcome("innocent"))
        assert stage.pool.stats().started_total == 3
        assert "shared" not in stage.results


async def test_many_short_attempts_that_were_lost_are_served_by_few_hosts_one_at_a_time(
    tmp_path: Path,
) -> None:
    async with staged(tmp_path, max_starting=1) as stage:
        for number in range(20):
            stage.start("core.noop", {"n": number}, task=f"t{number}", attempt=2)
        for number in range(20):
            assert value_of(await stage.outcome(f"t{number}")) == {"n": number}
        assert stage.pool.stats().started_total <= 2


async def test_long_attempts_that_were_lost_get_a_host_each(tmp_path: Path) -> None:
    async with staged(tmp_path, max_starting=1) as stage:
        for task in ("a", "b", "c"):
            stage.start("nasty.waits", task=task, attempt=2)
        for task in ("a", "b", "c"):
            await stage.up(task)
        assert stage.pool.stats().hosts == 3


async def test_an_attempt_after_a_failure_shares_a_host_as_before(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        await stage.outcome_of("nasty.environment")
        await stage.outcome_of("nasty.environment", task="t2", attempt=2, failures=1)
        assert stage.pool.stats().started_total == 1


async def test_a_package_may_ask_for_a_host_per_attempt(tmp_path: Path) -> None:
    async with staged(tmp_path, ISOLATED) as stage:
        for task in ("a", "b"):
            await stage.outcome_of("nasty.environment", task=task)
        assert stage.pool.stats().started_total == 2


async def test_attempts_wait_when_all_hosts_are_taken_and_are_started_when_one_is_free(
    tmp_path: Path,
) -> None:
    async with staged(tmp_path, ISOLATED, max_hosts=1) as stage:
        for task in ("a", "b", "c"):
            stage.start("nasty.environment", task=task)
        assert stage.pool.stats().waiting == 2
        for task in ("a", "b", "c"):
            assert value_of(await stage.outcome(task))


async def test_a_host_whose_attempt_waits_for_a_call_takes_no_place_from_the_call(
    tmp_path: Path,
) -> None:
    async with staged(tmp_path, ISOLATED, max_hosts=1) as stage:
        stage.start("nasty.thread_middleware", task="caller", chain_index=0)
        stage.start("nasty.environment", task="waits")
        await stage.until(lambda: stage.calls)
        assert value_of(await stage.outcome("waits")), "the call was open before it could begin"
        assert value_of(await stage.outcome_of("nasty.environment", task="called"))
        call = stage.calls[0]
        named = (call.run_id, call.task_id, call.attempt, call.request_id)
        stage.pool.answer(business.NextResponse(*named, msgspec.Raw(b"[1]")))
        assert value_of(await stage.outcome("caller")) == {"answer": [1]}


async def test_an_idle_host_makes_room_for_another_package(tmp_path: Path) -> None:
    async with staged(tmp_path, max_hosts=1) as stage:
        await stage.outcome_of("core.noop")
        assert value_of(await stage.outcome_of("nasty.environment", task="t2"))
        assert stage.pool.stats().hosts == 1


async def test_a_host_without_work_is_ended_after_its_idle_time(tmp_path: Path) -> None:
    async with staged(tmp_path, idle_timeout_s=0.0) as stage:
        await stage.outcome_of("core.noop")
        await stage.until_no_hosts()
        assert value_of(await stage.outcome_of("core.echo", {"value": 1}, task="t2"))


async def test_an_attempt_that_waits_for_a_host_can_be_cancelled_and_killed(tmp_path: Path) -> None:
    async with staged(tmp_path, ISOLATED, max_hosts=1) as stage:
        for task in ("running", "cancelled", "killed"):
            stage.start("nasty.waits", task=task)
        stage.pool.cancel(TaskId("cancelled"), 1, GRACE_S, "cancel")
        stage.pool.kill(TaskId("killed"), 1)
        assert (await stage.outcome("cancelled")).status == "CANCELLED"
        await stage.until(lambda: stage.goners == [("killed", 1)])
        assert stage.pool.stats().waiting == 0


@pytest.mark.parametrize("spec", [NASTY, ISOLATED])
@pytest.mark.parametrize("how", ["cancel", "kill"])
async def test_an_attempt_whose_host_is_not_ready_is_never_started(
    tmp_path: Path, how: str, spec: HostSpec
) -> None:
    began = tmp_path / "began"

    async with staged(tmp_path, spec) as stage:
        stage.start("nasty.blocks_the_loop", {"started": str(began)})
        assert stage.pool.stats().starting == 1
        if how == "cancel":
            stage.pool.cancel(TaskId("t1"), 1, GRACE_S, "cancel")
            assert (await stage.outcome()).status == "CANCELLED"
        else:
            stage.pool.kill(TaskId("t1"), 1)
            await stage.until(lambda: stage.goners == [("t1", 1)])
        if spec is NASTY:
            assert stage.pool.stats().starting == 1, "its end was told before it could begin"
        assert value_of(await stage.outcome_of("nasty.environment", task="t2"))
        assert not began.exists()
        if spec is NASTY:
            assert stage.pool.stats().died_total == 0, "the host serves the next one"
        else:
            await stage.until_no_hosts()


async def test_the_kill_of_an_attempt_that_is_not_there_is_told_as_done(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        stage.pool.kill(TaskId("nobody"), 3)
        await stage.until(lambda: stage.goners == [("nobody", 3)])


async def test_closing_a_pool_ends_everything_that_runs(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        stage.start("nasty.waits")
        stage.start("core.sleep", {"seconds": 600}, task="t2")
        await stage.up()
    assert sorted(stage.goners) == [("t1", 1), ("t2", 1)]


class TestStarting:
    async def test_a_package_that_cannot_be_imported_fails_its_attempts_with_the_reason(
        self, tmp_path: Path
    ) -> None:
        folder = tmp_path / "broken"
        folder.mkdir()
        (folder / "manifest.json").write_text('{"nodes": [{"type": "broken.node"}]}')
        (folder / "broken.py").write_text("import no_such_module_anywhere")
        spec = HostSpec("broken", "1.0.0", Path(sys.executable), folder)

        async with staged(tmp_path / "data", spec, start_backoff_s=0.0) as stage:
            error = error_of(await stage.outcome_of("broken.node"))
            assert (error.code, error.category) == ("E.RUNNER.FAILURE", "CONFIGURATION")
            assert "no_such_module_anywhere" in error.message
            assert error.stack is not None
            (folder / "broken.py").write_text(
                "from astraflow_sdk import node\n@node('broken.node')\ndef mended(): return {}"
            )
            assert value_of(await stage.outcome_of("broken.node", task="t2")) == {}

    async def test_a_package_that_dies_while_it_is_imported_tells_its_last_words(
        self, tmp_path: Path
    ) -> None:
        folder = tmp_path / "deadly"
        folder.mkdir()
        (folder / "manifest.json").write_text('{"nodes": [{"type": "deadly.node"}]}')
        (folder / "deadly.py").write_text("import os; os.write(2, b'my last words'); os._exit(9)")
        spec = HostSpec("deadly", "1.0.0", Path(sys.executable), folder)

        async with staged(tmp_path / "data", spec) as stage:
            for task in ("a", "b"):
                stage.start("deadly.node", task=task)
            for task in ("a", "b"):
                error = error_of(await stage.outcome(task))
                assert (error.code, error.stack) == ("E.RUNNER.CRASHED", "my last words")

    async def test_a_package_that_does_not_load_in_time_fails_its_attempts(
        self, tmp_path: Path
    ) -> None:
        folder = tmp_path / "slow"
        folder.mkdir()
        (folder / "manifest.json").write_text('{"nodes": [{"type": "slow.node"}]}')
        (folder / "slow.py").write_text("import threading; threading.Event().wait()")
        spec = HostSpec("slow", "1.0.0", Path(sys.executable), folder)

        async with staged(tmp_path / "data", spec, start_timeout_s=0.2) as stage:
            error = error_of(await stage.outcome_of("slow.node"))
            assert error.code == "E.RUNNER.CRASHED"
            assert "in time" in error.message

    async def test_an_interpreter_that_is_not_there_fails_the_attempt(self, tmp_path: Path) -> None:
        spec = msgspec.structs.replace(NASTY, python=Path("/no/such/python"))

        async with staged(tmp_path, spec) as stage:
            error = error_of(await stage.outcome_of("nasty.waits"))
            assert error.code == "E.RUNNER.CRASHED"
            assert "/no/such/python" in error.message

    async def test_a_package_that_is_not_there_fails_the_attempt(self, tmp_path: Path) -> None:
        async with staged(tmp_path) as stage:
            error = error_of(await stage.outcome_of("unknown.node"))
            assert (error.code, error.category) == ("E.PKG.NOT_FOUND", "CONFIGURATION")

    async def test_a_node_type_that_the_package_does_not_have_fails_the_attempt(
        self, tmp_path: Path
    ) -> None:
        async with staged(tmp_path) as stage:
            error = error_of(await stage.outcome_of("core.unheard"))
            assert (error.code, error.category) == ("E.CMD.UNKNOWN", "CONFIGURATION")

    async def test_starts_that_fail_are_spaced_out(self, tmp_path: Path) -> None:
        spec = msgspec.structs.replace(NASTY, python=Path("/no/such/python"))

        async with staged(tmp_path, spec, start_backoff_s=GRACE_S) as stage:
            await stage.outcome_of("nasty.waits")
            stage.start("nasty.waits", task="t2")
            assert stage.pool.stats().waiting == 1

    async def test_a_host_that_cannot_be_written_down_is_not_used(self, tmp_path: Path) -> None:
        (tmp_path / "hosts").write_text("a file where the folder of records should be")

        async with staged(tmp_path) as stage:
            error = error_of(await stage.outcome_of("core.noop"))
            assert error.code == "E.RUNNER.CRASHED"
            assert stage.pool.stats().hosts == 0

    async def test_a_folder_may_be_given_from_where_the_worker_stands(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)

        async with staged(Path("data")) as stage:
            result = await stage.outcome_of("core.file", {"text": "x"})
            (kept,) = stage.registry.list()
            assert kept.resource_id == result.artifacts[0].resource_id
            path = stage.registry.files.path_of(kept.token, kept.name)
            assert (tmp_path / path).is_relative_to(tmp_path / "data" / "resources")
            assert path.read_text() == "x"

"""What package code may do to its host, and the one typed outcome that follows."""

from __future__ import annotations

import signal
from pathlib import Path

import msgspec
import pytest

from astraflow.core.ids import TaskId
from tests.worker.hosts.stage import NASTY, error_of, is_alive, staged, value_of, wait_until_dead

SMALL = msgspec.structs.replace(NASTY, memory_limit_bytes=150 * 1024 * 1024)


@pytest.mark.parametrize(
    ("node_type", "parameters", "says"),
    [
        ("nasty.not_a_frame", {}, "what it wrote into its channel"),
        ("nasty.huge_frame", {}, "a frame of 1073741824 bytes"),
        ("nasty.thread_writes", {}, "what it wrote into its channel"),
        ("nasty.strange_frames", {}, "too many frames that make no sense"),
        ("nasty.exits", {"code": 0}, "with code 0"),
        ("nasty.exits", {"code": 7}, "with code 7"),
        ("nasty.segfault", {}, "SIGSEGV"),
        ("nasty.signal", {"number": signal.SIGTERM}, "SIGTERM"),
        ("nasty.signal", {"number": signal.SIGKILL}, "SIGKILL"),
        ("nasty.signal", {"number": signal.SIGRTMIN + 3}, "37"),
    ],
)
async def test_a_host_that_dies_alone_with_an_attempt_is_the_crash_of_that_attempt(
    tmp_path: Path, node_type: str, parameters: object, says: str
) -> None:
    async with staged(tmp_path) as stage:
        error = error_of(await stage.outcome_of(node_type, parameters))
        assert (error.code, error.category) == ("E.RUNNER.CRASHED", "INFRASTRUCTURE")
        assert says in error.message
        assert stage.pool.stats().hosts == 0


async def test_the_stack_of_a_crash_in_c_is_told(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        error = error_of(await stage.outcome_of("nasty.segfault"))
        assert error.stack is not None
        assert "Segmentation fault" in error.stack
        assert "in segfault" in error.stack


async def test_a_result_that_was_written_before_the_death_counts(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        assert value_of(await stage.outcome_of("nasty.written_then_dead")) == {}


async def test_the_first_result_counts_and_a_second_is_dropped(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        assert value_of(await stage.outcome_of("nasty.twice")) == {"said": "first"}
        await stage.outcome_of("nasty.environment", task="t2")  # the second has been read by now
        assert stage.pool.counters == {"frame of no attempt": 1}


async def test_a_result_for_a_task_of_another_host_changes_nothing_there(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        stage.start("core.sleep", {"seconds": 600}, task="other")
        result = await stage.outcome_of("nasty.for_another", {"other": "other"})
        assert value_of(result) == {"said": "mine"}
        assert "other" not in stage.results
        assert stage.pool.counters == {"frame of no attempt": 1}


async def test_a_result_that_is_no_result_fails_its_attempt_alone(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        stage.start("nasty.waits", task="neighbour")
        error = error_of(await stage.outcome_of("nasty.bad_result"))
        assert error.code == "E.RESULT.INVALID"
        assert stage.results.keys() == {"t1"}


@pytest.mark.parametrize(
    ("what", "code"),
    [
        ("object", "E.RESULT.INVALID"),
        ("nan", "E.RESULT.INVALID"),
        ("infinity", "E.RESULT.INVALID"),
        ("half", "E.RESULT.INVALID"),
        ("circle", "E.RESULT.INVALID"),
        ("large", "E.RESULT.TOO_LARGE"),
    ],
)
async def test_what_cannot_be_returned_fails_the_attempt_with_a_code(
    tmp_path: Path, what: str, code: str
) -> None:
    async with staged(tmp_path) as stage:
        error = error_of(await stage.outcome_of("nasty.returns", {"what": what}))
        assert (error.code, error.category, error.retryable) == (code, "USER_CODE", False)
        assert value_of(await stage.outcome_of("nasty.returns", {"what": "list"}, task="t2"))


@pytest.mark.parametrize(
    ("what", "value"),
    [("nothing", {"result": None}), ("list", {"result": [1, 2]}), ("seed", {"n": 1})],
)
async def test_what_is_no_object_is_returned_as_a_result(
    tmp_path: Path, what: str, value: object
) -> None:
    async with staged(tmp_path) as stage:
        assert value_of(await stage.outcome_of("nasty.returns", {"what": what})) == value


async def test_an_error_without_words_is_still_told(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        error = error_of(await stage.outcome_of("nasty.raises", {"what": "mute"}))
        assert error.code == "E.RUNNER.FAILURE"
        assert error.message == "Mute: its text cannot be told, because __str__ raised RuntimeError"


async def test_a_stack_is_cut_at_its_limit(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        error = error_of(await stage.outcome_of("nasty.raises", {"what": "deep"}))
        assert error.stack is not None
        assert len(error.stack) <= 64 * 1024
        assert error.stack.startswith("[… ")


async def test_a_handler_that_asks_to_exit_fails_and_its_host_lives_on(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        error = error_of(await stage.outcome_of("nasty.says_exit"))
        assert error.message == "SystemExit: enough"
        assert stage.pool.stats().died_total == 0


async def test_too_many_open_files_fail_the_attempt_and_its_host_lives_on(tmp_path: Path) -> None:
    async with staged(tmp_path, open_files=64) as stage:
        error = error_of(await stage.outcome_of("nasty.opens_files"))
        assert "Too many open files" in error.message
        assert value_of(await stage.outcome_of("nasty.environment", task="t2"))


async def test_memory_beyond_the_limit_kills_the_host_and_says_so(tmp_path: Path) -> None:
    async with staged(tmp_path, SMALL, memory_sample_s=0.0) as stage:
        error = error_of(await stage.outcome_of("nasty.allocates", {"piece": 4 * 1024 * 1024}))
        assert (error.code, error.category) == ("E.RUNNER.OOM", "INFRASTRUCTURE")
        assert str(SMALL.memory_limit_bytes) in error.message or "memory" in error.message


async def test_one_allocation_far_beyond_the_limit_fails_before_it_hurts(tmp_path: Path) -> None:
    async with staged(tmp_path, SMALL) as stage:
        error = error_of(await stage.outcome_of("nasty.allocates", {"piece": 3 * 1024**3}))
        assert error.code == "E.RUNNER.OOM"
        assert stage.pool.stats().died_total == 0


async def test_a_flood_past_python_is_dropped_and_counted_and_the_attempt_ends(
    tmp_path: Path,
) -> None:
    async with staged(tmp_path, output_bytes_per_s=10_000) as stage:
        given = {"lines": 2000, "text": "x" * 500}
        assert value_of(await stage.outcome_of("nasty.writes_past_python", given))
        told = len(stage.texts("stdout"))
        assert stage.dropped() > 1000
        assert told <= 200


async def test_a_flood_of_prints_is_dropped_and_counted(tmp_path: Path) -> None:
    async with staged(tmp_path, output_bytes=5_000, output_bytes_per_s=100_000) as stage:
        await stage.outcome_of("nasty.prints", {"lines": 1000, "text": "0123456789"})
        told = len(stage.texts("stdout"))
        assert told == 454  # of eleven bytes each, until five thousand
        assert stage.dropped() == 1000 - told


async def test_nothing_of_the_workers_own_settings_is_seen_by_package_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ASTRA_WORKER_AUTH_TOKEN", "secret-token")

    async with staged(tmp_path) as stage:
        seen = value_of(await stage.outcome_of("nasty.environment"))
        assert "PATH" in seen["names"]
        assert not [name for name in seen["names"] if name.startswith("ASTRA_")]


async def test_a_daemon_that_left_the_group_dies_with_its_host(tmp_path: Path) -> None:
    pid_file = tmp_path / "daemon.pid"

    async with staged(tmp_path) as stage:
        stage.start("nasty.daemonizes", {"pid_file": str(pid_file)})
        await stage.up()
        pid = int(pid_file.read_text())
        assert is_alive(pid)
        stage.pool.kill(TaskId("t1"), 1)
        await stage.until(lambda: stage.goners == [("t1", 1)])
        assert not is_alive(pid), "gone means that nothing is left"


async def test_a_daemon_left_behind_by_an_ended_attempt_dies_when_the_host_is_closed(
    tmp_path: Path,
) -> None:
    pid_file = tmp_path / "daemon.pid"

    async with staged(tmp_path) as stage:
        given = {"pid_file": str(pid_file), "stays": False}
        await stage.outcome_of("nasty.daemonizes", given)
        assert is_alive(int(pid_file.read_text()))
    wait_until_dead(int(pid_file.read_text()))


async def test_records_name_the_processes_of_a_host_while_it_lives(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        await stage.outcome_of("nasty.environment")
        (record,) = stage.records()
        assert is_alive(record["guard_pid"])
        assert is_alive(record["host_pid"])
        assert record["host_start"] > 0

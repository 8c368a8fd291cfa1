"""One fault at a time, each with the answer that is expected of it."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from tests.chaos.checkers import check_database
from tests.chaos.supervisor import Supervisor, supervised
from tests.chaos.truth import read_truth
from tests.chaos.waiting import until
from tests.chaos.workload import Api, python_node, run_of

WITHIN_S = 60.0


def _run(case: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(asyncio.wait_for(case(), WITHIN_S + 30))


def _noop_run() -> dict[str, Any]:
    return run_of([{"id": "6f0d2a52-58f3-4b1c-9a5b-0c1d2e3f4a5b", "type": "core.noop"}], [])


async def _fill(api: Api, body: dict[str, Any]) -> tuple[list[str], int]:
    """Submit until something else than success is answered: the accepted ids, and that answer."""
    accepted: list[str] = []
    while True:
        answer = await api.try_once("POST", "/api/v1/runs", json=body)
        if answer.status_code != 202:
            return accepted, answer.status_code
        accepted.append(answer.json()["runId"])


def test_a_second_scheduler_on_the_same_folder_is_refused(tmp_path: Path) -> None:
    async def case() -> None:
        async with supervised(tmp_path, workers=0) as supervisor:
            second = supervisor.new_scheduler()
            supervisor.spawn(second)
            assert second.popen is not None
            try:
                await until(lambda: not second.is_alive(), WITHIN_S)
            finally:
                second.popen.kill()
                second.popen.wait()
            assert second.popen.returncode not in (0, -9), second.said()
            assert f"process {supervisor.scheduler.pid} has the store open" in second.said()
            assert "Traceback" not in second.said()
            assert supervisor.scheduler.is_alive()

    _run(case)


ON_A_SMALL_DISK = """
mount -t tmpfs -o size=16m tmpfs "$0" && head -c 4M /dev/zero > "$0/ballast" && exec "$@"
"""


def test_a_full_disk_is_answered_with_503_and_loses_nothing(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()

    async def case() -> None:
        supervisor = Supervisor(tmp_path)
        scheduler = supervisor.scheduler
        scheduler.arguments[scheduler.arguments.index("--data-dir") + 1] = str(disk)
        # A mount of its own, seen by it alone: it needs no rights, and is gone when it ends.
        unshare = ["unshare", "--map-root-user", "--mount", "sh", "-c", ON_A_SMALL_DISK, str(disk)]
        scheduler.command = [*unshare, *scheduler.command]
        try:
            await supervisor.start_scheduler()
            async with Api(lambda: supervisor.base_url) as api:
                await _fill_the_disk(api, Path(f"/proc/{scheduler.pid}/root{disk}"))
            assert await supervisor.stop(scheduler) == 0, scheduler.said()
        finally:
            await supervisor.close()

    _run(case)


async def _fill_the_disk(api: Api, disk: Path) -> None:
    body = _noop_run()
    body["workflow"]["nodes"][0]["metadata"] = {"filler": "x" * 200_000}
    accepted, status = await _fill(api, body)
    print(f"full after {len(accepted)} runs, then {status}")
    assert accepted and status == 503
    (disk / "ballast").unlink()
    await _until_taken(api, _noop_run())
    await _are_there(api, accepted)
    assert _damage_in(disk) == []


FULL_OF_LEFT_OVERS = """
mount -t tmpfs -o size=8m tmpfs "$0" && cp -r "$0.before/." "$0" && mkdir -p "$0/data/0123/1" &&
  (head -c 100M /dev/zero > "$0/data/0123/1/filled" || true) 2> /dev/null && exec "$@"
"""


def test_a_worker_starts_on_a_disk_that_its_last_boot_has_filled(tmp_path: Path) -> None:
    async def case() -> None:
        async with supervised(tmp_path, workers=1) as supervisor:
            worker = supervisor.workers[0]
            async with Api(lambda: supervisor.base_url) as api:
                answer = await api.ask("POST", "/api/v1/runs", json=_noop_run())
                await _succeeds(api, answer.json()["runId"])
            await supervisor.stop(worker)
            disk = Path(worker.arguments[worker.arguments.index("--data-dir") + 1])
            _set_aside(disk)
            unshare = ["unshare", "--map-root-user", "--mount", "sh", "-c", FULL_OF_LEFT_OVERS]
            worker.command = [*unshare, str(disk), *worker.command]
            supervisor.spawn(worker)
            async with Api(lambda: supervisor.base_url) as api:
                answer = await api.ask("POST", "/api/v1/runs", json=_noop_run())
                await _succeeds(api, answer.json()["runId"])
            assert worker.is_alive(), worker.said()

    _run(case)


def _set_aside(folder: Path) -> None:
    folder.rename(f"{folder}.before")
    folder.mkdir()


async def _succeeds(api: Api, run_id: str) -> None:
    async with asyncio.timeout(WITHIN_S):
        while True:
            answer = await api.ask("GET", f"/api/v1/runs/{run_id}")
            if answer.json()["status"] == "succeeded":
                return
            await asyncio.sleep(0.05)


def _damage_in(disk: Path) -> list[str]:
    """Of a copy: SQLite follows links, and would look for the file where this process does not see it."""
    with tempfile.TemporaryDirectory() as copies:
        for path in disk.glob("astraflow.db*"):
            shutil.copy(path, copies)
        return check_database(Path(copies, "astraflow.db"))


async def _until_taken(api: Api, body: dict[str, Any]) -> None:
    """`ask` repeats as long as the answer is "later"."""
    async with asyncio.timeout(WITHIN_S):
        assert (await api.ask("POST", "/api/v1/runs", json=body)).status_code == 202


def test_a_disk_that_fails_to_flush_ends_the_scheduler_and_loses_nothing(tmp_path: Path) -> None:
    """EIO in an fdatasync: what the disk holds is unknown, so nothing is acknowledged and nobody goes on."""
    strace = shutil.which("strace")
    assert strace is not None, "install strace: it injects the error"

    async def case() -> None:
        supervisor = Supervisor(tmp_path)
        inject = ["-f", "-qq", "-o", "/dev/null", "-e", "trace=fdatasync"]
        inject += ["-e", "inject=fdatasync:error=EIO:when=60+"]
        supervisor.scheduler.command = [strace, *inject, *supervisor.scheduler.command]
        try:
            await supervisor.start_scheduler()
            async with Api(lambda: supervisor.base_url) as api:
                accepted, status = await _fill(api, _noop_run())
            print(f"{len(accepted)} runs accepted before the flush failed, then {status}")
            assert accepted and status == 503
            await until(lambda: not supervisor.scheduler.is_alive(), WITHIN_S)
            assert supervisor.scheduler.popen is not None
            assert supervisor.scheduler.popen.returncode not in (0, -9)
            supervisor.scheduler.command = [sys.executable, "-m", "astraflow"]
            await supervisor.start_scheduler()
            async with Api(lambda: supervisor.base_url) as api:
                await _are_there(api, accepted)
            assert await supervisor.stop(supervisor.scheduler) == 0
        finally:
            await supervisor.close()

    _run(case)


async def _are_there(api: Api, accepted: list[str]) -> None:
    for run_id in accepted:
        assert (await api.ask("GET", f"/api/v1/runs/{run_id}")).status_code == 200


JUMP_C = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

/* The wall clock, moved by the seconds in the file that JUMP_FILE names; other clocks as they are. */
static long jump(void) {
    const char *path = getenv("JUMP_FILE");
    char text[32] = {0};
    int fd = path ? open(path, O_RDONLY) : -1;
    if (fd < 0) return 0;
    if (read(fd, text, sizeof text - 1) < 0) text[0] = 0;
    close(fd);
    return atol(text);
}
int clock_gettime(clockid_t id, struct timespec *at) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
    int code = real(id, at);
    if (id == CLOCK_REALTIME) at->tv_sec += jump();
    return code;
}
int gettimeofday(struct timeval *at, void *zone) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    at->tv_sec = now.tv_sec;
    at->tv_usec = now.tv_nsec / 1000;
    return 0;
}
time_t time(time_t *out) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (out) *out = now.tv_sec;
    return now.tv_sec;
}
"""


@pytest.mark.parametrize("seconds", [-86_400, 3_600, 86_400])
def test_a_jump_of_the_wall_clock_moves_no_lease(tmp_path: Path, seconds: int) -> None:
    source, library, jump = (tmp_path / name for name in ("jump.c", "jump.so", "jump"))
    source.write_text(JUMP_C)
    compiler = ["gcc", "-shared", "-fPIC", "-o", str(library), str(source), "-ldl"]
    subprocess.run(compiler, check=True, capture_output=True)
    jump.write_text("0")
    preload = {"LD_PRELOAD": str(library), "JUMP_FILE": str(jump)}
    truth = tmp_path / "truth"
    truth.mkdir()

    async def case() -> None:
        supervisor = Supervisor(tmp_path)
        supervisor.scheduler.environ.update(preload)
        try:
            await supervisor.start_scheduler()
            await supervisor.add_worker(environ=preload)
            async with Api(lambda: supervisor.base_url) as api:
                body = run_of([python_node(truth, "k", "slow", seconds=4.0)], [])
                run_id = (await api.ask("POST", "/api/v1/runs", json=body)).json()["runId"]
                await until(lambda: (truth / "k").exists(), WITHIN_S)
                jump.write_text(str(seconds))
                view = await _ended(api, run_id)
            assert (view["status"], view["nodes"][0]["attempt"]) == ("succeeded", 1)
            assert [line.word for line in read_truth(truth)["k"]].count("start") == 1
            created, finished = view["createdAt"], view["finishedAt"]
            assert (finished < created) == (seconds < 0), "the clock of the process did not jump"
        finally:
            await supervisor.close()

    _run(case)


async def _ended(api: Api, run_id: str) -> dict[str, Any]:
    async with asyncio.timeout(WITHIN_S):
        while True:
            view: dict[str, Any] = (await api.ask("GET", f"/api/v1/runs/{run_id}")).json()
            if view["status"] not in ("queued", "running"):
                return view
            await asyncio.sleep(0.05)

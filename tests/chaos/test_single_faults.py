"""One fault at a time, each with the answer that is expected of it."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.chaos.checkers import check_database
from tests.chaos.shapes import python_node
from tests.chaos.supervisor import SHORT
from tests.chaos.truth import read_truth
from tests.definitions import node, workflow
from tests.processes.process import ASTRA
from tests.processes.rest import Rest
from tests.processes.system import System, running
from tests.processes.waiting import until

NOOP = workflow(node("core.noop"))


@pytest.fixture
def system(tmp_path: Path) -> Iterator[System]:
    """Not started."""
    made = System(tmp_path, environ=SHORT)
    try:
        yield made
    finally:
        made.close()


def _fill(rest: Rest, filler: str = "") -> tuple[list[str], int]:
    """Submit until something else than success is answered: the accepted ids, and that answer."""
    accepted: list[str] = []
    while True:
        # Each has a definition of its own: one that is known is not stored again.
        filled = node("core.noop", metadata={"filler": f"{len(accepted)}{filler}"})
        body = {"workflow": workflow(filled)}
        answer = rest.http.post("/api/v1/runs", json=body)
        if answer.status_code != 202:
            return accepted, answer.status_code
        accepted.append(answer.json()["runId"])


def _are_there(rest: Rest, accepted: list[str]) -> None:
    for run_id in accepted:
        rest.get(f"runs/{run_id}")


def test_a_second_scheduler_on_the_same_folder_is_refused(tmp_path: Path) -> None:
    with running(tmp_path) as system:
        second = system.new_scheduler().start()
        assert second.wait() not in (0, -9), second.said()
        assert f"process {system.scheduler.pid} has the store open" in second.said()
        assert "Traceback" not in second.said()
        assert system.scheduler.is_alive()


ON_A_SMALL_DISK = """
mount -t tmpfs -o size=16m tmpfs "$0" && head -c 4M /dev/zero > "$0/ballast" && exec "$@"
"""
# A mount of its own, seen by it alone: it needs no rights, and is gone when it ends.
UNSHARE = ("unshare", "--map-root-user", "--mount", "sh", "-c")


def test_a_full_disk_is_answered_with_503_and_loses_nothing(system: System) -> None:
    system.data.mkdir()
    system.scheduler.command = (*UNSHARE, ON_A_SMALL_DISK, str(system.data), *ASTRA)
    system.start()
    disk = Path(f"/proc/{system.scheduler.pid}/root{system.data}")
    accepted, status = _fill(system.rest, "x" * 200_000)
    print(f"full after {len(accepted)} runs, then {status}")
    assert accepted and status == 503
    (disk / "ballast").unlink()
    assert system.rest.ask("POST", "/api/v1/runs", json={"workflow": NOOP}).status_code == 202
    _are_there(system.rest, accepted)
    assert _damage_in(disk) == []
    assert system.scheduler.end() == 0, system.scheduler.said()


def _damage_in(disk: Path) -> list[str]:
    """Of a copy: SQLite follows links, and would look for the file where this process does not see it."""
    with tempfile.TemporaryDirectory() as copies:
        for path in disk.glob("astraflow.db*"):
            shutil.copy(path, copies)
        return check_database(Path(copies, "astraflow.db"))


FULL_OF_LEFT_OVERS = """
mount -t tmpfs -o size=8m tmpfs "$0" && cp -r "$0.before/." "$0" && mkdir -p "$0/data/0123/1" &&
  (head -c 100M /dev/zero > "$0/data/0123/1/filled" || true) 2> /dev/null && exec "$@"
"""


def test_a_worker_starts_on_a_disk_that_its_last_boot_has_filled(tmp_path: Path) -> None:
    with running(tmp_path, 1, environ=SHORT) as system:
        (worker,) = system.workers.values()
        assert system.rest.run(NOOP)["status"] == "succeeded"
        worker.end()
        disk = worker.folder / "kept"
        disk.rename(f"{disk}.before")
        disk.mkdir()
        worker.command = (*UNSHARE, FULL_OF_LEFT_OVERS, str(disk), *ASTRA)
        worker.start()
        assert system.rest.run(NOOP)["status"] == "succeeded"
        assert worker.is_alive(), worker.said()


def test_a_disk_that_fails_to_flush_ends_the_scheduler_and_loses_nothing(system: System) -> None:
    """EIO in an fdatasync: what the disk holds is unknown, so nothing is acknowledged and nobody goes on."""
    strace = shutil.which("strace")
    assert strace is not None, "install strace: it injects the error"
    inject = [
        "-f",
        "-qq",
        "-o",
        "/dev/null",
        "-e",
        "trace=fdatasync",
        "-e",
        "inject=fdatasync:error=EIO:when=60+",
    ]
    system.scheduler.command = (strace, *inject, *ASTRA)
    system.start()
    accepted, status = _fill(system.rest)
    print(f"{len(accepted)} runs accepted before the flush failed, then {status}")
    assert accepted and status == 503
    assert system.scheduler.wait() not in (0, -9)
    system.scheduler.command = ASTRA
    system.start()
    _are_there(system.rest, accepted)
    assert system.scheduler.end() == 0


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
    with running(tmp_path, 1, environ={**SHORT, **preload}) as system:
        run_id = system.rest.submit(workflow(python_node(truth, "k", "slow", seconds=4.0)))
        until(lambda: (truth / "k").exists(), "the attempt")
        jump.write_text(str(seconds))
        view = system.rest.finished(run_id)
    assert (view["status"], view["nodes"][0]["attempt"]) == ("succeeded", 1)
    assert [line.word for line in read_truth(truth)["k"]].count("start") == 1
    created, finished = view["createdAt"], view["finishedAt"]
    assert (finished < created) == (seconds < 0), "the clock of the process did not jump"

"""What scheduler and worker log of frames, attempts and packages, at the levels that an operator chooses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.definitions import node, workflow
from tests.packages.archives import write_adapter
from tests.processes.process import Process
from tests.processes.rest import TOKEN
from tests.processes.system import SECRET, System, running
from tests.processes.waiting import until

CANARY = "canary-5dd0c1b7"
FRAME = {"tenant", "sender", "type", "id"}
ADAPTER = """
    class Adapter:
        def say(self, ctx):
            return {}
"""


def lines_of(process: Process) -> list[dict[str, Any]]:
    return [json.loads(one) for one in process.said().splitlines()]


def found(process: Process, *words: str, **fields: Any) -> list[dict[str, Any]]:
    """The lines with these words in their message and these fields."""
    return [
        line
        for line in lines_of(process)
        if all(word in line["message"] for word in words) and fields.items() <= line.items()
    ]


def frames(process: Process, what: str, kind: str) -> list[dict[str, Any]]:
    return found(process, f"frame {what}: {kind}", type=kind, level="debug")


def _wait_for(process: Process, what: str, kind: str) -> None:
    until(lambda: frames(process, what, kind), f"{kind} {what}")


def work(site: System, folder: Path) -> tuple[str, str]:
    """A run that succeeds, one that fails, and a package that is published and installed."""
    good = site.rest.run(workflow(node("core.echo", parameters={"value": CANARY})))
    bad = site.rest.run(workflow(node("core.fail", parameters={"message": "on purpose"})))
    assert (good["status"], bad["status"]) == ("succeeded", "failed")
    site.rest.publish(write_adapter(folder / "demo", "demo", "say", ADAPTER))
    site.rest.install("demo", "1.0.0")
    return good["runId"], bad["runId"]


@pytest.mark.timeout(180)
def test_frames_attempts_and_packages_are_logged(tmp_path: Path) -> None:
    levels = {"ASTRA_SCHEDULER_LOG_LEVEL": "debug", "ASTRA_WORKER_LOG_LEVEL": "debug"}
    with running(tmp_path / "site", 1, environ=levels) as site:
        good, bad = work(site, tmp_path)
        scheduler, worker = site.scheduler, site.workers["worker-1"]
        worker_id = site.rest.online()[0]["workerId"]
        for kind, sender in (
            ("control.register", worker),
            ("biz.exec.dispatch", scheduler),
            ("biz.exec.result", worker),
            ("biz.pkg.install", scheduler),
            ("biz.pkg.event", worker),
        ):
            receiver = worker if sender is scheduler else scheduler
            _wait_for(sender, "sent", kind)
            _wait_for(receiver, "received", kind)
            sent, received = frames(sender, "sent", kind)[0], frames(receiver, "received", kind)[0]
            names = FRAME | ({"seq", "corr"} if kind.startswith("biz.exec") else set())
            assert names <= sent.keys(), sent
            assert {name: sent[name] for name in names} == {name: received[name] for name in names}
        assert {one["corr"] for one in frames(scheduler, "sent", "biz.exec.dispatch")} == {
            f"{good}.0", f"{bad}.0",
        }  # fmt: skip
        (failed,) = found(scheduler, "core.fail failed", level="info", run=bad)
        assert (failed["tenant"], failed["sender"], failed["corr"], failed["code"]) == (
            "default", worker_id, f"{bad}.0", "E.RUNNER.FAILURE",
        )  # fmt: skip
        assert failed["id"] in {one["id"] for one in frames(worker, "sent", "biz.exec.result")}
        assert found(scheduler, "core.echo dispatched", level="debug", run=good)
        assert found(scheduler, "core.echo succeeded", level="debug", run=good)
        assert found(worker, "attempt ended: FAILED", level="info", run=bad)
        assert found(worker, "attempt ended: SUCCEEDED", level="debug", run=good)
        said = scheduler.said() + worker.said()
        for secret in (TOKEN, SECRET, CANARY, "eyJ"):
            assert secret not in said


@pytest.mark.timeout(180)
def test_without_debug_there_are_failures_packages_and_a_first_missed_heartbeat(
    tmp_path: Path,
) -> None:
    with running(tmp_path / "site", 1) as site:
        good, bad = work(site, tmp_path)
        scheduler, worker = site.scheduler, site.workers["worker-1"]
        assert not found(scheduler, level="debug") + found(worker, level="debug")
        assert not found(scheduler, run=good)
        assert found(scheduler, "core.fail failed", level="info", run=bad)
        (published,) = found(scheduler, "pkg.publish demo 1.0.0", level="info")
        audit = {one["action"]: one["corr"] for one in site.rest.get("audit")["items"]}
        assert published["corr"] == audit["pkg.publish"]
        assert found(scheduler, "pkg.install", level="info", tenant="default")
        assert found(scheduler, "package demo 1.0.0 installed", level="info", type="biz.pkg.event")
        with worker.frozen():
            until(
                lambda: found(scheduler, "missed a heartbeat", level="warning", tenant="default"),
                "the warning",
            )
            until(lambda: not site.rest.online(), "a worker that is degraded or lost")
        until(site.rest.online, "the worker again")
        assert len(found(scheduler, "missed a heartbeat")) <= 2

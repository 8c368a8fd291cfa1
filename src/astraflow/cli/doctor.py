"""`astra doctor`: check everything that a scheduler and a worker need on this machine."""

from __future__ import annotations

import asyncio
import os
import platform
import shutil
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Literal

import msgspec
import typer

from astraflow.api.listener import listen
from astraflow.cli.exit_codes import FAILED
from astraflow.cli.output import STYLES, AsJson, is_terminal, plain, show_json
from astraflow.cli.server import Config, DataDir, run_loop
from astraflow.cli.store_info import file_of, holder_of, look_into, shown_store
from astraflow.client.blocking import Client
from astraflow.clock import SystemClock
from astraflow.config import SchedulerSettings, load_scheduler, load_worker
from astraflow.core import errors
from astraflow.core.ids import RunId, TaskId
from astraflow.core.protocol import business
from astraflow.worker.hosts import HostPool, PoolSettings, core_package
from astraflow.worker.hosts.builtin import host_program
from astraflow.worker.resources import LocalResourceRegistry, RegistryBroker

OLDEST_PYTHON: Final = (3, 11)
FREE_BYTES: Final = 1024**3
HOST_START_S: Final = 30.0
EARLIEST: Final = datetime(2025, 1, 1, tzinfo=UTC)
"""A wall clock before this date is wrong."""

Verdict = Literal["ok", "warn", "fail"]


class CheckResult(msgspec.Struct, frozen=True):
    """The result of one check."""

    name: str
    verdict: Verdict
    says: str
    hint: str = ""


def doctor(data_dir: DataDir = None, config: Config = None, as_json: AsJson = False) -> None:
    """Check this installation for problems. Exits with 1 if a check fails."""
    findings: list[CheckResult] = []
    for finding in _look(data_dir, config):
        findings.append(finding)
        if not as_json:
            _show(finding)
    is_well = all(one.verdict != "fail" for one in findings)
    if as_json:
        show_json({"ok": is_well, "checks": findings})
    if not is_well:
        raise typer.Exit(FAILED)


def _show(finding: CheckResult) -> None:
    mark = f"{finding.verdict:4}"
    if is_terminal() and not os.environ.get("NO_COLOR"):
        mark = typer.style(mark, fg=STYLES[finding.verdict])
    typer.echo(f"{mark}  {finding.name:12} {plain(finding.says)}")
    if finding.hint and finding.verdict != "ok":
        typer.echo(f"      hint: {finding.hint}")


def _look(data_dir: Path | None, config: Path | None) -> Iterator[CheckResult]:
    yield _python()
    yield _clock()
    yield _parts()
    yield _host()
    try:
        settings = load_scheduler(flags={"data_dir": data_dir}, file=config).settings
        load_worker(file=config)
    except errors.AstraflowError as error:
        yield CheckResult("settings", "fail", error.message, error.code.do)
        return
    yield CheckResult("settings", "ok", "valid for scheduler and worker")
    yield _folder(settings.data_dir)
    yield _store(settings)
    yield _port(settings)
    yield from _server()


def _python() -> CheckResult:
    says = f"{platform.python_version()} at {sys.executable}"
    if sys.version_info < OLDEST_PYTHON:
        return CheckResult("python", "fail", says, "use Python 3.11 or newer")
    return CheckResult("python", "ok", says)


def _clock() -> CheckResult:
    wall = datetime.fromtimestamp(SystemClock().wall_ms() / 1000, UTC)
    says = f"{wall:%Y-%m-%d %H:%M:%S} UTC"
    if wall < EARLIEST:
        return CheckResult(
            "clock", "fail", says, "set the system clock; tokens and schedules depend on it"
        )
    return CheckResult("clock", "ok", says)


def _parts() -> CheckResult:
    try:
        program, core = host_program(), core_package()
    except errors.AstraflowError as error:
        return CheckResult("parts", "fail", error.message, "reinstall AstraFlow")
    return CheckResult("parts", "ok", f"SDK in {program.parent.parent}, core {core.version}")


def _host() -> CheckResult:
    try:
        seconds = run_loop(_start_host())
    except (errors.AstraflowError, TimeoutError, OSError) as error:
        said = error.message if isinstance(error, errors.AstraflowError) else str(error)
        hint = "see its output above; `python -m venv` may not work on this machine"
        return CheckResult(
            "host", "fail", f"Cannot start a package host: {said or 'timeout'}", hint
        )
    return CheckResult("host", "ok", f"started, ran core.noop and exited in {seconds:.2f} s")


class _DoctorListener:
    """Waits for the result of the test attempt."""

    def __init__(self) -> None:
        self.result: asyncio.Future[business.Result] = asyncio.get_running_loop().create_future()

    def finished(self, result: business.Result) -> None:
        self.result.set_result(result)

    def gone(self, task_id: str, attempt: int) -> None: ...
    def feedback(self, feedback: business.Feedback) -> None: ...
    def call(self, request: business.NextRequest) -> None: ...


async def _start_host() -> float:
    """Run one attempt of `core.noop` in a package host, as a worker does."""
    clock, core, listener = SystemClock(), core_package(), _DoctorListener()
    started_at = clock.now()
    with tempfile.TemporaryDirectory(prefix="astra-doctor-") as folder:
        place = Path(folder)
        registry = LocalResourceRegistry(place, place, worker_id="doctor", clock=clock)
        pool = HostPool(
            folder=place,
            clock=clock,
            settings=PoolSettings(),
            packages=lambda name, version: core,
            events=listener,
            broker=RegistryBroker(registry, "doctor"),
        )
        dispatch = business.Dispatch(
            RunId("doctor"),
            TaskId("doctor"),
            1,
            0,
            "doctor",
            "core.noop",
            business.PackageId(core.name, core.version),
            msgspec.Raw(b"{}"),
            business.LeaseGrant(int(HOST_START_S * 1000), "doctor"),
        )
        try:
            pool.start(dispatch, clock.now() + HOST_START_S)
            async with asyncio.timeout(HOST_START_S):
                result = await listener.result
        finally:
            await pool.close()
            registry.close()
    if result.error is not None:
        raise errors.Unavailable(errors.RUNNER_CRASHED, result.error.message)
    return clock.now() - started_at


def _folder(folder: Path) -> CheckResult:
    nearest = next(place for place in (folder, *folder.absolute().parents) if place.exists())
    free = shutil.disk_usage(nearest).free
    if free < FREE_BYTES:
        says = f"{folder.absolute()}: only {free // 1024**2} MiB free"
        return CheckResult("data folder", "warn", says, "free disk space, or shorten the retention")
    if folder.exists() and folder.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        says = f"{folder.absolute()} is accessible to other users"
        return CheckResult("data folder", "warn", says, f"run: chmod 700 {folder}")
    says = "" if folder.exists() else " (created at the first start)"
    return CheckResult("data folder", "ok", f"{folder.absolute()}{says}")


def _store(settings: SchedulerSettings) -> CheckResult:
    file = file_of(settings)
    if file is not None and not file.exists():
        return CheckResult("store", "ok", f"{file} (created at the first start)")
    place = shown_store(settings) if file is None else str(file)
    try:
        found = look_into(settings)
    except errors.StoreError as error:
        return CheckResult("store", "fail", f"{place}: {error.message}", _store_hint(error.code))
    if found.schema_version == 0:
        return CheckResult("store", "ok", f"{place} (created at the first start)")
    says = f"{place}, schema {found.schema_version}, written by {found.written_by}"
    if found.is_newer:
        return CheckResult("store", "fail", says, errors.STORE_NEWER.do)
    return CheckResult("store", "ok", says)


def _store_hint(code: errors.Code) -> str:
    if code is errors.STORE_UNAVAILABLE:
        return "start PostgreSQL, or correct database_url: host, port, database, user and password"
    return code.do


def _port(settings: SchedulerSettings) -> CheckResult:
    where = f"{settings.host}:{settings.port}"
    file = file_of(settings)
    holder = holder_of(file) if file is not None else None
    if holder is not None:
        return CheckResult("port", "ok", f"a scheduler is already running: process {holder}")
    try:
        listen(settings.host, settings.port).close()
    except errors.Refused as error:
        return CheckResult("port", "fail", error.message, "choose another port with --port")
    return CheckResult("port", "ok", f"{where} is free")


def _server() -> Iterator[CheckResult]:
    try:
        client = Client()
    except errors.Refused as error:
        yield CheckResult("server", "fail", error.message, error.code.do)
        return
    with client:
        named = client.endpoint.source != "default"
        if not client.is_ready():
            says = f"Cannot connect to {client.endpoint.url}"
            # A server that is configured must respond; without one this is only a warning.
            yield CheckResult(
                "server", "fail" if named else "warn", says, errors.SERVER_UNREACHABLE.do
            )
            return
        yield CheckResult("server", "ok", f"{client.endpoint.url} ({client.endpoint.source})")
        token = _asked("token", lambda: _token(client))
        yield token
        if token.verdict == "ok":
            yield _asked("workers", lambda: _workers(client))


def _asked(name: str, ask: Callable[[], CheckResult]) -> CheckResult:
    try:
        return ask()
    except errors.AstraflowError as error:
        return CheckResult(name, "fail", error.message, error.code.do)


def _token(client: Client) -> CheckResult:
    me = client.me()
    return CheckResult("token", "ok", f"{me.subject}, {me.role} of tenant {me.tenant}")


def _workers(client: Client) -> CheckResult:
    found: list[Any] = list(client.workers.iterate())
    online = sum(1 for one in found if one.status == "online")
    says = f"{online} of {len(found)} online"
    hint = "start a worker with `astra worker`; runs wait until then"
    return CheckResult("workers", "ok" if online else "warn", says, hint)

"""`astra up`: a scheduler in this process, workers beside it, and nothing left behind.

SIGINT or SIGTERM: the workers drain, then the scheduler ends, exit 0. A second one ends everything at once.
What happens when this process is killed is in `crew`.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import shlex
import shutil
import signal
import socket
import sys
from pathlib import Path
from typing import Annotated, Final

import typer

from astraflow.api.listener import listen
from astraflow.cli.crew import Crew, worker_environment
from astraflow.cli.failing import FAILED, note
from astraflow.cli.holding import refuse_if_held
from astraflow.cli.serving import Config, DataDir, Host, Port, prepare, run_loop
from astraflow.client.endpoint import Endpoint, keep_endpoint, place_of, read_endpoint
from astraflow.clock import SystemClock
from astraflow.config import (
    Loaded,
    SchedulerSettings,
    Secret,
    WorkerSettings,
    keep_secret,
    keep_token,
    load_scheduler,
    load_worker,
)
from astraflow.core import errors

__all__ = ["up"]

DRAIN_S: Final = 8
"""How long workers may finish what they run, if nothing else is configured: whoever presses ^C waits for it."""
OVERRUN_S: Final = 4.0
"""After that, for their last words."""
MAX_WORKERS: Final = 64
SAMPLE: Final = Path("examples/hello.json")


def up(
    host: Host = None,
    port: Port = None,
    data_dir: DataDir = None,
    workers: Annotated[int, typer.Option(min=0, max=MAX_WORKERS, help="how many workers")] = 1,
    config: Config = None,
) -> None:
    """Start a scheduler and workers here, on one machine. ^C ends all of it."""
    flags = {"host": host, "port": port, "data_dir": data_dir}
    loaded = load_scheduler(flags=flags, file=config)
    worker = load_worker(file=config)
    settings = loaded.settings
    token, secret = keep_token(settings), keep_secret(settings)
    prepare(loaded, token.reveal(), secret.reveal())
    refuse_if_held(settings)
    sock = listen(settings.host, settings.port)
    run_loop(_Up(settings, sock, token, secret).run(workers, _drain_s(worker), config))


def _drain_s(worker: Loaded[WorkerSettings]) -> int:
    is_default = worker.sources["drain_timeout_seconds"] == "default"
    return DRAIN_S if is_default else worker.settings.drain_timeout_seconds


class _Up:
    def __init__(
        self, settings: SchedulerSettings, sock: socket.socket, token: Secret, secret: Secret
    ) -> None:
        self._settings = settings
        self._sock = sock
        self._token = token
        self._secret = secret
        # Workers run the code of others: they hold no token that opens more than a worker's session.
        self._worker_token = Secret(secrets.token_urlsafe(32))
        self._place = place_of(settings.data_dir)
        self._stop = asyncio.Event()
        self._wanted = asyncio.Event()
        self._url = ""

    async def run(self, count: int, drain_s: int, config: Path | None) -> None:
        host, port = self._sock.getsockname()[:2]
        crew = Crew(
            f"ws://{_reachable(host)}:{port}/ws/worker",
            self._settings.data_dir / "workers",
            worker_environment(os.environ, self._worker_token.reveal(), drain_s),
            clock=SystemClock(),
            tell=note,
            is_drained=self._is_drained,
            config=config,
        )
        self._watch_signals(crew)
        try:
            async with asyncio.TaskGroup() as group:
                # Workers first: they take as long to start as the scheduler, and wait for it at its port.
                for number in range(1, count + 1):
                    group.create_task(crew.keep(number))
                group.create_task(self._serve(crew))
                group.create_task(self._end(crew, drain_s + OVERRUN_S))
        except BaseExceptionGroup as several:
            raise several.exceptions[0] from None
        finally:
            crew.kill()
            kept = read_endpoint(self._place)
            if kept is not None and kept.pid == os.getpid():
                self._place.unlink(missing_ok=True)

    async def _serve(self, crew: Crew) -> None:
        from astraflow.api.process import serve  # half a second, during which the workers start

        try:
            await serve(
                self._settings,
                self._sock,
                token=self._token,
                worker_token=self._worker_token,
                secret=self._secret,
                on_ready=self._on_ready,
                stop=self._stop,
            )
        except errors.AstraflowError:
            crew.kill()
            raise
        finally:
            self._wanted.set()

    async def _end(self, crew: Crew, within_s: float) -> None:
        """Once it is wanted: first the workers, then the scheduler that they report to."""
        await self._wanted.wait()
        await crew.dismiss(within_s)
        self._stop.set()

    def _watch_signals(self, crew: Crew) -> None:
        loop = asyncio.get_running_loop()

        def on_signal() -> None:
            if self._wanted.is_set():
                crew.kill()
                note("ended at once")
                os._exit(FAILED)  # the store survives it, and there is nothing else to lose
            note("ending: the workers finish what they run; once more ends everything at once")
            self._wanted.set()

        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, on_signal)

    async def _is_drained(self, worker_id: str) -> bool:
        from astraflow.client.asynchronous import AsyncClient  # needed when somebody drains

        try:
            async with AsyncClient(self._url, self._token.reveal()) as client:
                return (await client.workers.get(worker_id)).drain_requested
        except errors.AstraflowError:
            return False  # it does not answer now: the worker is started, and finds out

    def _on_ready(self, url: str) -> None:
        self._url = url
        keep_endpoint(self._place, Endpoint(url, self._token.reveal(), os.getpid()))
        for line in _greeting(url, self._settings):
            typer.echo(line)
        sys.stdout.flush()


def _reachable(host: str) -> str:
    """Where this machine finds what listens everywhere."""
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 - not listened on here
    return f"[{host}]" if ":" in host else host


def _program() -> str:
    """How this program is called from here, as it can be typed in another terminal in the same folder."""
    called = Path(sys.argv[0])
    if called.name != "astra":
        return f"{shlex.quote(sys.executable)} -m astraflow"
    found = shutil.which("astra")
    if found is not None and Path(found).resolve() == called.resolve():
        return "astra"
    here = called.absolute()
    return shlex.quote(
        str(here.relative_to(Path.cwd()) if here.is_relative_to(Path.cwd()) else here)
    )


def _greeting(url: str, settings: SchedulerSettings) -> list[str]:
    folder = settings.data_dir
    kept = folder / "token"
    bearer = "$ASTRA_TOKEN" if settings.bootstrap_token else f"$(cat {kept})"
    lines = [
        f"listening on {url}",
        "",
        f"  API       {url}/api/docs",
        f"  data      {folder.absolute()}",
        "",
        "try, in another terminal:",
    ]
    if folder != Path("var"):
        lines.append(f"  export ASTRA_SERVER={url} ASTRA_TOKEN={bearer}")
    program = _program()
    if SAMPLE.is_file():
        lines.append(f"  {program} run {SAMPLE}")
    lines += [
        f"  {program} workers list",
        f'  curl -H "Authorization: Bearer {bearer}" {url}/api/v1/runs',
        "",
    ]
    return lines

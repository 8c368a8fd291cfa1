"""`astra up`: a scheduler in this process, and workers as child processes.

On SIGINT or SIGTERM the workers drain, then the scheduler stops, with exit code 0. A second signal kills everything.
`local_workers` describes what happens when this process is killed.
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
from astraflow.cli.exit_codes import FAILED, note
from astraflow.cli.local_workers import LocalWorkers, worker_environment
from astraflow.cli.server import Config, DataDir, Host, Port, prepare, run_loop
from astraflow.cli.store_info import refuse_if_held
from astraflow.cli.web_browser import is_wanted, open_page
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

DRAIN_S: Final = 8
"""Default drain timeout of the workers: the user who pressed ^C waits for it."""
OVERRUN_S: Final = 4.0
"""Added to the drain timeout, for the acknowledgement of the last results."""
MAX_WORKERS: Final = 64
SAMPLE: Final = Path("examples/hello.json")


def up(
    host: Host = None,
    port: Port = None,
    data_dir: DataDir = None,
    workers: Annotated[int, typer.Option(min=0, max=MAX_WORKERS, help="Number of workers")] = 1,
    open_browser: Annotated[
        bool | None,
        typer.Option(
            "--open/--no-open",
            help="Open the web app, logged in. Without either: if a desktop is there to see it",
            show_default=False,
        ),
    ] = None,
    config: Config = None,
) -> None:
    """Start a scheduler and workers on this machine, and open the web app. ^C stops them."""
    flags = {"host": host, "port": port, "data_dir": data_dir}
    loaded = load_scheduler(flags=flags, file=config)
    worker = load_worker(file=config)
    settings = loaded.settings
    token, secret = keep_token(settings), keep_secret(settings)
    prepare(loaded, token.reveal(), *secret.lines())
    refuse_if_held(settings)
    sock = listen(settings.host, settings.port)
    served = _Up(settings, sock, token, secret, opens_browser=is_wanted(open_browser))
    run_loop(served.run(workers, _drain_s(worker), config))


def _drain_s(worker: Loaded[WorkerSettings]) -> int:
    is_default = worker.sources["drain_timeout_seconds"] == "default"
    return DRAIN_S if is_default else worker.settings.drain_timeout_seconds


class _Up:
    def __init__(
        self,
        settings: SchedulerSettings,
        sock: socket.socket,
        token: Secret,
        secret: Secret,
        *,
        opens_browser: bool,
    ) -> None:
        self._settings = settings
        self._opens_browser = opens_browser
        self._sock = sock
        self._token = token
        self._secret = secret
        # Workers run package code, so their token opens a worker session and nothing else.
        self._worker_token = Secret(secrets.token_urlsafe(32))
        self._place = place_of(settings.data_dir)
        self._stop = asyncio.Event()
        self._wanted = asyncio.Event()
        self._greeting: asyncio.Task[None] | None = None
        self._url = ""

    async def run(self, count: int, drain_s: int, config: Path | None) -> None:
        host, port = self._sock.getsockname()[:2]
        scheme = "ws" if self._settings.tls_cert_file is None else "wss"
        local_workers = LocalWorkers(
            f"{scheme}://{_reachable(host)}:{port}/ws/worker",
            self._settings.data_dir / "workers",
            worker_environment(os.environ, self._worker_token.reveal(), drain_s),
            clock=SystemClock(),
            tell=note,
            is_drained=self._is_drained,
            config=config,
        )
        self._watch_signals(local_workers)
        try:
            async with asyncio.TaskGroup() as group:
                # Workers first: they take as long to start as the scheduler, and retry until it listens.
                for number in range(1, count + 1):
                    group.create_task(local_workers.keep(number))
                group.create_task(self._serve(local_workers))
                group.create_task(self._end(local_workers, drain_s + OVERRUN_S))
        except BaseExceptionGroup as several:
            raise several.exceptions[0] from None
        finally:
            local_workers.kill()
            kept = read_endpoint(self._place)
            if kept is not None and kept.pid == os.getpid():
                self._place.unlink(missing_ok=True)

    async def _serve(self, local_workers: LocalWorkers) -> None:
        from astraflow.api.process import (
            serve,
        )  # takes half a second, during which the workers start

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
            local_workers.kill()
            raise
        finally:
            self._wanted.set()

    async def _end(self, local_workers: LocalWorkers, within_s: float) -> None:
        """At shutdown: stop the workers first, then the scheduler that they report to."""
        await self._wanted.wait()
        await local_workers.shut_down(within_s)
        self._stop.set()

    def _watch_signals(self, local_workers: LocalWorkers) -> None:
        loop = asyncio.get_running_loop()

        def on_signal() -> None:
            if self._wanted.is_set():
                local_workers.kill()
                note("killed")
                os._exit(FAILED)  # the store survives a kill, and nothing else is kept in memory
            note("Shutting down: waiting for running attempts; press ^C again to kill them")
            self._wanted.set()

        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, on_signal)

    async def _is_drained(self, worker_id: str) -> bool:
        from astraflow.client.asynchronous import AsyncClient  # needed after a drain only

        try:
            async with AsyncClient(self._url, self._token.reveal()) as client:
                return (await client.workers.get(worker_id)).drain_requested
        except errors.AstraflowError:
            return (
                False  # the scheduler does not respond now: the worker is restarted and finds out
            )

    def _on_ready(self, url: str) -> None:
        self._url = url
        keep_endpoint(self._place, Endpoint(url, self._token.reveal(), os.getpid()))
        _print([f"listening on {url}", ""])
        self._greeting = asyncio.create_task(self._greet(url))

    async def _greet(self, url: str) -> None:
        """Print what to do next, with a login link, which the scheduler makes, and open the app."""
        _print(_greeting(url, await self._login_link(url), self._settings))
        if self._opens_browser and not await open_page(await self._login_link(url)):
            note("no browser could be started: open the login link in one")

    async def _login_link(self, url: str) -> str:
        """A link that logs in once; without one, the page to log in with."""
        from astraflow.client.access_requests import create_link
        from astraflow.client.asynchronous import AsyncClient

        try:
            async with AsyncClient(url, self._token.reveal()) as client:
                return url + (await client.perform(create_link())).path
        except errors.AstraflowError as error:
            note(f"no login link: {error.message}")
            return f"{url}/login"


def _reachable(host: str) -> str:
    """The address by which this machine reaches a wildcard listener."""
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 - not listened on here
    return f"[{host}]" if ":" in host else host


def _program() -> str:
    """The command that starts this program from another terminal in the same folder."""
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


def _print(lines: list[str]) -> None:
    for line in lines:
        typer.echo(line)
    sys.stdout.flush()


def _greeting(url: str, link: str, settings: SchedulerSettings) -> list[str]:
    folder = settings.data_dir
    kept = folder / "token"
    bearer = "$ASTRA_TOKEN" if settings.bootstrap_token else f"$(cat {kept})"
    lines = [
        f"  web app   {link}",
        "            works once, for ten minutes; `astra login-link` prints another",
        f"  API       {url}/api/docs",
        f"  data      {folder.absolute()}",
        "",
        "Try, in another terminal:",
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

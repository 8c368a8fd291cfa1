"""`astra server` and `astra worker`: the two processes, started separately."""

from __future__ import annotations

import ctypes
import gc
import os
import sys
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from astraflow.chaos import reached_from
from astraflow.cli.exit_codes import note
from astraflow.config import (
    Loaded,
    SchedulerSettings,
    Secret,
    WorkerSettings,
    keep_secret,
    load_scheduler,
    load_worker,
)
from astraflow.core import errors
from astraflow.observe.logs import Redaction, set_up_logging

Host = Annotated[str | None, typer.Option(help="Address to listen on", show_default="127.0.0.1")]
Port = Annotated[
    int | None, typer.Option(help="Port to listen on; 0 selects a free port", show_default="8080")
]
DataDir = Annotated[Path | None, typer.Option(help="Data directory", show_default="var")]
Config = Annotated[
    Path | None, typer.Option("--config", help="Settings file", show_default="astraflow.toml")
]

LARGE_BUFFER_BYTES: Final = 2 * 1024**2
_M_TRIM_THRESHOLD: Final = -1
_M_MMAP_THRESHOLD: Final = -3  # both of malloc.h


def run_loop(main: Any) -> Any:
    """Run a coroutine on uvloop, or on asyncio's loop where uvloop is not installed."""
    # Imported objects live as long as the process. Garbage collection of them took a twelfth of a busy scheduler's
    # time, and the objects of a run are not garbage until the run has ended.
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)
    _return_large_buffers()
    try:
        import uvloop
    except ImportError:
        import asyncio

        return asyncio.run(main)
    return uvloop.run(main)


def _return_large_buffers() -> None:
    """Let glibc give a large buffer back to the system when it is freed.

    By default glibc keeps what it has freed for the next buffer of up to 32 MiB, in each thread: 60 MiB after large
    requests, of 1,000 MiB beside a million tasks. What is smaller than this is used again: a payload of 1 MB passes
    through ten buffers, and to get one from the system takes ten times as long as to copy the payload into it.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return  # another C library
    for parameter in (_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD):
        mallopt(parameter, LARGE_BUFFER_BYTES)


def prepare(loaded: Loaded[Any], *secrets: str | None) -> None:
    """Set up logging with redacted secrets, and print notes about settings without effect."""
    redaction = Redaction()
    redaction.hide(*(secret for secret in secrets if secret))
    for name in loaded.settings.__struct_fields__:
        value = getattr(loaded.settings, name)
        if isinstance(value, Secret):
            redaction.hide(*value.lines())
    set_up_logging(loaded.settings.log_level, redaction=redaction)
    for text in loaded.notes:
        note(f"note: {text}")


def server(
    host: Host = None,
    port: Port = None,
    data_dir: DataDir = None,
    database_url: Annotated[
        str | None,
        typer.Option(
            help="Store: sqlite:///PATH or postgresql://…",
            show_default="SQLite in the data directory",
        ),
    ] = None,
    config: Config = None,
) -> None:
    """Run a scheduler. Start workers with `astra worker`."""
    loaded = load_scheduler(
        flags={"host": host, "port": port, "data_dir": data_dir, "database_url": database_url},
        file=config,
    )
    settings: SchedulerSettings = loaded.settings
    token, secret = settings.bootstrap_token, keep_secret(settings)
    prepare(loaded, token.reveal() if token else None, *secret.lines())
    if token is None:
        note("No bootstrap token is configured: every login will be refused")
        note("hint: set ASTRA_SCHEDULER_BOOTSTRAP_TOKEN, or use `astra up`, which creates a token")
    # Imported here: the import takes most of a second, and no other command needs it.
    from astraflow.api.listener import listen
    from astraflow.api.process import serve

    sock = listen(settings.host, settings.port)
    run_loop(
        serve(
            settings,
            sock,
            token=token,
            secret=secret,
            on_ready=lambda url: typer.echo(f"listening on {url}"),
            reached=reached_from(os.environ),
        )
    )


def worker(
    scheduler_url: Annotated[
        str | None,
        typer.Option(
            help="WebSocket URL of the scheduler; several of one store, separated by commas, are tried in turn",
            show_default="ws://127.0.0.1:8080/ws/worker",
        ),
    ] = None,
    token: Annotated[
        str | None,
        typer.Option(help="better given as ASTRA_WORKER_AUTH_TOKEN: others can see flags"),
    ] = None,
    tenant: Annotated[
        str | None, typer.Option(help="Tenant that the worker is for", show_default="default")
    ] = None,
    data_dir: DataDir = None,
    name: Annotated[str | None, typer.Option(help="Display name", show_default="host name")] = None,
    max_parallel: Annotated[
        int | None, typer.Option(help="Maximum number of parallel attempts", show_default="16")
    ] = None,
    label: Annotated[
        list[str] | None, typer.Option(help="A label as NAME=VALUE. Repeatable")
    ] = None,
    cpu: Annotated[
        float | None,
        typer.Option(help="Processors for nodes that ask for some", show_default="all"),
    ] = None,
    memory_bytes: Annotated[
        int | None,
        typer.Option(help="Memory for nodes that ask for some", show_default="all"),
    ] = None,
    gpu: Annotated[
        int | None,
        typer.Option(help="Graphics cards for nodes that ask for some", show_default="all"),
    ] = None,
    config: Config = None,
    with_parent: Annotated[bool, typer.Option("--with-parent", hidden=True)] = False,
) -> None:
    """Run a worker. On SIGTERM it drains, then exits."""
    loaded = load_worker(
        flags={
            "scheduler_ws_url": scheduler_url,
            "auth_token": token,
            "tenant": tenant,
            "data_dir": data_dir,
            "name": name,
            "concurrency_max_parallel": max_parallel,
            "labels": labels_of(label),
            "capacity_cpu": cpu,
            "capacity_memory_bytes": memory_bytes,
            "capacity_gpu": gpu,
        },
        file=config,
    )
    settings: WorkerSettings = loaded.settings
    prepare(loaded, settings.auth_token.reveal() if settings.auth_token else None)
    from astraflow.worker.privacy import hide_secrets
    from astraflow.worker.process import run_worker

    hide_secrets()
    code = run_loop(run_worker(settings, parent=sys.stdin.fileno() if with_parent else None))
    raise typer.Exit(code)


def labels_of(given: list[str] | None) -> dict[str, str] | None:
    """Parse labels. Raises: Refused, naming the invalid label."""
    if not given:
        return None
    for one in given:
        if "=" not in one:
            raise errors.Refused(
                errors.CONFIG_INVALID,
                f"Invalid label {one!r}: expected NAME=VALUE",
                detail={"hint": "write --label name=value"},
            )
    return dict(one.split("=", 1) for one in given)

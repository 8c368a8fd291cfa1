"""`astra serverless …`: run the nodes of a package without a session, behind an HTTP pool."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from astraflow.cli.arguments import command_group
from astraflow.cli.exit_codes import note
from astraflow.cli.inputs import unreadable

app = command_group("Run the nodes of a package behind an HTTP worker pool.")

Folder = Annotated[Path, typer.Argument(help="Folder of the package, with its manifest.json")]
Scheduler = Annotated[
    list[str],
    typer.Option(help="Address that tasks may report to. Repeatable", envvar="ASTRA_SERVER"),
]
Tenant = Annotated[list[str] | None, typer.Option(help="Tenant to work for. Repeatable")]
SECRET = "ASTRA_POOL_SECRET"  # noqa: S105 - the name of a variable


def make_worker(folder: Path, scheduler: list[str], tenant: list[str] | None) -> Any:
    """Raises: Refused, when the package cannot be loaded."""
    from astraflow.worker.hosts.builtin import host_program

    # An editable install has the SDK beside, a wheel inside.
    sys.path.append(str(host_program().parents[2]))
    from astraflow_sdk import NodeError
    from astraflow_sdk.serverless import ServerlessWorker

    try:
        return ServerlessWorker.of_package(
            str(folder),
            schedulers=scheduler,
            tenants=tenant or ["default"],
            secret=os.environ.get(SECRET, ""),
        )
    except (NodeError, OSError, ValueError, ImportError) as error:
        raise unreadable(
            f"Cannot load the package in {folder}: {error}", "check the folder"
        ) from error


@app.command()
def serve(
    folder: Folder,
    scheduler: Scheduler,
    host: Annotated[str, typer.Option(help="Address to listen on")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on")] = 8081,
    max_parallel: Annotated[int, typer.Option(help="Attempts at once")] = 32,
    background: Annotated[
        bool, typer.Option("--background", help="Answer a push at once and run it afterwards")
    ] = False,
    tenant: Tenant = None,
) -> None:
    """Serve a pool over HTTP. The shared secret of the pool is read from ASTRA_POOL_SECRET."""
    worker = make_worker(folder, scheduler, tenant)
    import uvicorn

    from astraflow.api.listener import listen

    sock = listen(host, port)
    config = uvicorn.Config(
        worker.asgi(max_parallel=max_parallel, background=background),
        log_level="warning",
        timeout_graceful_shutdown=30,
    )
    server = uvicorn.Server(config)
    bound_host, bound_port = sock.getsockname()[:2]
    typer.echo(f"listening on http://{bound_host}:{bound_port}")
    note(f"node types: {', '.join(worker.node_types)}")
    asyncio.run(server.serve(sockets=[sock]))


@app.command()
def consume(
    folder: Folder,
    scheduler: Scheduler,
    url: Annotated[str, typer.Option(help="Address of NATS, as nats://host:4222")],
    pool: Annotated[str, typer.Option(help="Name of the pool")],
    max_parallel: Annotated[int, typer.Option(help="Attempts at once")] = 16,
    tenant: Tenant = None,
    subject: Annotated[
        str | None, typer.Option(help="If the pool has another", show_default="of the pool")
    ] = None,
    stream: Annotated[
        str | None, typer.Option(help="If the pool has another", show_default="of the pool")
    ] = None,
) -> None:
    """Run the tasks that a pool has put on NATS JetStream.

    ASTRA_NATS_TOKEN is the token of the connection; or ASTRA_NATS_USER and ASTRA_NATS_PASSWORD are its login.
    """
    worker = make_worker(folder, scheduler, tenant)
    from astraflow.core.fleet.pools import PoolRecord
    from astraflow.scheduler.dispatchers.nats import NatsLogin, stream_of, subject_of

    names = PoolRecord(tenant=(tenant or ["default"])[0], name=pool, url=url, packages=())
    try:
        from astraflow.serverless.nats_consumer import consume as consume_tasks
    except ImportError as error:
        raise unreadable("NATS is not installed", "pip install 'astraflow[nats]'") from error

    user = os.environ.get("ASTRA_NATS_USER", "")
    secret = os.environ.get("ASTRA_NATS_PASSWORD" if user else "ASTRA_NATS_TOKEN", "")
    login = NatsLogin(url, secret, user)

    async def main() -> None:
        stop = asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, stop.set)
        typer.echo(f"consuming {subject or subject_of(names)}")
        await consume_tasks(
            worker,
            login=login,
            subject=subject or subject_of(names),
            stream=stream or stream_of(names),
            max_parallel=max_parallel,
            stop=stop,
        )

    asyncio.run(main())

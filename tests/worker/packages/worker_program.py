"""One boot of a worker that installs: `worker_program.py FOLDER ORIGIN ORDERS`, where orders are JSON lines on stdin.

It prints each event as a line, and ends when stdin does. `ASTRA_CHAOS_POINT` kills it at its point; with `FILE_BYTES`
it can write no larger files from its start on.
"""

from __future__ import annotations

import asyncio
import os
import resource
import sys
import threading
from pathlib import Path

import msgspec

from astraflow.core.protocol import business
from tests.worker.packages.rig import Rig, Server, worker

FILE_BYTES = "FILE_BYTES"
Request = business.PkgInstall | business.PkgUninstall


async def main() -> None:
    server = Server()
    server.origin = sys.argv[2]
    loop = asyncio.get_running_loop()
    lines: asyncio.Queue[bytes] = asyncio.Queue()

    def read() -> None:
        for line in sys.stdin.buffer:
            loop.call_soon_threadsafe(lines.put_nowait, line)
        loop.call_soon_threadsafe(lines.put_nowait, b"")

    threading.Thread(target=read, daemon=True).start()
    async with worker(Path(sys.argv[1]), server, os.environ, hooks=("*",)) as rig:
        _print_events(rig)
        if FILE_BYTES in os.environ:
            most = int(os.environ[FILE_BYTES])
            resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
        while line := await lines.get():
            given = msgspec.json.decode(line)
            if "url" in given:
                rig.packages.install(msgspec.convert(given, business.PkgInstall))
            else:
                rig.packages.uninstall(msgspec.convert(given, business.PkgUninstall))


def _print_events(rig: Rig) -> None:
    tell = rig.packages._notices._tell

    def told(key: str, frame_type: str, payload: object, corr: str | None = None) -> None:
        tell(key, frame_type, payload, corr)  # type: ignore[arg-type]
        if isinstance(payload, business.PkgEvent):
            print(payload.version, payload.status, bytes(payload.details).decode(), flush=True)

    rig.packages._notices._tell = told


if __name__ == "__main__":
    asyncio.run(main())

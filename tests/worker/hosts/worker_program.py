"""A worker as far as hosts are concerned: one attempt, then it waits to be killed or frozen.

`python worker_program.py FOLDER FENCE_S TASK_FILE`: the file is written when the daemon of the attempt is up.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from astraflow.worker.hosts import PoolSettings
from tests.worker.hosts.stage import Stage


async def main() -> None:
    folder, fence_s, pid_file = sys.argv[1:]
    stage = Stage(Path(folder), PoolSettings())
    stage.start("nasty.daemonizes", {"pid_file": pid_file}, fence_s=float(fence_s))
    await stage.up()
    print("up", flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main())

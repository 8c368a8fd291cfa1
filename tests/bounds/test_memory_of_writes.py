"""What was written does not stay in memory."""

from __future__ import annotations

import asyncio
import gc
import os
import subprocess
import sys
from pathlib import Path

from astraflow.store.rows import Changes, PlanRow
from astraflow.store.sqlite import SqliteStore

LARGE = 32 * 1024**2


def test_a_large_plan_is_not_kept_by_the_statement_that_wrote_it(tmp_path: Path) -> None:
    """In a process of its own, where a freed buffer goes back to the system as it does in a scheduler (`run_loop`):
    in this one the allocator keeps whatever other tests have freed."""
    grown = subprocess.run(
        [sys.executable, "-m", __name__, str(tmp_path / "store.db")],
        env=os.environ | {"MALLOC_MMAP_THRESHOLD_": str(256 * 1024)},
        stdout=subprocess.PIPE,
        check=True,
        timeout=60,
    )
    assert int(grown.stdout) < LARGE // 2


def _resident_bytes() -> int:
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


async def _growth(path: Path) -> int:
    """How much more memory is in use after a large plan was written than before."""
    store = SqliteStore(path)
    await store.open()
    claim = await store.claim("test")
    assert claim is not None
    await store.commit(claim, 1, Changes(plans=[PlanRow("small", b"{}", b"{}")]))
    before = _resident_bytes()
    plan = PlanRow("large", b"d" * (LARGE // 2), b"p" * (LARGE // 2))
    await store.commit(claim, 2, Changes(plans=[plan]))
    del plan
    await store.commit(claim, 3, Changes())  # the thread of the writer has left the call before it
    grown = _resident_bytes() - before
    stored = await store.find_plan("large")
    assert stored is not None
    assert len(stored.definition) == len(stored.plan) == LARGE // 2
    await store.close()
    return grown


if __name__ == "__main__":
    print(asyncio.run(_growth(Path(sys.argv[1]))))

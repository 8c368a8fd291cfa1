"""The scheduler with faults in it: it fails at resources whose ids begin with the name of the part that fails.

Run as the product is: `python tests/hostile/faulty_server.py server --port …`.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from astraflow.cli.main import main
from astraflow.core import errors
from astraflow.core.engine import reports, sessions
from astraflow.core.protocol import open_sessions
from astraflow.scheduler import fleet_rows
from astraflow.store.sqlite import SqliteDatabase


def fail_at(owner: Any, name: str, prefix: str, resource_of: Any) -> None:
    """Let a function do its work, and then fail: what it did is half of what is to be done."""
    whole = getattr(owner, name)

    def failing(*args: Any, **more: Any) -> Any:
        answer = whole(*args, **more)
        if any(str(one).startswith(prefix) for one in resource_of(*args)):
            raise RuntimeError(f"a fault of the test: {prefix}")
        return answer

    setattr(owner, name, failing)


def refuse(self: SqliteDatabase, claim: Any, number: int, changes: Any) -> Any:
    if any(row.resource_id.startswith("store-") for row in changes.resources):
        raise errors.StoreError(errors.STORE_REFUSED, "a fault of the test: store")
    return commit(self, claim, number, changes)


def _named(envelope: Any) -> list[object]:
    return [getattr(envelope.payload, "resource_id", "")]


commit = SqliteDatabase.commit
SqliteDatabase.commit = refuse  # type: ignore[method-assign]
fail_at(
    reports, "on_resource_event", "engine-", lambda view, tenant, worker, event: [event.resource_id]
)
fail_at(fleet_rows, "resource_row", "rows-", lambda record, lane: [record.resource_id])
fail_at(open_sessions, "Delivered", "gateway-", lambda *said: _named(said[-1]))
fail_at(sessions, "reconcile_packages", "label-", lambda view, worker: worker.offer.labels)

if __name__ == "__main__":
    main()

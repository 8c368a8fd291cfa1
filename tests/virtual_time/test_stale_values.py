"""Stored values live as long as the runs that they are part of."""

from __future__ import annotations

from typing import Any

from astraflow.core.expressions.stored_value import VALUE_TYPE
from astraflow.core.fleet.resources import ResourceRecord
from astraflow.scheduler import stale_values
from astraflow.scheduler.stale_values import close_stale_values
from tests.virtual_time.rig import TENANT, Rig, with_rig


def value(name: str, run_id: Any, blob: str | None = "blob", kind: str = VALUE_TYPE) -> Any:
    return ResourceRecord(
        tenant=TENANT,
        worker_id="w-1",
        resource_id=name,
        type=kind,
        run_id=run_id,
        created_at=1,
        is_artifact=True,
        blob=blob,
    )


def test_the_values_of_removed_runs_are_closed(monkeypatch: Any) -> None:
    monkeypatch.setattr(stale_values, "PIECE_VALUES", 2)

    async def test(rig: Rig) -> None:
        writer = rig.scheduler.serving.writer
        store = rig.site.disk.store
        kept = [
            value("of nobody", None),
            value("not copied", "gone", blob=None),
        ]
        stale = [value(f"stale-{number}", f"gone-{number % 2}") for number in range(3)]
        rig.site.shelf.blobs["blob"] = (b"1", 0)
        for one in (*kept, *stale, value("a file", "gone", kind="file")):
            writer.engine.restore_resource(one)
        assert await close_stale_values(store, writer) == 2
        assert await close_stale_values(store, writer) == 1
        assert await close_stale_values(store, writer) == 0
        await writer.barrier()
        assert writer.engine.ask.resources_of_type(VALUE_TYPE) == kept
        assert len(writer.engine.ask.resources_of_type("file")) == 1

    with_rig(test, workers=1)

"""A host that only listens."""

from __future__ import annotations

from typing import Any

from astraflow_sdk import Context


class Ear:
    """Stands for the host behind a context."""

    worker_id = "w-1"
    tenant = "t-1"

    def __init__(self) -> None:
        self.told_by: list[Context] = []
        self.asked: list[tuple[object, float | None]] = []

    def registry_of(self, ctx: Context) -> None:
        return None

    def told(self, ctx: Context) -> None:
        self.told_by.append(ctx)

    def next_of(self, ctx: Context, payload: object, timeout_s: float | None) -> Any:
        self.asked.append((payload, timeout_s))
        return "answer"


def context(parameters: dict[str, Any] | None = None, **fields: Any) -> Context:
    frame = {
        "task_id": "t-1",
        "attempt": 2,
        "run_id": "r-1",
        "node_id": "n-1",
        "node_type": "a.b",
        "parameters": parameters or {},
        **fields,
    }
    return Context(frame, Ear())

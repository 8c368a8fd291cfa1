"""What lists of runs, of their output and of workers can be asked for."""

from __future__ import annotations

from typing import TypedDict


class RunFilters(TypedDict, total=False):
    """Which runs; `since` and `until` are times as RFC 3339 writes them."""

    status: str | None
    workflow_id: str | None
    trigger: str | None
    by: str | None
    text: str | None
    since: str | None
    until: str | None


class LogFilters(TypedDict, total=False):
    """Which output; `newest` begins with the last."""

    channel: str | None
    attempt: int | None
    text: str | None
    newest: bool


class WorkerFilters(TypedDict, total=False):
    """Which workers."""

    status: str | None
    package: str | None
    text: str | None

"""The timeline of a run, page by page."""

from __future__ import annotations

from astraflow.client.requests import RUNS, ApiRequest, Pages, _as, _part, _query
from astraflow.core.contract.base import Page
from astraflow.core.contract.timelines import ListTimeline, TimelineEntry, TimelinePage


def iterate_timeline(run_id: str, *, node_id: str | None = None) -> Pages[TimelineEntry]:
    """Every attempt and every wait, in order. An attempt may come in parts, which have the same `key`."""
    path = f"{RUNS}/{_part(run_id)}/timeline"

    def page(cursor: str | None) -> ApiRequest[Page[TimelineEntry]]:
        params = _query(ListTimeline, node_id=node_id, cursor=cursor)
        return ApiRequest("GET", path, _as(TimelinePage), params)

    return Pages(page)

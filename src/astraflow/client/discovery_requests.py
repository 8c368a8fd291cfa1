"""What an installation is, what comes with it, and where something is."""

from __future__ import annotations

from typing import Any

from astraflow.client.requests import ApiRequest, _as, _part, _query
from astraflow.core.contract.base import Page
from astraflow.core.contract.discovery import (
    AboutServer,
    ExamplePage,
    ExampleSummary,
    SearchFor,
    SearchResult,
)


def get_about() -> ApiRequest[AboutServer]:
    """Version, store, and the room that is left."""
    return ApiRequest("GET", "/api/v1/about", _as(AboutServer))


def list_examples() -> ApiRequest[Page[ExampleSummary]]:
    """The workflows that come with the installation."""
    return ApiRequest("GET", "/api/v1/examples", _as(ExamplePage))


def get_example(example_id: str) -> ApiRequest[dict[str, Any]]:
    """The definition of one of them."""
    return ApiRequest("GET", f"/api/v1/examples/{_part(example_id)}", _as(dict[str, Any]))


def search(text: str, *, limit: int | None = None) -> ApiRequest[SearchResult]:
    """Workflows, runs, node types, packages and workers with this text in their name, label or id."""
    return ApiRequest(
        "GET", "/api/v1/search", _as(SearchResult), _query(SearchFor, q=text, limit=limit)
    )

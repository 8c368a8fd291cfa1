"""The requests about HTTP worker pools."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from astraflow.client.requests import (
    JSON,
    ApiRequest,
    Pages,
    _as,
    _as_nothing,
    _encode,
    _part,
    _query,
)
from astraflow.core.contract.base import Page
from astraflow.core.contract.pools import HttpPool, HttpPoolPage, ListPools

POOLS: Final = "/api/v1/pools"


def list_pools(
    *, limit: int | None = None, cursor: str | None = None
) -> ApiRequest[Page[HttpPool]]:
    params = _query(ListPools, limit=limit, cursor=cursor)
    return ApiRequest("GET", POOLS, _as(HttpPoolPage), params)


def iterate_pools(*, limit: int | None = None, page_size: int = 200) -> Pages[HttpPool]:
    return Pages(lambda cursor: list_pools(limit=page_size, cursor=cursor), limit)


def get_pool(name: str) -> ApiRequest[HttpPool]:
    return ApiRequest("GET", f"{POOLS}/{_part(name)}", _as(HttpPool))


def put_pool(name: str, settings: Mapping[str, Any]) -> ApiRequest[HttpPool]:
    """Make a pool or replace its settings, as `{"url": …, "packages": [{"name": "core"}]}`."""
    body = _encode(settings, "settings")
    return ApiRequest("PUT", f"{POOLS}/{_part(name)}", _as(HttpPool), headers=JSON, body=body)


def delete_pool(name: str) -> ApiRequest[None]:
    """Remove a pool that holds no attempt."""
    return ApiRequest("DELETE", f"{POOLS}/{_part(name)}", _as_nothing)

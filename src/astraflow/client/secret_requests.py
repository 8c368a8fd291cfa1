"""The requests about secrets. No answer has a value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

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
from astraflow.core.contract.secrets import KeyRotated, ListSecrets, SecretPage, StoredSecret

SECRETS: Final = "/api/v1/secrets"


def list_secrets(
    *, limit: int | None = None, cursor: str | None = None
) -> ApiRequest[Page[StoredSecret]]:
    params = _query(ListSecrets, limit=limit, cursor=cursor)
    return ApiRequest("GET", SECRETS, _as(SecretPage), params)


def iterate_secrets(*, limit: int | None = None, page_size: int = 200) -> Pages[StoredSecret]:
    return Pages(lambda cursor: list_secrets(limit=page_size, cursor=cursor), limit)


def put_secret(name: str, value: str, *, packages: Sequence[str] = ()) -> ApiRequest[StoredSecret]:
    """Set a secret; `packages`: those whose nodes may have it, all if there are none."""
    body = _encode({"value": value, "packages": list(packages)}, "value")
    return ApiRequest("PUT", f"{SECRETS}/{_part(name)}", _as(StoredSecret), headers=JSON, body=body)


def delete_secret(name: str) -> ApiRequest[None]:
    return ApiRequest("DELETE", f"{SECRETS}/{_part(name)}", _as_nothing)


def rotate_secrets_key() -> ApiRequest[KeyRotated]:
    """Encrypt everything with another master key."""
    return ApiRequest("POST", f"{SECRETS}/rotate-key", _as(KeyRotated))

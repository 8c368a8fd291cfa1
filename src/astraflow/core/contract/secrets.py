"""Secrets: what is said of them. Their values go in and never come out."""

from __future__ import annotations

from typing import Annotated, ClassVar, Final

from msgspec import field

from astraflow.core.contract.base import (
    MAX_ID_CHARS,
    Count,
    JsonObject,
    Page,
    PageQuery,
    RequestBody,
    RestObject,
    Timestamp,
    doc,
)

MAX_SECRET_CHARS: Final = 16 * 1024
_PACKAGE = doc("A package.", min_length=1, max_length=MAX_ID_CHARS)


class PutSecret(RequestBody, frozen=True, kw_only=True):
    """A secret and who may have it."""

    value: Annotated[
        str,
        doc("Its value, which is never shown again.", min_length=1, max_length=MAX_SECRET_CHARS),
    ]
    packages: Annotated[
        list[Annotated[str, _PACKAGE]],
        doc("The packages whose nodes may have it; empty: all.", max_length=100),
    ] = field(default_factory=list)

    EXAMPLE: ClassVar[JsonObject] = {"value": "sk-…", "packages": ["llm"]}


class StoredSecret(RestObject, frozen=True, kw_only=True):
    """A secret, without its value."""

    name: Annotated[str, doc("Its name.")]
    version: Annotated[Count, doc("Grows by one each time it is set.")]
    packages: Annotated[list[str], doc("The packages whose nodes may have it; empty: all.")]
    created_at: Annotated[Timestamp, doc("When it was first set.")]
    updated_at: Annotated[Timestamp, doc("When it was last set.")]
    updated_by: Annotated[str, doc("Who set it last.")]

    EXAMPLE: ClassVar[JsonObject] = {
        "name": "openai",
        "version": 2,
        "packages": ["llm"],
        "createdAt": "2026-01-15T10:00:00.000Z",
        "updatedAt": "2026-01-15T10:00:00.000Z",
        "updatedBy": "ann",
    }


class SecretPage(Page[StoredSecret], frozen=True, kw_only=True):
    """A page of secrets, by name."""


class ListSecrets(PageQuery, frozen=True, kw_only=True):
    """Which secrets."""


class KeyRotated(RestObject, frozen=True, kw_only=True):
    """Everything is encrypted with the new master key."""

    data_keys: Annotated[Count, doc("How many data keys were encrypted again.")]

    EXAMPLE: ClassVar[JsonObject] = {"dataKeys": 3}

"""Resources of workers, and the artifacts among them that people download."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Final

from astraflow.core.contract.base import (
    Count,
    Id,
    JsonObject,
    Page,
    PageQuery,
    Query,
    RequestBody,
    RestObject,
    Timestamp,
    doc,
)
from astraflow.core.contract.words import ResourceState

MAX_TTL_S: Final = 366 * 86_400


class Resource(RestObject, frozen=True, kw_only=True):
    """Something that a worker keeps for later nodes, or the copy of it."""

    resource_id: Annotated[str, doc("Its id; it may contain slashes.")]
    worker_id: Annotated[str, doc("The worker that keeps it.")]
    type: Annotated[str, doc("What it is, as the node named it.")]
    state: Annotated[ResourceState, doc("Whether it is there, is being removed, or is gone.")]
    scope: Annotated[str, doc("Who may use it: a run, a session, or the tenant.")]
    run_id: Annotated[str | None, doc("The run that made it.")]
    node_id: Annotated[str | None, doc("The node that made it.")]
    package: Annotated[str, doc("The package that made it.")]
    size_bytes: Annotated[Count | None, doc("Its size.")]
    created_at: Annotated[Timestamp, doc("When it was made.")]
    expires_at: Annotated[Timestamp | None, doc("When the worker may remove it.")]
    is_artifact: Annotated[bool, doc("Whether a result refers to it.")]
    has_copy: Annotated[bool, doc("Whether it can be read without its worker.")]
    metadata: Annotated[Any, doc("What the node said about it.")]

    EXAMPLE: ClassVar[JsonObject] = {
        "resourceId": "01JCQ6Z0M3V8R6T2XK9D4HB7WN/report",
        "workerId": "01JCQ6YV2E5N3A8P7S1F0GKM4C",
        "type": "file",
        "state": "ready",
        "scope": "01JCQ6Z0M3V8R6T2XK9D4HB7WN",
        "runId": "01JCQ6Z0M3V8R6T2XK9D4HB7WN",
        "nodeId": "5b2c3fcb-9c18-4ca2-9b5a-8ad4deb1f164",
        "package": "",
        "sizeBytes": 1_048_576,
        "createdAt": "2026-01-15T10:00:00.000Z",
        "expiresAt": "2026-01-15T11:00:00.000Z",
        "isArtifact": True,
        "hasCopy": False,
        "metadata": {"mime": "application/pdf"},
    }


class ResourcePage(Page[Resource], frozen=True, kw_only=True):
    """A page of resources, newest first."""


class ListResources(PageQuery, frozen=True, kw_only=True):
    """Which resources."""

    run_id: Annotated[Id | None, doc("Only those of this run.")] = None
    worker_id: Annotated[Id | None, doc("Only those on this worker.")] = None
    type: Annotated[Id | None, doc("Only those of this type.")] = None
    state: Annotated[ResourceState | None, doc("Only those in this state.")] = None


class OfWorker(Query, frozen=True, kw_only=True):
    """On which worker."""

    worker_id: Annotated[
        Id | None, doc("The worker that has it, if several have a resource of this id.")
    ] = None


class DownloadArtifact(OfWorker, frozen=True, kw_only=True):
    """On which worker, and how to get in without a token."""

    token: Annotated[str, doc("The token of a signed URL.", max_length=4_096)] = ""
    inline: Annotated[
        bool,
        doc(
            "`true` lets a browser show texts, tables, images, sound and video. What could act as a page is an "
            "attachment all the same."
        ),
    ] = False


class Extension(RequestBody, frozen=True, kw_only=True):
    """How long to keep a resource, from now on."""

    ttl_seconds: Annotated[int, doc("Seconds from now.", ge=1, le=MAX_TTL_S)]

    EXAMPLE: ClassVar[JsonObject] = {"ttlSeconds": 3_600}


class ArtifactLink(RestObject, frozen=True, kw_only=True):
    """A signed URL: whoever has it can read the artifact without a token, until it expires."""

    url: Annotated[str, doc("The signed URL.")]
    expires_at: Annotated[Timestamp, doc("Until when it can be used.")]
    size_bytes: Annotated[Count, doc("The size of the artifact.")]
    sha256: Annotated[str, doc("The digest of its bytes.")]
    mime: Annotated[str, doc("What it is.")]

    EXAMPLE: ClassVar[JsonObject] = {
        "url": "https://astra.example/api/v1/artifacts/01JCQ6Z0M3V8R6T2XK9D4HB7WN/report?token=…",
        "expiresAt": "2026-01-15T11:00:00.000Z",
        "sizeBytes": 1_048_576,
        "sha256": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "mime": "application/pdf",
    }


class Uploaded(RestObject, frozen=True, kw_only=True):
    """The upload of a worker is stored."""

    resource_id: Annotated[str, doc("The resource.")]
    sha256: Annotated[str, doc("The digest of the bytes that arrived.")]

    EXAMPLE: ClassVar[JsonObject] = {
        "resourceId": "01JCQ6Z0M3V8R6T2XK9D4HB7WN/report",
        "sha256": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    }

"""Packages, their rollouts, and the node types that they bring."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from msgspec import UNSET, Meta, UnsetType

from astraflow.core import errors
from astraflow.core.contract.base import (
    OBJECT,
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
from astraflow.core.contract.words import RolloutState


class PackageHead(RestObject, frozen=True, kw_only=True):
    """A published package without its versions."""

    name: Annotated[str, doc("The name of the package.")]
    active: Annotated[
        str | None, doc("The version that nodes without a version get; null if all are yanked.")
    ]
    pinned: Annotated[
        bool, doc("Whether somebody chose the active version; else it is the newest.")
    ]
    nodes: Annotated[Count, doc("How many node types the active version has.")]
    description: Annotated[str, doc("What its manifest says.")]
    published_at: Annotated[Timestamp, doc("When a version was last published.")]


class PackageSummary(PackageHead, frozen=True, kw_only=True):
    """A published package in a list."""

    versions: Annotated[list[str], doc("Its versions, newest first.")]

    EXAMPLE: ClassVar[JsonObject] = {
        "name": "acme.texts",
        "active": "1.2.0",
        "pinned": False,
        "versions": ["1.2.0"],
        "nodes": 3,
        "description": "Texts, split and joined",
        "publishedAt": "2026-01-15T10:00:00.000Z",
    }


class PackageVersion(RestObject, frozen=True, kw_only=True):
    """A published version of a package."""

    name: Annotated[str, doc("The name of the package.")]
    version: Annotated[str, doc("The version.")]
    active: Annotated[bool, doc("Whether nodes without a version get this one.")]
    sha256: Annotated[str, doc("The digest of the archive.")]
    size_bytes: Annotated[Count, doc("The size of the archive.")]
    published_at: Annotated[Timestamp, doc("When it was published.")]
    published_by: Annotated[str, doc("Who published it.")]
    signed_by: Annotated[str | None, doc("The trusted key that signed it, if one did.")]
    yanked_at: Annotated[Timestamp | None, doc("When it was yanked; null if it is not.")]
    yanked_reason: Annotated[str, doc("Why it was yanked.")]
    nodes: Annotated[Count, doc("How many node types it has.")]
    workers: Annotated[
        list[str] | None, doc("The workers that have it. Only in responses about one package.")
    ] = None
    manifest: Annotated[
        Any,
        doc(
            "Its manifest. Only in the response about one version.",
            extra_json_schema=OBJECT,
        ),
    ] = None
    signature: Annotated[
        Any | UnsetType,
        doc(
            "Its detached signature, null if it has none. Only in the response about one version.",
            extra_json_schema={"type": ["object", "null"]},
        ),
    ] = UNSET

    EXAMPLE: ClassVar[JsonObject] = {
        "name": "acme.texts",
        "version": "1.2.0",
        "active": True,
        "sha256": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "sizeBytes": 20_480,
        "publishedAt": "2026-01-15T10:00:00.000Z",
        "publishedBy": "ann",
        "signedBy": "acme",
        "yankedAt": None,
        "yankedReason": "",
        "nodes": 3,
    }


class Package(PackageHead, frozen=True, kw_only=True):
    """A published package with its versions, newest first, and the workers that have each."""

    versions: Annotated[list[PackageVersion], doc("Its versions, newest first.")]

    EXAMPLE: ClassVar[JsonObject] = {
        **PackageSummary.EXAMPLE,
        "versions": [{**PackageVersion.EXAMPLE, "workers": ["01JCQ6YV2E5N3A8P7S1F0GKM4C"]}],
    }


class PackagePage(Page[PackageSummary], frozen=True, kw_only=True):
    """A page of packages, by name."""


class ListPackages(PageQuery, frozen=True, kw_only=True):
    """Which packages."""


class FetchArchive(Query, frozen=True, kw_only=True):
    """How to get in without a token."""

    token: Annotated[str, doc("The token of a signed URL.", max_length=4_096)] = ""


class ActiveVersion(RestObject, frozen=True, kw_only=True):
    """The version that nodes without a version get from here on."""

    name: Annotated[str, doc("The package.")]
    version: Annotated[str, doc("The version that is active now.")]
    previous: Annotated[str | None, doc("The version that was active before.")]

    EXAMPLE: ClassVar[JsonObject] = {"name": "acme.texts", "version": "1.2.0", "previous": "1.1.0"}


class ActivateRequest(RequestBody, frozen=True, kw_only=True):
    """Which version to activate."""

    version: Annotated[str, doc("A published version.", min_length=1, max_length=64)]

    EXAMPLE: ClassVar[JsonObject] = {"version": "1.2.0"}


class YankRequest(RequestBody, frozen=True, kw_only=True):
    """Why a version is yanked."""

    reason: Annotated[str, doc("For people.", max_length=1_024)] = ""

    EXAMPLE: ClassVar[JsonObject] = {"reason": "it loses files"}


_Percent = Annotated[int, Meta(ge=1, le=100)]


class RolloutRequest(RequestBody, frozen=True, kw_only=True):
    """Bring a version to all workers, in waves."""

    version: Annotated[str, doc("A published version.", min_length=1, max_length=128)]
    waves: Annotated[
        tuple[_Percent, ...],
        doc(
            "How many percent of the workers have the version after each wave; the last is 100.",
            min_length=1,
            max_length=20,
        ),
    ] = (10, 50, 100)
    soak_seconds: Annotated[
        float, doc("How long a wave is watched before the next one.", ge=0, le=86_400)
    ] = 30.0
    max_failed_percent: Annotated[
        float,
        doc("The rollout fails if more attempts of the version fail than this.", ge=0, le=100),
    ] = 10.0

    def check(self) -> None:
        """Raises: Refused."""
        if list(self.waves) != sorted(set(self.waves)) or self.waves[-1] != 100:
            raise errors.Refused(
                errors.REQUEST_INVALID,
                "waves must grow and end with 100, for example [10, 50, 100]",
                pointer="/waves",
            )

    EXAMPLE: ClassVar[JsonObject] = {
        "version": "1.2.0",
        "waves": [10, 50, 100],
        "soakSeconds": 30,
    }


class Rollout(RestObject, frozen=True, kw_only=True):
    """A version on its way to all workers."""

    rollout_id: Annotated[str, doc("The id of the rollout.")]
    name: Annotated[str, doc("The package.")]
    version: Annotated[str, doc("The version that is rolled out.")]
    previous: Annotated[str | None, doc("The version that was active when it began.")]
    state: Annotated[RolloutState, doc("Where it stands.")]
    waves: Annotated[list[int], doc("How many percent of the workers each wave brings it to.")]
    wave: Annotated[Count, doc("The wave that it is in, from 0 on.")]
    soak_seconds: Annotated[float, doc("How long a wave is watched before the next one.")]
    max_failed_percent: Annotated[float, doc("It fails if more attempts fail than this.")]
    started_at: Annotated[Timestamp, doc("When it began.")]
    updated_at: Annotated[Timestamp, doc("When it last went on.")]
    started_by: Annotated[str, doc("Who began it.")]
    error: Annotated[str, doc("Why it failed.")]

    EXAMPLE: ClassVar[JsonObject] = {
        "rolloutId": "01JCQ70R2MB4E6V9N8T3K5XW1D",
        "name": "acme.texts",
        "version": "1.2.0",
        "previous": "1.1.0",
        "state": "running",
        "waves": [10, 50, 100],
        "wave": 0,
        "soakSeconds": 30.0,
        "maxFailedPercent": 10.0,
        "startedAt": "2026-01-15T10:00:00.000Z",
        "updatedAt": "2026-01-15T10:00:00.000Z",
        "startedBy": "ann",
        "error": "",
    }


class RolloutPage(Page[Rollout], frozen=True, kw_only=True):
    """The rollouts of a package, newest first."""


class NodePackage(RestObject, frozen=True, kw_only=True):
    """A version of a package."""

    name: Annotated[str, doc("The package.")]
    version: Annotated[str, doc("Its version.")]


class PortTypes(RestObject, frozen=True, kw_only=True):
    """The JSON types of the ports that carry data, by key. A port that takes several values: of each of them. What is
    not here can be anything."""

    inputs: Annotated[dict[str, list[str]], doc("What its input ports take.")]
    outputs: Annotated[dict[str, list[str]], doc("What its output ports give.")]


class NodeType(RestObject, frozen=True, kw_only=True):
    """A node type that workflows can use, as its package describes it."""

    type: Annotated[str, doc("The type, as nodes name it.")]
    package: Annotated[NodePackage, doc("The package that has it, in the version that counts.")]
    published: Annotated[bool, doc("Whether it is published; else a worker brought it.")]
    label: Annotated[str, doc("Its name, for people.")]
    category: Annotated[str, doc("Where an editor lists it.")]
    description: Annotated[str, doc("What it does.")]
    tags: Annotated[list[str], doc("Words to find it by.")]
    schema: Annotated[JsonObject, doc("The JSON Schemas of its parameters and results.")]
    ui: Annotated[JsonObject, doc("Its ports and how an editor shows it.")]
    runtimes: Annotated[JsonObject, doc("How workers run it.")]
    status: Annotated[str, doc("`published`, or what the package says, as `deprecated`.")]
    port_types: Annotated[PortTypes | None, doc("The types of its ports, as its schemas say.")] = (
        None
    )
    help: Annotated[str | None, doc("How it is used, in Markdown.")] = None
    icon: Annotated[str | None, doc("The name of its icon, in Tabler's set.")] = None
    color: Annotated[str | None, doc("The colour of its icon: `#rrggbb`.")] = None
    error_port: Annotated[
        bool,
        doc("Whether it has the output `error` that every node has, and has not declared its own."),
    ] = False
    executable: Annotated[
        bool,
        doc("Whether the scheduler executes it, or a worker that is connected has its package."),
    ] = False
    executed_by: Annotated[
        str | None, doc("`scheduler` if no worker is needed, if the package says so.")
    ] = None
    middleware: Annotated[
        bool, doc("Whether it wraps another node, and cannot run for itself.")
    ] = False
    conditions: Annotated[JsonObject | None, doc("What the package says about its use.")] = None
    extensions: Annotated[JsonObject | None, doc("What the package says for other tools.")] = None
    metadata: Annotated[JsonObject | None, doc("What the package says about the type.")] = None
    also_in: Annotated[
        list[NodePackage] | None,
        doc("Other packages with the type. Only in the response about one type."),
    ] = None

    EXAMPLE: ClassVar[JsonObject] = {
        "type": "acme.split",
        "package": {"name": "acme.texts", "version": "1.2.0"},
        "published": True,
        "label": "Split a text",
        "category": "text",
        "description": "",
        "tags": ["text"],
        "schema": {},
        "ui": {},
        "runtimes": {},
        "status": "published",
        "portTypes": {"inputs": {"text": ["string"]}, "outputs": {"parts": ["array"]}},
    }


class NodeTypePage(Page[NodeType], frozen=True, kw_only=True):
    """A page of node types, best match first."""


class ListNodeTypes(PageQuery, frozen=True, kw_only=True):
    """Which node types."""

    q: Annotated[str, doc("Words that must all occur.", max_length=256)] = ""
    category: Annotated[Id | None, doc("Only those of this category.")] = None
    package: Annotated[Id | None, doc("Only those of this package.")] = None


class ShowNodeType(Query, frozen=True, kw_only=True):
    """Of which package."""

    package: Annotated[Id | None, doc("The package, if several have the type.")] = None
    version: Annotated[
        Id | None, doc("A version of the package; without it that which a node without one gets.")
    ] = None

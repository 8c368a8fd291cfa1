"""The manifest of a package: what it provides and what it needs (seed 002 §3, seed 003 §6).

As with a definition, the authored bytes are kept beside the typed view, so fields that we do not
know survive. `resources` has two forms: the list of seed 002 (files to fetch and place) and the
object of seed 003 (`defaults` for what handlers return), which may hold the list as `files`.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Raw, Struct

from astraflow.core.workflow.definition import Ui

Objects = dict[str, Raw]
LargeResults = Literal["reference", "fail"]
"""`reference`: its large parts are stored, and a reference is in the place of each; `fail`: the attempt fails."""


class _ManifestPart(Struct, frozen=True, gc=False, rename="camel"):
    pass


class Adapter(_ManifestPart, frozen=True):
    """Code that runs nodes: `entrypoint` is `module.path:Name`, `capabilities` are node types."""

    name: str
    runtime: str
    entrypoint: str
    capabilities: list[str] = []
    idempotency: str | None = None
    """`none`: a lost attempt that had started fails instead of running again."""
    metadata: Objects | None = None


class PythonNeeds(_ManifestPart, frozen=True):
    requires: str | None = None
    dependencies: list[str] = []
    closed: bool = False
    """The dependencies are all that is needed, theirs included: nothing is resolved at install."""


class NodeRuntime(_ManifestPart, frozen=True):
    handler: str | None = None
    config: Objects | None = None


class ManifestNode(_ManifestPart, frozen=True):
    """A node type that the package provides."""

    type: str
    status: Literal["draft", "published", "deprecated"] | None = None
    category: str | None = None
    label: str | None = None
    description: str | None = None
    help: str | None = None
    """What the node does and how it is used, in Markdown."""
    icon: str | None = None
    color: str | None = None
    """How an editor draws it: the name of an icon, and `#rrggbb`."""
    tags: list[str] = []
    runtimes: dict[str, NodeRuntime] = {}
    schema: Objects | None = None
    ui: Ui | None = None
    executed_by: Literal["worker", "scheduler"] = "worker"
    middleware: bool = False
    """It wraps another node, and cannot run for itself."""
    large_results: LargeResults | None = None
    """What becomes of a result that is too large; None: as the package says."""
    conditions: Objects | None = None
    extensions: Objects | None = None
    metadata: Objects | None = None


class ResourceFile(_ManifestPart, frozen=True):
    path: str
    type: str
    sha256: str | None = None
    url: str | None = None


class ResourceDefaults(_ManifestPart, frozen=True):
    inline_threshold_bytes: Annotated[int, Meta(ge=0, le=2**31)] | None = None
    type: str | None = None
    ttl_seconds: Annotated[int, Meta(ge=1, le=366 * 86_400)] | None = None


class ManifestResources(_ManifestPart, frozen=True):
    defaults: ResourceDefaults | None = None
    files: list[ResourceFile] = []


class Hooks(_ManifestPart, frozen=True):
    """Scripts inside the package, run at these moments, from an allow-list and under limits."""

    install: list[str] = []
    uninstall: list[str] = []


class ManifestSignature(_ManifestPart, frozen=True):
    sha256: str
    signed_at: str | None = None
    signed_by: str | None = None
    algorithm: Literal["ed25519"] | None = None
    value: str | None = None


class ManifestBody(_ManifestPart, frozen=True):
    """The typed view of a manifest."""

    name: str
    version: str
    schema_version: str
    description: str | None = None
    adapters: list[Adapter] = []
    python: PythonNeeds | None = None
    nodes: list[ManifestNode] = []
    resources: list[ResourceFile] | ManifestResources | None = None
    hooks: Hooks | None = None
    signature: ManifestSignature | None = None
    isolation: Literal["package", "attempt"] = "package"
    permissions: list[str] = []
    large_results: LargeResults | None = None
    """What becomes of a result that is too large, if the node type does not say it; None: it fails."""

    def resource_files(self) -> list[ResourceFile]:
        """The files to fetch, whichever form the manifest uses."""
        if isinstance(self.resources, ManifestResources):
            return self.resources.files
        return self.resources or []


class Manifest(Struct, frozen=True, gc=False):
    """A manifest as authored, and the typed view of it. Made by `decode_manifest`."""

    raw: bytes
    body: ManifestBody

    @property
    def name(self) -> str:
        return self.body.name

    @property
    def version(self) -> str:
        return self.body.version

    def document(self) -> dict[str, Any]:
        """The whole document as plain JSON values, unknown fields included; yours to change."""
        document: dict[str, Any] = msgspec.json.decode(self.raw)
        return document

"""The routes of the catalog, of packages and of resources: the action, its endpoint, its description."""

from __future__ import annotations

from typing import Any, Final

from astraflow.api import examples
from astraflow.api.catalog_routes import CatalogEndpoints
from astraflow.api.package_routes import PackageEndpoints
from astraflow.api.resource_routes import ResourceEndpoints
from astraflow.api.routes import PAGED, Doc, Parameter, Reply, Route, ok

__all__ = ["catalog_routes", "package_routes", "resource_routes"]

_TEXT: Final = {"type": "string"}
_PACKAGES: Final = "/api/v1/packages"
_WORKER: Final = Parameter(
    "workerId",
    "the worker that has it, if several have one of this id",
    {**_TEXT, "maxLength": 256},
)
_LINK: Final = Parameter("token", "what makes a link a key", {**_TEXT, "maxLength": 4_096})
_RANGE: Final = Parameter("Range", "one range, `bytes=first-last`", _TEXT, "header")
_IF_RANGE: Final = Parameter(
    "If-Range",
    "the ETag of what was read before: of another file the whole is sent",
    _TEXT,
    "header",
)


def catalog_routes(catalog: CatalogEndpoints) -> list[Route]:
    package = Parameter("package", "only those of this package", {**_TEXT, "maxLength": 256})
    listing = Doc(
        name="listNodeTypes",
        tag="catalog",
        summary="node types that workflows can use, best fit first",
        text="Of the core, of published packages, and of what workers have installed; of each package the version that "
        "a node without one gets.",
        parameters=(
            *PAGED,
            Parameter("q", "words that must occur", {**_TEXT, "maxLength": 256}),
            Parameter("category", "only those of this category", {**_TEXT, "maxLength": 256}),
            package,
        ),
        replies=ok("NodeTypePage", examples.page(examples.NODE_TYPE)),
    )
    show = Doc(
        name="getNodeType",
        tag="catalog",
        summary="one node type",
        parameters=(package,),
        replies=ok("NodeType", examples.NODE_TYPE),
    )
    return [
        Route("GET", "/api/v1/catalog/nodes", catalog.list_nodes, listing),
        Route("GET", "/api/v1/catalog/nodes/{type}", catalog.show, show),
    ]


def package_routes(packages: PackageEndpoints) -> list[Route]:
    return [*_package_reads(packages), *_package_writes(packages)]


def _package_reads(packages: PackageEndpoints) -> list[Route]:
    def doc(name: str, summary: str, replies: dict[int, Reply], **more: Any) -> Doc:
        return Doc(name=name, tag="packages", summary=summary, replies=replies, **more)

    listed = ok("PackagePage", examples.page(examples.PACKAGE_SUMMARY))
    shown = ok("Package", examples.PACKAGE)
    version = ok("PackageVersion", examples.PACKAGE_VERSION)
    archive = doc(
        "getPackageArchive",
        "the archive of a version, whole or in part",
        _file("application/zip"),
        parameters=(_LINK, _RANGE, _IF_RANGE),
    )
    one = f"{_PACKAGES}/{{name}}"
    return [
        Route("GET", _PACKAGES, packages.list_packages,
              doc("listPackages", "published packages by name", listed, parameters=PAGED)),
        Route("GET", one, packages.show,
              doc("getPackage", "one package with its versions", shown)),
        Route("GET", f"{one}/{{version}}", packages.show_version,
              doc("getPackageVersion", "one version with its manifest", version)),
        Route("GET", f"{one}/{{version}}/archive", packages.archive, archive),
    ]  # fmt: skip


def _package_writes(packages: PackageEndpoints) -> list[Route]:
    signature = Parameter(
        "Astra-Signature", "base64 of the signature's JSON", {**_TEXT, "maxLength": 8_192}, "header"
    )
    publish = Doc(
        name="publishPackage",
        tag="packages",
        summary="publish a version of a package",
        text="The body is the `.cwx` file. What is published stays as it is: the same file again is a 200, another one "
        "of the same version a 409.",
        parameters=(signature,),
        body="",
        body_type="application/octet-stream",
        body_example="the bytes of the file",
        replies={
            201: Reply("published", "PackageVersion", examples.PACKAGE_VERSION),
            200: Reply("it was published before", "PackageVersion", examples.PACKAGE_VERSION),
        },
    )
    yank = Doc(
        name="yankPackage",
        tag="packages",
        summary="withdraw a version: nothing new gets it, runs that were accepted before still do",
        body="YankRequest",
        body_required=False,
        body_example={"reason": "it loses files"},
        replies=ok("PackageVersion", {**examples.PACKAGE_VERSION, "active": False}),
    )
    unyank = Doc(
        name="unyankPackage",
        tag="packages",
        summary="take a withdrawal back",
        replies=ok("PackageVersion", examples.PACKAGE_VERSION),
    )
    activate = Doc(
        name="activatePackage",
        tag="packages",
        summary="choose the version that nodes without one get",
        body="ActivateRequest",
        body_example={"version": "1.2.0"},
        replies=ok(
            "ActiveVersion", {"name": "acme.texts", "version": "1.2.0", "previous": "1.1.0"}
        ),
    )
    version = f"{_PACKAGES}/{{name}}/{{version}}"
    return [
        *_rollout_routes(packages),
        Route("POST", _PACKAGES, packages.publish, publish),
        Route("POST", f"{version}/yank", packages.yank, yank),
        Route("POST", f"{version}/unyank", packages.unyank, unyank),
        Route("PUT", f"{_PACKAGES}/{{name}}/active", packages.activate, activate),
    ]


def _rollout_routes(packages: PackageEndpoints) -> list[Route]:
    rollout = f"{_PACKAGES}/{{name}}/rollout"
    start = Doc(
        name="startRollout",
        tag="packages",
        summary="bring a version to all workers, in waves",
        text="Each wave is a share of the workers in percent. The next begins when all of one have the version, and "
        "few enough attempts have failed for `soakSeconds`; after the last the version is the active one.",
        body="RolloutRequest",
        body_example={"version": "1.2.0", "waves": [10, 50, 100], "soakSeconds": 30},
        replies={202: Reply("it has begun", "Rollout", examples.ROLLOUT)},
    )
    listing = Doc(
        name="listRollouts",
        tag="packages",
        summary="rollouts of a package, newest first",
        replies=ok("RolloutPage", examples.page(examples.ROLLOUT)),
    )
    back = Doc(
        name="rollBack",
        tag="packages",
        summary="go back to the version that was active before; a rollout that runs is ended",
        replies=ok(
            "ActiveVersion", {"name": "acme.texts", "version": "1.1.0", "previous": "1.2.0"}
        ),
    )
    return [
        Route("POST", rollout, packages.start_rollout, start),
        Route("GET", rollout, packages.list_rollouts, listing),
        Route("POST", f"{_PACKAGES}/{{name}}/rollback", packages.roll_back, back),
    ]


def resource_routes(resources: ResourceEndpoints) -> list[Route]:
    return [*_resource_routes(resources), *_artifact_routes(resources)]


def _resource_routes(resources: ResourceEndpoints) -> list[Route]:
    def doc(name: str, summary: str, replies: dict[int, Reply], **more: Any) -> Doc:
        return Doc(name=name, tag="resources", summary=summary, replies=replies, **more)

    states = {"enum": ["ready", "evicting", "evicted", "released"], **_TEXT}
    wanted = (
        Parameter("runId", "only those of this run", _TEXT),
        Parameter("workerId", "only those on this worker", _TEXT),
        Parameter("type", "only those of this type", _TEXT),
        Parameter("state", "only those in this state", states),
    )
    listed = ok("ResourcePage", examples.page(examples.RESOURCE))
    shown = ok("Resource", examples.RESOURCE)
    extension = {"body": "Extension", "body_example": {"ttlSeconds": 3_600}}
    path = "/api/v1/resources"
    return [
        Route("GET", path, resources.list_resources,
              doc("listResources", "what workers hold, newest first", listed,
                  parameters=(*PAGED, *wanted))),
        Route("GET", f"{path}/{{id}}", resources.show,
              doc("getResource", "one resource", shown, parameters=(_WORKER,)), is_deep=True),
        Route("PATCH", f"{path}/{{id}}", resources.extend,
              doc("extendResource", "let it live for so long from now", shown,
                  parameters=(_WORKER,), **extension), is_deep=True),
        Route("DELETE", f"{path}/{{id}}", resources.close,
              doc("closeResource", "tell its worker to let go of it",
                  {204: Reply("the worker is told")}, parameters=(_WORKER,)), is_deep=True),
    ]  # fmt: skip


def _artifact_routes(resources: ResourceEndpoints) -> list[Route]:
    def doc(name: str, summary: str, replies: dict[int, Reply], **more: Any) -> Doc:
        return Doc(name=name, tag="artifacts", summary=summary, replies=replies, **more)

    link = {
        "url": "https://astra.example/api/v1/artifacts/01JCQ6Z0M3V8R6T2XK9D4HB7WN/report?token=…",
        "expiresAt": "2026-01-15T11:00:00.000Z",
        "sizeBytes": 1_048_576,
        "sha256": examples.PACKAGE_VERSION["sha256"],
        "mime": "application/pdf",
    }
    reading = (_WORKER, _LINK, _RANGE, _IF_RANGE)
    uploaded = Reply(
        "it is kept",
        "Uploaded",
        {"resourceId": "…/report", "sha256": examples.PACKAGE_VERSION["sha256"]},
    )
    path = "/api/v1/artifacts/{id}"
    says = "What is only on its worker is brought here first, for who has a token."
    return [
        Route("POST", path, resources.share,
              doc("shareArtifact", "a link to the artifact, for an hour", ok("ArtifactLink", link),
                  text=says, parameters=(_WORKER,)), is_deep=True),
        Route("GET", path, resources.download,
              doc("getArtifact", "the artifact, whole or in part", _file("application/octet-stream"),
                  text=says, parameters=reading), is_deep=True),
        Route("HEAD", path, resources.download,
              doc("headArtifact", "its size and its digest", {200: Reply("they, as headers")},
                  parameters=reading), is_deep=True),
        Route("PUT", "/api/v1/uploads/{token}", resources.upload,
              doc("uploadArtifact", "what a worker does that was asked for a resource", {201: uploaded},
                  body="", body_type="application/octet-stream", body_example="the bytes of the file")),
    ]  # fmt: skip


def _file(media_type: str) -> dict[int, Reply]:
    head = {"ETag": "the digest of the file, in quotes", "Accept-Ranges": "bytes"}
    return {
        200: Reply("the file", None, None, media_type, head),
        206: Reply("a part of it", None, None, media_type, {**head, "Content-Range": "which part"}),
        304: Reply("the reader has it already"),
    }

"""Resources of workers, downloads of artifacts, and uploads of workers."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from astraflow.api.access import UNAUTHENTICATED
from astraflow.api.asgi import AsgiApp
from astraflow.api.downloads import RANGE_HEADERS, Download, download_response, file_replies
from astraflow.api.requests import Request, decode_json
from astraflow.api.responses import NO_CONTENT, json_response
from astraflow.api.routes import FILE, Endpoints, Place, Reply, route
from astraflow.core import errors
from astraflow.core.contract.base import NoQuery
from astraflow.core.contract.resources import (
    ArtifactLink,
    DownloadArtifact,
    Extension,
    ListResources,
    OfWorker,
    Resource,
    ResourcePage,
    Uploaded,
)
from astraflow.core.errors import NotFound, Refused
from astraflow.core.ids import RunId
from astraflow.core.security.policy import OPERATE, READ, READ_OR_SIGNED, SIGNED
from astraflow.core.timestamps import iso
from astraflow.scheduler.copies import Copies, Copy
from astraflow.store.rows import ResourceRow

RESOURCES: Final = "/api/v1/resources"
ARTIFACTS: Final = "/api/v1/artifacts"
_RESOURCE: Final = f"{RESOURCES}/{{id}}"
_ARTIFACT: Final = f"{ARTIFACTS}/{{id}}"
_COPIED: Final = (
    "An artifact that is only on its worker is copied first, if the request has a token."
)
_extension: Final = msgspec.json.Decoder(Extension)


class ResourceEndpoints(Endpoints):
    """The endpoints under `/api/v1/resources`, `/api/v1/artifacts` and `/api/v1/uploads`."""

    @property
    def _copies(self) -> Copies:
        return self._scheduler.blobs.copies

    # -- resources --------------------------------------------------------------------------

    @route("GET", RESOURCES, READ, "listResources", "list what workers keep, newest first",
           tag="resources", query=ListResources, replies=ResourcePage)  # fmt: skip
    async def list_resources(self, request: Request[ListResources]) -> AsgiApp:
        query, tenant = request.query, request.tenant
        rows = await self._scheduler.resources.search(
            tenant,
            limit=query.count + 1,
            before=self._cursors.read("resources", tenant, query.cursor, tuple[int, str, str]),
            run_id=None if query.run_id is None else RunId(query.run_id),
            worker_id=query.worker_id,
            type=query.type,
            state=query.state,
        )
        page = rows[: query.count]
        last = page[-1] if len(rows) > len(page) else None
        after = last and (last.created_at, last.worker_id, last.resource_id)
        cursor = self._cursors.make("resources", tenant, after)
        return json_response(ResourcePage(items=[_view(row) for row in page], next_cursor=cursor))

    @route("GET", _RESOURCE, READ, "getResource", "show a resource", tag="resources",
           query=OfWorker, replies=Resource, is_deep=True, place=Place.RESOURCE)  # fmt: skip
    async def show(self, request: Request[OfWorker]) -> AsgiApp:
        return json_response(_view(await self._find(request, RESOURCES)))

    @route("PATCH", _RESOURCE, OPERATE, "extendResource", "keep a resource for so long from now",
           tag="resources", query=OfWorker, body=Extension, replies=Resource,
           is_deep=True, place=Place.RESOURCE)  # fmt: skip
    async def extend(self, request: Request[OfWorker]) -> AsgiApp:
        found = await self._find(request, RESOURCES)
        ttl_s = decode_json(await request.json_body(), _extension).ttl_seconds
        row = await self._scheduler.resources.extend(
            request.tenant, found.resource_id, found.worker_id, ttl_s, request.subject
        )
        return json_response(_view(row))

    @route("DELETE", _RESOURCE, OPERATE, "closeResource", "tell the worker to remove a resource",
           tag="resources", query=OfWorker, replies={204: Reply("The worker is told.")},
           is_deep=True, place=Place.RESOURCE)  # fmt: skip
    async def close(self, request: Request[OfWorker]) -> AsgiApp:
        resource_id = request.rest_of_path(f"{RESOURCES}/")
        await self._scheduler.resources.close(
            request.tenant, resource_id, request.query.worker_id, request.subject
        )
        return NO_CONTENT

    async def _find(self, request: Request[Any], prefix: str) -> ResourceRow:
        resource_id = request.rest_of_path(f"{prefix}/")
        return await self._scheduler.resources.get(
            request.tenant, resource_id, request.query.worker_id
        )

    # -- artifacts --------------------------------------------------------------------------

    @route("POST", _ARTIFACT, READ, "shareArtifact", "make a signed URL for an hour",
           tag="artifacts", text=_COPIED, query=OfWorker, replies=ArtifactLink,
           is_deep=True, place=Place.RESOURCE)  # fmt: skip
    async def share(self, request: Request[OfWorker]) -> AsgiApp:
        row = await self._exported(request)
        copy = _copy(row)
        url, expires_at = self._copies.download_url((row.tenant, row.worker_id, row.resource_id))
        view = ArtifactLink(
            url=url,
            expires_at=iso(expires_at),
            size_bytes=await self._copies.size(copy),
            sha256=copy.sha256,
            mime=_mime(row),
        )
        return json_response(view)

    @route("GET", _ARTIFACT, READ_OR_SIGNED, "getArtifact", "download an artifact, or a part of it",
           tag="artifacts", text=_COPIED, query=DownloadArtifact, headers=RANGE_HEADERS,
           replies=file_replies(FILE), is_deep=True, place=Place.RESOURCE)  # fmt: skip
    @route("HEAD", _ARTIFACT, READ_OR_SIGNED, "headArtifact",
           "the size and the digest of an artifact", tag="artifacts", query=DownloadArtifact,
           headers=RANGE_HEADERS, replies={200: Reply("Both, as headers.")},
           is_deep=True, place=Place.RESOURCE)  # fmt: skip
    async def download(self, request: Request[DownloadArtifact]) -> AsgiApp:
        is_allowed = request.is_authenticated
        row = await (self._exported(request) if is_allowed else self._open_signed(request))
        copy, copies = _copy(row), self._copies
        file = Download(
            size=await copies.size(copy),
            sha256=copy.sha256,
            name=_name(row),
            media_type=_mime(row),
            is_inline=request.query.inline,
            read=lambda start, end: copies.read(copy, start, end),
        )
        return await download_response(request, file)

    async def _exported(self, request: Request[Any]) -> ResourceRow:
        row = await self._find(request, ARTIFACTS)
        if row.blob is not None:
            return row
        return await self._scheduler.resources.export(
            request.tenant, row.resource_id, row.worker_id, request.subject
        )

    async def _open_signed(self, request: Request[DownloadArtifact]) -> ResourceRow:
        token = request.query.token
        if not token:
            raise Refused(errors.AUTH_INVALID_TOKEN, UNAUTHENTICATED)
        signed = self._copies.open_download(token, request.rest_of_path(f"{ARTIFACTS}/"))
        return await self._scheduler.resources.get(
            signed.tenant, signed.resource_id, signed.worker_id
        )

    # -- uploads ----------------------------------------------------------------------------

    @route("PUT", "/api/v1/uploads/{token}", SIGNED, "uploadArtifact",
           "the upload of a worker that was asked for a resource", tag="artifacts", body=FILE,
           replies={201: Reply("It is stored.", Uploaded)}, place=Place.UPLOAD)  # fmt: skip
    async def upload(self, request: Request[NoQuery]) -> AsgiApp:
        try:
            signed = self._copies.open_upload(request.params["token"])
        except Refused as error:
            raise Refused(errors.AUTH_INVALID_TOKEN, UNAUTHENTICATED) from error
        copy = await self._copies.receive(signed, request.stream_body(signed.max_bytes))
        return json_response(Uploaded(resource_id=signed.resource_id, sha256=copy.sha256), 201)


def _copy(row: ResourceRow) -> Copy:
    if row.blob is None:
        raise NotFound(
            errors.RESOURCE_MISSING, f"there is no copy of the resource: {row.resource_id[:80]}"
        )
    return Copy.parse(row.blob)


def _metadata(row: ResourceRow) -> dict[str, Any]:
    found = msgspec.json.decode(row.metadata)
    return found if isinstance(found, dict) else {}


def _mime(row: ResourceRow) -> str:
    given = _metadata(row).get("mime")
    return given if isinstance(given, str) and given else "application/octet-stream"


def _name(row: ResourceRow) -> str:
    metadata = _metadata(row)
    for field in ("filename", "fileName", "name"):
        given = metadata.get(field)
        if isinstance(given, str) and given:
            return given.rpartition("/")[2] or given
    return row.resource_id.rpartition("/")[2] or "artifact"


def _view(row: ResourceRow) -> Resource:
    return Resource(
        resource_id=row.resource_id,
        worker_id=row.worker_id,
        type=row.type,
        state=row.state,
        scope=row.scope,
        run_id=row.run_id,
        node_id=row.node_id,
        package=row.package,
        size_bytes=row.size_bytes,
        created_at=iso(row.created_at),
        expires_at=None if row.expires_at is None else iso(row.expires_at),
        is_artifact=row.is_artifact,
        has_copy=row.blob is not None,
        metadata=msgspec.Raw(row.metadata),
    )

"""Resources of workers, the artifacts that people download, and the uploads of workers."""

from __future__ import annotations

from typing import Annotated, Any, Final

import msgspec
from litestar.types import ASGIApp

from astraflow.api.access import NOT_LET_IN
from astraflow.api.answers import NO_CONTENT, answer_json
from astraflow.api.downloads import Download, answer_download
from astraflow.api.requests import Call, decode_json
from astraflow.api.routes import Parts
from astraflow.core import errors
from astraflow.core.errors import NotFound, Refused
from astraflow.core.timestamps import iso
from astraflow.scheduler.copies import Copies, Copy
from astraflow.store.rows import ResourceRow

__all__ = ["ResourceEndpoints"]

MAX_LINK_CHARS: Final = 4_096
MAX_TTL_S: Final = 366 * 86_400
RESOURCES: Final = "/api/v1/resources/"
ARTIFACTS: Final = "/api/v1/artifacts/"


class _Extension(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    ttl_seconds: Annotated[int, msgspec.Meta(ge=1, le=MAX_TTL_S)]


_extension: Final = msgspec.json.Decoder(_Extension)


class ResourceEndpoints:
    """The endpoints under `/api/v1/resources`, `/api/v1/artifacts` and `/api/v1/uploads`."""

    def __init__(self, parts: Parts) -> None:
        self._scheduler = parts.scheduler
        self._resources = parts.scheduler.resources
        self._cursors = parts.cursors

    @property
    def _copies(self) -> Copies:
        return self._scheduler.blobs.copies

    # -- resources --------------------------------------------------------------------------

    async def list_resources(self, call: Call) -> ASGIApp:
        limit = call.limit()
        cursor = call.text("cursor", 2_048)
        before = cursor and self._cursors.read(
            "resources", call.tenant, cursor, tuple[int, str, str]
        )
        rows = await self._resources.search(
            call.tenant,
            limit=limit + 1,
            before=before or None,
            run_id=call.text("runId"),
            worker_id=call.text("workerId"),
            type=call.text("type"),
            state=call.text("state"),
        )
        page = rows[:limit]
        after = None
        if len(rows) > limit:
            last = page[-1]
            after = (last.created_at, last.worker_id, last.resource_id)
        return answer_json(
            {
                "items": [_view(row) for row in page],
                "nextCursor": after and self._cursors.make("resources", call.tenant, after),
            }
        )

    async def show(self, call: Call) -> ASGIApp:
        return answer_json(_view(await self._find(call, RESOURCES)))

    async def extend(self, call: Call) -> ASGIApp:
        found = await self._find(call, RESOURCES)
        ttl_s = decode_json(await call.json_body(), _extension).ttl_seconds
        row = await self._resources.extend(
            call.tenant,
            found.resource_id,
            found.worker_id,
            ttl_s,
            call.bearer.subject,
        )
        return answer_json(_view(row))

    async def close(self, call: Call) -> ASGIApp:
        await self._resources.close(
            call.tenant, call.rest_of_path(RESOURCES), call.text("workerId"), call.bearer.subject
        )
        return NO_CONTENT

    async def _find(self, call: Call, prefix: str) -> ResourceRow:
        return await self._resources.get(
            call.tenant, call.rest_of_path(prefix), call.text("workerId")
        )

    # -- artifacts --------------------------------------------------------------------------

    async def share(self, call: Call) -> ASGIApp:
        """Have a copy made if there is none, and hand out a link to it."""
        row = await self._exported(call)
        copy = _copy(row)
        url, expires_at = self._copies.download_url((row.tenant, row.worker_id, row.resource_id))
        size = await self._copies.size(copy)
        view = {
            "url": url,
            "expiresAt": iso(expires_at),
            "sizeBytes": size,
            "sha256": copy.sha256,
            "mime": _mime(row),
        }
        return answer_json(view)

    async def download(self, call: Call) -> ASGIApp:
        row = await (self._exported(call) if call.is_let_in else self._linked(call))
        copy, copies = _copy(row), self._copies
        file = Download(
            size=await copies.size(copy),
            sha256=copy.sha256,
            name=_name(row),
            media_type=_mime(row),
            read=lambda start, end: copies.read(copy, start, end),
        )
        return await answer_download(call, file)

    async def _exported(self, call: Call) -> ResourceRow:
        row = await self._find(call, ARTIFACTS)
        if row.blob is not None:
            return row
        return await self._resources.export(
            call.tenant, row.resource_id, row.worker_id, call.bearer.subject
        )

    async def _linked(self, call: Call) -> ResourceRow:
        token = call.text("token", MAX_LINK_CHARS)
        if token is None:
            raise Refused(errors.AUTH_INVALID_TOKEN, NOT_LET_IN)
        link = self._copies.open_download(token, call.rest_of_path(ARTIFACTS))
        return await self._resources.get(link.tenant, link.resource_id, link.worker_id)

    # -- uploads ----------------------------------------------------------------------------

    async def upload(self, call: Call) -> ASGIApp:
        try:
            link = self._copies.open_upload(call.params["token"])
        except Refused as error:
            raise Refused(errors.AUTH_INVALID_TOKEN, NOT_LET_IN) from error
        copy = await self._copies.receive(link, call.stream_body(link.max_bytes))
        return answer_json({"resourceId": link.resource_id, "sha256": copy.sha256}, 201)


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


def _view(row: ResourceRow) -> dict[str, Any]:
    return {
        "resourceId": row.resource_id,
        "workerId": row.worker_id,
        "type": row.type,
        "state": row.state,
        "scope": row.scope,
        "runId": row.run_id,
        "nodeId": row.node_id,
        "package": row.package,
        "sizeBytes": row.size_bytes,
        "createdAt": iso(row.created_at),
        "expiresAt": None if row.expires_at is None else iso(row.expires_at),
        "isArtifact": row.is_artifact,
        "hasCopy": row.blob is not None,
        "metadata": msgspec.Raw(row.metadata),
    }

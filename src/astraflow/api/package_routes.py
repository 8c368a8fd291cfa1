"""Packages: publish and withdraw them, choose the active version, download their archives."""

from __future__ import annotations

import base64
import binascii
from typing import Any, Final

import msgspec

from astraflow.api.access import UNAUTHENTICATED
from astraflow.api.asgi import AsgiApp
from astraflow.api.downloads import RANGE_HEADERS, Download, download_response, file_replies
from astraflow.api.requests import Request, decode_json
from astraflow.api.responses import json_response
from astraflow.api.routes import FILE, Endpoints, Header, Reply, route
from astraflow.core import errors
from astraflow.core.contract.base import NoQuery
from astraflow.core.contract.packages import (
    ActivateRequest,
    ActiveVersion,
    FetchArchive,
    ListPackages,
    Package,
    PackagePage,
    PackageSummary,
    PackageVersion,
    Rollout,
    RolloutPage,
    RolloutRequest,
    YankRequest,
)
from astraflow.core.errors import Refused
from astraflow.core.fleet.rollouts import RolloutRecord as StoredRollout
from astraflow.core.security.policy import OPERATE, READ, READ_OR_SIGNED
from astraflow.core.timestamps import iso
from astraflow.scheduler.repository import Repository
from astraflow.store.rows import PackageRow

MAX_SIGNATURE_CHARS: Final = 8_192
PACKAGES: Final = "/api/v1/packages"
_PACKAGE: Final = f"{PACKAGES}/{{name}}"
_VERSION: Final = f"{_PACKAGE}/{{version}}"
_ROLLOUT: Final = f"{_PACKAGE}/rollout"
_BODY_TYPES: Final = frozenset({"application/zip", FILE})
_SIGNATURE: Final = Header(
    "Astra-Signature",
    "The detached signature: its JSON in base64.",
    {"type": "string", "maxLength": MAX_SIGNATURE_CHARS},
)
_reason: Final = msgspec.json.Decoder(YankRequest)
_version: Final = msgspec.json.Decoder(ActivateRequest)
_rollout: Final = msgspec.json.Decoder(RolloutRequest)


class PackageEndpoints(Endpoints):
    """The endpoints under `/api/v1/packages`."""

    @property
    def _repository(self) -> Repository:
        return self._scheduler.packages.repository

    @route("GET", PACKAGES, READ, "listPackages", "list published packages by name",
           tag="packages", query=ListPackages, replies=PackagePage)  # fmt: skip
    async def list_packages(self, request: Request[ListPackages]) -> AsgiApp:
        query, tenant = request.query, request.tenant
        after = self._cursors.read("packages", tenant, query.cursor, str) or ""
        rest = [name for name in self._repository.names(tenant) if name > after]
        page = rest[: query.count]
        cursor = self._cursors.make("packages", tenant, page[-1] if len(rest) > len(page) else None)
        items = [PackageSummary(**self._head(tenant, name)) for name in page]
        return json_response(PackagePage(items=items, next_cursor=cursor))

    @route("GET", _PACKAGE, READ, "getPackage", "show a package with its versions",
           tag="packages", replies=Package)  # fmt: skip
    async def show(self, request: Request[NoQuery]) -> AsgiApp:
        tenant, name = request.tenant, request.params["name"]
        head, held = self._head(tenant, name), self._held(tenant, name)
        head["versions"] = [
            self._view(tenant, row, workers=held.get(row.version, []))
            for row in self._repository.versions(tenant, name)
        ]
        return json_response(Package(**head))

    @route("GET", _VERSION, READ, "getPackageVersion", "show a version with its manifest",
           tag="packages", replies=PackageVersion)  # fmt: skip
    async def show_version(self, request: Request[NoQuery]) -> AsgiApp:
        row = self._find(request)
        view = self._view(
            request.tenant,
            row,
            workers=self._held(request.tenant, row.name).get(row.version, []),
            manifest=msgspec.Raw(row.manifest),
            signature=None if row.signature is None else msgspec.Raw(row.signature),
        )
        return json_response(view)

    @route("GET", f"{_VERSION}/archive", READ_OR_SIGNED, "getPackageArchive",
           "download the archive of a version, or a part of it", tag="packages",
           query=FetchArchive, headers=RANGE_HEADERS,
           replies=file_replies("application/zip"))  # fmt: skip
    async def archive(self, request: Request[FetchArchive]) -> AsgiApp:
        row = self._find(request) if request.is_authenticated else self._open_signed(request)
        repository = self._repository
        file = Download(
            size=row.size_bytes,
            sha256=row.sha256,
            name=f"{row.name}-{row.version}.cwx",
            media_type="application/zip",
            read=lambda start, end: repository.read(row, start, end),
        )
        return await download_response(request, file)

    @route(
        "POST",
        PACKAGES,
        OPERATE,
        "publishPackage",
        "publish a version of a package",
        tag="packages",
        text="The body is the `.cwx` file. A published version never changes: the same file again is a 200, another "
        "file of the same version is a 409.",
        headers=(_SIGNATURE,),
        body=FILE,
        replies={
            201: Reply("It is published.", PackageVersion),
            200: Reply("It was published before.", PackageVersion),
        },
    )
    async def publish(self, request: Request[NoQuery]) -> AsgiApp:
        kind = (request.header(b"content-type") or "").partition(";")[0].strip().lower()
        if kind not in _BODY_TYPES:
            raise Refused(
                errors.REQUEST_MEDIA_TYPE,
                f"send the .cwx file itself, as application/zip: {kind[:80]!r}",
            )
        row, is_new = await self._repository.publish(
            request.tenant,
            request.stream_body(self._services.settings.max_package_bytes),
            _signature(request),
            request.subject,
        )
        return json_response(self._view(request.tenant, row), 201 if is_new else 200)

    @route("POST", f"{_VERSION}/yank", OPERATE, "yankPackage",
           "withdraw a version: no new run gets it, runs that were accepted before still do",
           tag="packages", body=YankRequest, is_body_required=False,
           replies=PackageVersion)  # fmt: skip
    async def yank(self, request: Request[NoQuery]) -> AsgiApp:
        self._find(request)  # not found comes before all errors of the body
        body = await request.optional_body()
        reason = decode_json(body, _reason).reason if body is not None else ""
        return await self._yank(request, is_yanked=True, reason=reason)

    @route("POST", f"{_VERSION}/unyank", OPERATE, "unyankPackage", "take a withdrawal back",
           tag="packages", replies=PackageVersion)  # fmt: skip
    async def unyank(self, request: Request[NoQuery]) -> AsgiApp:
        return await self._yank(request, is_yanked=False)

    async def _yank(
        self, request: Request[NoQuery], *, is_yanked: bool, reason: str = ""
    ) -> AsgiApp:
        row = await self._repository.yank(
            request.tenant,
            request.params["name"],
            request.params["version"],
            is_yanked=is_yanked,
            reason=reason,
            by=request.subject,
        )
        return json_response(self._view(request.tenant, row))

    @route("PUT", f"{_PACKAGE}/active", OPERATE, "activatePackage",
           "choose the version that nodes without a version get", tag="packages",
           body=ActivateRequest, replies=ActiveVersion)  # fmt: skip
    async def activate(self, request: Request[NoQuery]) -> AsgiApp:
        name = request.params["name"]
        self._repository.versions(request.tenant, name)
        version = decode_json(await request.json_body(), _version).version
        active = await self._scheduler.packages.activate(
            request.tenant, name, version, request.subject
        )
        return json_response(
            ActiveVersion(name=name, version=active.version, previous=active.previous)
        )

    @route(
        "POST",
        _ROLLOUT,
        OPERATE,
        "startRollout",
        "bring a version to all workers, in waves",
        tag="packages",
        text="Each wave is a share of the workers in percent. The next one begins when all workers of a wave have the "
        "version, and few enough attempts have failed for `soakSeconds`; after the last the version is active.",
        body=RolloutRequest,
        replies={202: Reply("It has begun.", Rollout)},
    )
    async def start_rollout(self, request: Request[NoQuery]) -> AsgiApp:
        name = request.params["name"]
        self._repository.versions(request.tenant, name)
        wanted = decode_json(await request.json_body(), _rollout)
        begun = await self._scheduler.packages.roll_out(
            request.tenant, name, wanted, request.subject
        )
        return json_response(_rollout_view(begun), 202)

    @route("GET", _ROLLOUT, READ, "listRollouts", "list the rollouts of a package, newest first",
           tag="packages", replies=RolloutPage)  # fmt: skip
    async def list_rollouts(self, request: Request[NoQuery]) -> AsgiApp:
        name = request.params["name"]
        self._repository.versions(request.tenant, name)
        found = await self._scheduler.packages.rollouts(request.tenant, name)
        items = [_rollout_view(one) for one in found]
        return json_response(RolloutPage(items=items, next_cursor=None))

    @route("POST", f"{_PACKAGE}/rollback", OPERATE, "rollBack",
           "activate the version that was active before; a rollout that runs is ended",
           tag="packages", replies=ActiveVersion)  # fmt: skip
    async def roll_back(self, request: Request[NoQuery]) -> AsgiApp:
        tenant, name = request.tenant, request.params["name"]
        self._repository.versions(tenant, name)
        before = self._repository.active(tenant, name)
        version = await self._scheduler.packages.roll_back(tenant, name, request.subject)
        return json_response(ActiveVersion(name=name, version=version, previous=before))

    def _open_signed(self, request: Request[FetchArchive]) -> PackageRow:
        token = request.query.token
        if not token:
            raise Refused(errors.AUTH_INVALID_TOKEN, UNAUTHENTICATED)
        params = request.params
        return self._repository.open_signed_url(token, params["name"], params["version"])

    def _find(self, request: Request[Any]) -> PackageRow:
        params = request.params
        return self._repository.find(request.tenant, params["name"], params["version"])

    def _held(self, tenant: str, name: str) -> dict[str, list[str]]:
        """Which workers have which version of a package."""
        held: dict[str, list[str]] = {}
        for worker in self._scheduler.workers.of_tenant(tenant):
            for package in worker.packages:
                if package.name == name and package.status == "installed":
                    held.setdefault(package.version, []).append(worker.worker_id)
        return held

    def _head(self, tenant: str, name: str) -> dict[str, Any]:
        """The fields of a `PackageSummary`."""
        repository = self._repository
        rows = repository.versions(tenant, name)
        active = repository.active(tenant, name)
        pointer = repository.pointer(tenant, name)
        shown = next((row for row in rows if row.version == active), rows[0])
        manifest = msgspec.json.decode(shown.manifest)
        return {
            "name": name,
            "active": active,
            "pinned": pointer is not None and pointer.version == active,
            "versions": [row.version for row in rows],
            "nodes": len(manifest.get("nodes", [])),
            "description": str(manifest.get("description") or ""),
            "published_at": iso(max(row.published_at for row in rows)),
        }

    def _view(self, tenant: str, row: PackageRow, **more: Any) -> PackageVersion:
        return PackageVersion(
            name=row.name,
            version=row.version,
            active=self._repository.active(tenant, row.name) == row.version,
            sha256=row.sha256,
            size_bytes=row.size_bytes,
            published_at=iso(row.published_at),
            published_by=row.published_by,
            signed_by=row.signed_by or None,
            yanked_at=None if row.yanked_at is None else iso(row.yanked_at),
            yanked_reason=row.yanked_reason,
            nodes=len(msgspec.json.decode(row.manifest).get("nodes", [])),
            **more,
        )


def _rollout_view(rollout: StoredRollout) -> Rollout:
    return Rollout(
        rollout_id=rollout.rollout_id,
        name=rollout.name,
        version=rollout.version,
        previous=rollout.previous,
        state=rollout.state,
        waves=list(rollout.waves),
        wave=rollout.wave,
        soak_seconds=rollout.soak_seconds,
        max_failed_percent=rollout.max_failed_percent,
        started_at=iso(rollout.started_at),
        updated_at=iso(rollout.updated_at),
        started_by=rollout.started_by,
        error=rollout.error,
    )


def _signature(request: Request[NoQuery]) -> str | None:
    """The signature that came with an upload: JSON in base64, because a header holds no line ends."""
    given = request.header(b"astra-signature")
    if given is None:
        return None
    try:
        if len(given) > MAX_SIGNATURE_CHARS:
            raise ValueError("too long")
        return base64.b64decode(given, validate=True).decode()
    except (ValueError, binascii.Error) as error:
        raise Refused(
            errors.PKG_INVALID, "the header must be base64 of the signature: Astra-Signature"
        ) from error

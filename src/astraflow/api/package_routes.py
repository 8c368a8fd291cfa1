"""Packages: publishing them, withdrawing them, choosing the version that counts, and their archives."""

from __future__ import annotations

import base64
import binascii
from typing import Annotated, Any, Final

import msgspec
from litestar.types import ASGIApp

from astraflow.api.access import NOT_LET_IN
from astraflow.api.answers import answer_json
from astraflow.api.downloads import Download, answer_download
from astraflow.api.requests import Call, decode_json
from astraflow.api.routes import Parts
from astraflow.core import errors
from astraflow.core.errors import Refused
from astraflow.core.fleet.rollouts import Rollout
from astraflow.core.timestamps import iso
from astraflow.scheduler.packages import RolloutRequest
from astraflow.scheduler.repository import Repository
from astraflow.store.rows import PackageRow

__all__ = ["PackageEndpoints"]

MAX_SIGNATURE_CHARS: Final = 8_192
MAX_LINK_CHARS: Final = 4_096
_BODY_TYPES: Final = frozenset({"application/zip", "application/octet-stream"})


class _Reason(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    reason: Annotated[str, msgspec.Meta(max_length=1_024)] = ""


class _Version(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    version: Annotated[str, msgspec.Meta(min_length=1, max_length=64)]


_reason: Final = msgspec.json.Decoder(_Reason)
_version: Final = msgspec.json.Decoder(_Version)
_rollout: Final = msgspec.json.Decoder(RolloutRequest)


class PackageEndpoints:
    """The endpoints under `/api/v1/packages`."""

    def __init__(self, parts: Parts) -> None:
        self._scheduler = parts.scheduler
        self._cursors = parts.cursors
        self._max_bytes = parts.settings.max_package_bytes

    @property
    def _repository(self) -> Repository:
        return self._scheduler.packages.repository

    async def publish(self, call: Call) -> ASGIApp:
        kind = (call.header(b"content-type") or "").partition(";")[0].strip().lower()
        if kind not in _BODY_TYPES:
            raise Refused(
                errors.REQUEST_MEDIA_TYPE,
                f"send the .cwx file itself, as application/zip: {kind[:80]!r}",
            )
        row, is_new = await self._repository.publish(
            call.tenant,
            call.stream_body(self._max_bytes),
            _signature(call),
            call.bearer.subject,
        )
        return answer_json(self._view(call.tenant, row), 201 if is_new else 200)

    async def list_packages(self, call: Call) -> ASGIApp:
        limit = call.limit()
        cursor = call.text("cursor", 512)
        after = self._cursors.read("packages", call.tenant, cursor, str) if cursor else ""
        rest = [name for name in self._repository.names(call.tenant) if name > after]
        page = rest[:limit]
        last = page[-1] if len(rest) > limit else None
        return answer_json(
            {
                "items": [self._summary(call.tenant, name) for name in page],
                "nextCursor": last and self._cursors.make("packages", call.tenant, last),
            }
        )

    async def show(self, call: Call) -> ASGIApp:
        name: str = call.params["name"]
        repository, tenant = self._repository, call.tenant
        held = self._held(tenant, name)
        versions = [
            {**self._view(tenant, row), "workers": held.get(row.version, [])}
            for row in repository.versions(tenant, name)
        ]
        return answer_json({**self._summary(tenant, name), "versions": versions})

    async def show_version(self, call: Call) -> ASGIApp:
        row = self._find(call)
        signature = None if row.signature is None else msgspec.Raw(row.signature)
        held = self._held(call.tenant, row.name).get(row.version, [])
        more = {"workers": held, "manifest": msgspec.Raw(row.manifest), "signature": signature}
        return answer_json({**self._view(call.tenant, row), **more})

    async def yank(self, call: Call) -> ASGIApp:
        self._find(call)  # what is not there is told before anything about the body
        body = await call.optional_body()
        reason = decode_json(body, _reason).reason if body is not None else ""
        return await self._yank(call, is_yanked=True, reason=reason)

    async def unyank(self, call: Call) -> ASGIApp:
        return await self._yank(call, is_yanked=False)

    async def _yank(self, call: Call, *, is_yanked: bool, reason: str = "") -> ASGIApp:
        row = await self._repository.yank(
            call.tenant,
            call.params["name"],
            call.params["version"],
            is_yanked=is_yanked,
            reason=reason,
            by=call.bearer.subject,
        )
        return answer_json(self._view(call.tenant, row))

    async def activate(self, call: Call) -> ASGIApp:
        name: str = call.params["name"]
        self._repository.versions(call.tenant, name)
        version = decode_json(await call.json_body(), _version).version
        active = await self._scheduler.packages.activate(
            call.tenant, name, version, call.bearer.subject
        )
        return answer_json({"name": name, "version": active.version, "previous": active.previous})

    async def start_rollout(self, call: Call) -> ASGIApp:
        name: str = call.params["name"]
        self._repository.versions(call.tenant, name)
        request = decode_json(await call.json_body(), _rollout)
        rollout = await self._scheduler.packages.roll_out(
            call.tenant, name, request, call.bearer.subject
        )
        return answer_json(_rollout_view(rollout), 202)

    async def list_rollouts(self, call: Call) -> ASGIApp:
        name: str = call.params["name"]
        self._repository.versions(call.tenant, name)
        found = await self._scheduler.packages.rollouts(call.tenant, name)
        return answer_json({"items": [_rollout_view(one) for one in found], "nextCursor": None})

    async def roll_back(self, call: Call) -> ASGIApp:
        name: str = call.params["name"]
        self._repository.versions(call.tenant, name)
        before = self._repository.active(call.tenant, name)
        version = await self._scheduler.packages.roll_back(call.tenant, name, call.bearer.subject)
        return answer_json({"name": name, "version": version, "previous": before})

    async def archive(self, call: Call) -> ASGIApp:
        row = self._find(call) if call.is_let_in else self._open_link(call)
        repository = self._repository

        file = Download(
            size=row.size_bytes,
            sha256=row.sha256,
            name=f"{row.name}-{row.version}.cwx",
            media_type="application/zip",
            read=lambda start, end: repository.read(row, start, end),
        )
        return await answer_download(call, file)

    def _open_link(self, call: Call) -> PackageRow:
        token = call.text("token", MAX_LINK_CHARS)
        if token is None:
            raise Refused(errors.AUTH_INVALID_TOKEN, NOT_LET_IN)
        return self._repository.open_link(token, call.params["name"], call.params["version"])

    def _find(self, call: Call) -> PackageRow:
        return self._repository.find(call.tenant, call.params["name"], call.params["version"])

    def _held(self, tenant: str, name: str) -> dict[str, list[str]]:
        """Which workers have which version of a package."""
        held: dict[str, list[str]] = {}
        for worker in self._scheduler.workers.of_tenant(tenant):
            for package in worker.packages:
                if package.get("name") == name and package.get("status") == "installed":
                    held.setdefault(package.get("version", ""), []).append(worker.worker_id)
        return held

    def _summary(self, tenant: str, name: str) -> dict[str, Any]:
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
            "publishedAt": iso(max(row.published_at for row in rows)),
        }

    def _view(self, tenant: str, row: PackageRow) -> dict[str, Any]:
        return {
            "name": row.name,
            "version": row.version,
            "active": self._repository.active(tenant, row.name) == row.version,
            "sha256": row.sha256,
            "sizeBytes": row.size_bytes,
            "publishedAt": iso(row.published_at),
            "publishedBy": row.published_by,
            "signedBy": row.signed_by or None,
            "yankedAt": None if row.yanked_at is None else iso(row.yanked_at),
            "yankedReason": row.yanked_reason,
            "nodes": len(msgspec.json.decode(row.manifest).get("nodes", [])),
        }


def _rollout_view(rollout: Rollout) -> dict[str, Any]:
    return {
        "rolloutId": rollout.rollout_id,
        "name": rollout.name,
        "version": rollout.version,
        "previous": rollout.previous,
        "state": rollout.state,
        "waves": list(rollout.waves),
        "wave": rollout.wave,
        "soakSeconds": rollout.soak_seconds,
        "maxFailedPercent": rollout.max_failed_percent,
        "startedAt": iso(rollout.started_at),
        "updatedAt": iso(rollout.updated_at),
        "startedBy": rollout.started_by,
        "error": rollout.error,
    }


def _signature(call: Call) -> str | None:
    """The signature that came with an upload: JSON in base64, because a header holds no line ends."""
    given = call.header(b"astra-signature")
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

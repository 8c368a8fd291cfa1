"""The rows of what workers hold: resources, wishes about packages, affinity keys. Both ways."""

from __future__ import annotations

from typing import Any

import msgspec

from astraflow.core.dispatch.resources import Holding
from astraflow.core.dispatch.wishes import Wish
from astraflow.core.engine.batch import AffinityChanged, PackageTold, ResourceChanged, WishChanged
from astraflow.core.engine.view import View
from astraflow.core.timestamps import iso
from astraflow.scheduler.copies import Copies
from astraflow.store.rows import AffinityRow, Changes, InstallIntentRow, ResourceRow

__all__ = [
    "CopiesForEngine",
    "affinity_row",
    "holding_of",
    "resource_row",
    "tell_package",
    "wish_of",
    "wish_row",
    "write_affinity",
    "write_resource",
    "write_wish",
]


def resource_row(holding: Holding) -> ResourceRow:
    return ResourceRow(
        tenant=holding.tenant,
        worker_id=holding.worker_id,
        resource_id=holding.resource_id,
        type=holding.type,
        state=holding.state,
        scope=holding.scope,
        run_id=holding.run_id,
        node_id=holding.node_id,
        package=holding.package,
        size_bytes=holding.size_bytes,
        created_at=holding.created_at,
        expires_at=holding.expires_at,
        is_artifact=holding.is_artifact,
        metadata=holding.metadata,
        blob=holding.blob,
    )


def holding_of(row: ResourceRow) -> Holding:
    holding = Holding(row.tenant, row.worker_id, row.resource_id, row.created_at)
    for name in (
        "type",
        "state",
        "scope",
        "run_id",
        "node_id",
        "package",
        "size_bytes",
        "expires_at",
        "is_artifact",
        "metadata",
        "blob",
    ):
        setattr(holding, name, getattr(row, name))
    return holding


def wish_row(wish: Wish) -> InstallIntentRow:
    error = wish.error and {"code": wish.error[0], "message": wish.error[1]}
    return InstallIntentRow(
        tenant=wish.tenant,
        worker_id=wish.worker_id,
        name=wish.name,
        version=wish.version,
        intent=wish.wish,
        state=wish.state,
        why=wish.why,
        tries=wish.tries,
        error=msgspec.json.encode(error) if error else None,
        updated_at=wish.updated_at,
    )


def wish_of(row: InstallIntentRow) -> Wish:
    key = (row.tenant, row.worker_id, row.name, row.version)
    wish = Wish(key, row.intent, row.why, row.updated_at)
    wish.state = row.state
    wish.tries = row.tries
    if row.error is not None:
        error: dict[str, str] = msgspec.json.decode(row.error)
        wish.error = (error["code"], error["message"])
    return wish


def affinity_row(view: View, tenant: str, key: str) -> AffinityRow | None:
    """The store keeps wall-clock times: the monotonic ones of this process mean nothing to the next."""
    record = view.affinity.lookup(tenant, key)
    if record is None:
        return None
    return AffinityRow(
        tenant,
        key,
        record.worker_id,
        view.at - int((view.now - record.acquired_at) * 1000),
        view.at + int((record.expires_at - view.now) * 1000),
    )


class CopiesForEngine:
    """Links to copies, as the engine asks for them."""

    def __init__(self, copies: Copies) -> None:
        self._copies = copies

    def upload(self, holding: Holding) -> str:
        return self._copies.upload_url(holding.key)

    def download(self, holding: Holding) -> str:
        return self._copies.download_url(resource_row(holding))[0]

    def failed(self, holding: Holding, why: str) -> None:
        self._copies.give_up(holding.key, why)


Told = tuple[str, dict[str, Any]]
"""The type and the body of an event for the tenant's stream."""


def write_resource(changes: Changes, notice: ResourceChanged, view: View) -> list[Told]:
    key = (notice.tenant, notice.worker, notice.resource_id)
    gone = view.gone.pop(key, None)
    holding = view.resources.find(notice.tenant, notice.resource_id, notice.worker) or gone
    if holding is None:
        return []  # it came and went in one batch, and was written down as gone
    changes.resources.append(resource_row(holding))
    body = {
        "resourceId": holding.resource_id,
        "workerId": holding.worker_id,
        "type": holding.type,
        "state": holding.state,
        "runId": holding.run_id,
        "nodeId": holding.node_id,
        "sizeBytes": holding.size_bytes,
        "expiresAt": iso(holding.expires_at) if holding.expires_at is not None else None,
    }
    told: list[Told] = [(f"resource.{holding.state}", body)]
    if holding is gone and holding.is_artifact:
        artifact = {name: body[name] for name in ("resourceId", "workerId", "type", "sizeBytes")}
        told.append(
            (
                "artifact.removed",
                {"runId": body["runId"], "nodeId": body["nodeId"], "artifact": artifact},
            )
        )
    return told


def write_affinity(changes: Changes, notice: AffinityChanged, view: View) -> None:
    row = affinity_row(view, notice.tenant, notice.key)
    if row is None:
        changes.affinities_gone.append((notice.tenant, notice.key))
    else:
        changes.affinities.append(row)


def write_wish(changes: Changes, notice: WishChanged, view: View) -> None:
    wish = view.wishes.find(notice.key)
    if wish is None:
        changes.intents_gone.append(notice.key)
    else:
        changes.intents.append(wish_row(wish))


def tell_package(notice: PackageTold) -> Told:
    event = notice.event
    body: dict[str, Any] = {
        "workerId": notice.worker,
        "name": event.name,
        "version": event.version,
        "status": event.status,
        "details": event.details,
    }
    if event.progress is not None:
        body["progress"] = event.progress
    return f"package.{event.status}", body

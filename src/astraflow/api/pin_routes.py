"""The pinned results of a workflow."""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec import UNSET

from astraflow.api.asgi import AsgiApp
from astraflow.api.requests import Request, check_values, decode_json
from astraflow.api.responses import NO_CONTENT, json_response
from astraflow.api.routes import Endpoints, Reply, route
from astraflow.api.workflow_routes import WORKFLOWS
from astraflow.core import errors
from astraflow.core.contract.base import NoQuery
from astraflow.core.contract.pins import (
    MAX_PINNED_BYTES,
    PinnedResult,
    PinnedResultPage,
    PinRequest,
)
from astraflow.core.errors import Refused
from astraflow.core.security.policy import EDIT, READ
from astraflow.core.timestamps import iso
from astraflow.store.rows import PinnedResultRow

_PINS: Final = f"{WORKFLOWS}/{{id}}/pins"
_PIN: Final = f"{_PINS}/{{nodeId}}"
_BODY_BYTES: Final = MAX_PINNED_BYTES + 64 * 1024
_request: Final = msgspec.json.Decoder(PinRequest)


class PinEndpoints(Endpoints):
    """The endpoints of pinned results, under `/api/v1/workflows`."""

    @route("GET", _PINS, READ, "listPins", "list the pinned results of a workflow",
           tag="workflows", replies=PinnedResultPage)  # fmt: skip
    async def list_pins(self, request: Request[NoQuery]) -> AsgiApp:
        rows = await self._scheduler.pins.search(request.tenant, request.params["id"])
        return json_response(
            PinnedResultPage(items=[_view(row, []) for row in rows], next_cursor=None)
        )

    @route(
        "PUT",
        _PIN,
        EDIT,
        "pinResult",
        "pin the result of a node",
        tag="workflows",
        text="A run that says `usePinned` has this result in place of running the node. Others, those of triggers "
        "among them, do not. The workflow may be a draft.",
        body=PinRequest,
        replies={200: Reply("It is pinned.", PinnedResult)},
    )
    async def pin(self, request: Request[NoQuery]) -> AsgiApp:
        wanted = decode_json(await request.json_body(_BODY_BYTES), _request)
        if (wanted.result is UNSET) == (wanted.run_id is UNSET):
            raise Refused(errors.REQUEST_INVALID, "send either result or runId", pointer="/result")
        result = None if wanted.result is UNSET else bytes(wanted.result)
        if result is not None:
            if not result.lstrip().startswith(b"{"):
                raise Refused(errors.REQUEST_INVALID, "must be an object", pointer="/result")
            check_values(result, "/result")
        row, warnings = await self._scheduler.pins.put(
            request.tenant,
            request.params["id"],
            request.params["nodeId"],
            by=request.subject,
            result=result,
            from_run=None if wanted.run_id is UNSET else wanted.run_id,
        )
        return json_response(_view(row, warnings))

    @route("DELETE", _PIN, EDIT, "unpinResult", "remove the pinned result of a node",
           tag="workflows", replies={204: Reply("It is gone.")})  # fmt: skip
    async def unpin(self, request: Request[NoQuery]) -> AsgiApp:
        await self._scheduler.pins.remove(
            request.tenant, request.params["id"], request.params["nodeId"]
        )
        return NO_CONTENT


def _view(row: PinnedResultRow, warnings: list[str]) -> PinnedResult:
    return PinnedResult(
        workflow_id=row.workflow_id,
        node_id=row.node_id,
        result=msgspec.Raw(row.result),
        from_run=row.from_run,
        pinned_at=iso(row.updated_at),
        pinned_by=row.updated_by,
        warnings=warnings,
    )

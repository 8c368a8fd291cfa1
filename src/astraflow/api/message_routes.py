"""Signals and approvals: what people and other systems tell a run."""

from __future__ import annotations

from typing import Final

import msgspec

from astraflow.api.asgi import AsgiApp
from astraflow.api.requests import Request, decode_json
from astraflow.api.responses import NO_CONTENT, json_response
from astraflow.api.routes import Endpoints, Reply, route
from astraflow.api.run_routes import RUNS, idempotency_key
from astraflow.core import errors
from astraflow.core.contract.base import NoQuery
from astraflow.core.contract.messages import (
    MAX_PAYLOAD_BYTES,
    ApprovalDecision,
    ListApprovals,
    OpenApprovalPage,
    SignalAccepted,
    SignalAddressPage,
    SignalRequest,
)
from astraflow.core.ids import RunId
from astraflow.core.security.policy import READ, START
from astraflow.core.workflow.limits import MAX_KEY_CHARS
from astraflow.core.workflow.parameters import find_unfit
from astraflow.core.workflow.settings_rules import is_signal_name

_signal: Final = msgspec.json.Decoder(SignalRequest)
_decision: Final = msgspec.json.Decoder(ApprovalDecision)


class MessageEndpoints(Endpoints):
    """What is told to runs."""

    @route(
        "POST",
        f"{RUNS}/{{runId}}/signals/{{name}}",
        START,
        "signalRun",
        "send a signal to a run",
        tag="runs",
        text="The first node that waits for a signal of this name takes it. One that comes before its node waits is "
        "kept. With an `Idempotency-Key` it is taken once, however often it is sent.",
        body=SignalRequest,
        is_body_required=False,
        replies={202: Reply("It is stored.", SignalAccepted)},
    )
    async def signal(self, request: Request[NoQuery]) -> AsgiApp:
        run_id, name = RunId(request.params["runId"]), request.params["name"]
        if not is_signal_name(name):
            message = f"the name of a signal has 1 to {MAX_KEY_CHARS} characters that can be shown"
            raise errors.Refused(errors.REQUEST_INVALID, message)
        body = await request.optional_body()
        payload = bytes((decode_json(body, _signal) if body else SignalRequest()).payload)
        check_payload(payload, "/payload")
        await self._scheduler.messages.signal(
            request.tenant, run_id, name, payload, idempotency_key(request), request.subject
        )
        return json_response(SignalAccepted(run_id=run_id, name=name), 202)

    @route("GET", f"{RUNS}/{{runId}}/signals", START, "listSignals",
           "list the addresses of the signals of a run", tag="runs",
           text="Of nodes that wait with `webhook`. A run that has ended has none.",
           replies=SignalAddressPage)  # fmt: skip
    async def addresses(self, request: Request[NoQuery]) -> AsgiApp:
        run_id = RunId(request.params["runId"])
        found = await self._scheduler.messages.addresses(request.tenant, run_id)
        return json_response(SignalAddressPage(items=found, next_cursor=None))

    @route(
        "POST",
        f"{RUNS}/{{runId}}/nodes/{{nodeId}}/approval",
        START,
        "decideApproval",
        "approve or reject",
        tag="runs",
        text="Decides at a node that waits for a person. The first decision counts; a second one is a 409.",
        body=ApprovalDecision,
        replies={204: Reply("It is decided.")},
    )
    async def decide(self, request: Request[NoQuery]) -> AsgiApp:
        decision = decode_json(await request.json_body(), _decision)
        values = bytes(decision.values)
        if not values.lstrip().startswith(b"{"):
            raise errors.Refused(errors.REQUEST_INVALID, "values is an object", pointer="/values")
        check_payload(values, "/values")
        await self._scheduler.messages.decide(
            request.tenant,
            RunId(request.params["runId"]),
            request.params["nodeId"],
            decision,
            role=request.bearer.role.value,
            by=request.subject,
        )
        return NO_CONTENT

    @route("GET", "/api/v1/approvals", READ, "listApprovals", "list open approvals", tag="runs",
           query=ListApprovals, replies=OpenApprovalPage)  # fmt: skip
    async def approvals(self, request: Request[ListApprovals]) -> AsgiApp:
        query, tenant = request.query, request.tenant
        after = self._cursors.read("approvals", tenant, query.cursor, tuple[str, int])
        page, last = await self._scheduler.messages.open_approvals(tenant, after, query.count)
        cursor = self._cursors.make("approvals", tenant, last)
        return json_response(OpenApprovalPage(items=page, next_cursor=cursor))


def check_payload(raw: bytes, pointer: str) -> None:
    """What is passed on to nodes must fit a frame."""
    if len(raw) > MAX_PAYLOAD_BYTES:
        message = f"at most {MAX_PAYLOAD_BYTES} bytes, not {len(raw)}"
        raise errors.Refused(errors.REQUEST_TOO_LARGE, message, pointer=pointer)
    unfit = find_unfit(msgspec.json.decode(raw))
    if unfit is not None:
        raise errors.Refused(errors.REQUEST_INVALID, unfit[1], pointer=pointer)

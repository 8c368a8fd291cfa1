"""Addresses that systems outside call without a token of ours: those of webhooks, and of signals that runs wait for.

Rule 1: nothing is read of a request before its address is found and its rate is counted, so that a flood to one address
        costs little and slows nobody else.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http import HTTPStatus
from typing import Any, ClassVar, Final
from urllib.parse import parse_qsl

import msgspec

from astraflow.api.asgi import AsgiApp
from astraflow.api.message_routes import check_payload
from astraflow.api.requests import Request
from astraflow.api.responses import json_response, problem_response
from astraflow.api.routes import FILE, Endpoints, Reply, Services, route
from astraflow.api.trigger_routes import ACCEPTED, HOOKS, accepted
from astraflow.core import errors
from astraflow.core.contract.base import Query
from astraflow.core.contract.messages import MAX_PAYLOAD_BYTES, SignalAccepted
from astraflow.core.errors import AstraflowError, Refused, Unavailable
from astraflow.core.ids import RunId
from astraflow.core.runs.signal_addresses import PATH
from astraflow.core.security.policy import PUBLIC
from astraflow.core.security.rates import KeyedRateLimit
from astraflow.scheduler.messages import AddressedSignal
from astraflow.scheduler.webhooks import Delivery, delivery_name, methods_of, read_body

MAX_HOOK_BYTES: Final = 1024 * 1024
"""What a webhook takes; its inputs are kept with the run."""
BURST_S: Final = 2.0
"""So many seconds of the rate may come at once."""
_HOOK: Final = f"{HOOKS}/{{hookId}}"
_TEXT: Final = (
    "The address is unguessable; a `path` of the trigger follows it. If the trigger names a secret, the body must be "
    "signed with it: HMAC-SHA256 as `X-Hub-Signature-256: sha256=<hex>` or `X-Signature: <hex>`. A delivery that is "
    "sent again with the same `X-GitHub-Delivery` or `Idempotency-Key` returns the same run. Requests are limited for "
    "each address (429 with `Retry-After`). The methods are those that the trigger names, or POST alone."
)


class HookQuery(Query, frozen=True, kw_only=True):
    """Whatever the sender has put into the address."""

    IGNORES_OTHERS: ClassVar[bool] = True


class HookEndpoints(Endpoints):
    """What systems outside call."""

    def __init__(self, services: Services) -> None:
        super().__init__(services)
        rate = float(services.settings.hook_requests_per_second)
        self._limit = KeyedRateLimit(rate, max(1.0, rate * BURST_S))
        self._deliveries = services.metrics.hook_deliveries

    @route("GET", _HOOK, PUBLIC, "deliverHookByGet", "take a delivery without a body",
           tag="triggers", text=_TEXT, query=HookQuery, replies={202: ACCEPTED},
           is_deep=True)  # fmt: skip
    @route("POST", _HOOK, PUBLIC, "deliverHook", "take a delivery for a webhook, and start its run",
           tag="triggers", text=_TEXT, query=HookQuery, body=FILE, is_body_required=False,
           replies={202: ACCEPTED}, is_deep=True)  # fmt: skip
    @route("PUT", _HOOK, PUBLIC, "deliverHookByPut", "take a delivery that is put",
           tag="triggers", text=_TEXT, query=HookQuery, body=FILE, is_body_required=False,
           replies={202: ACCEPTED}, is_deep=True)  # fmt: skip
    @route("PATCH", _HOOK, PUBLIC, "deliverHookByPatch", "take a delivery that is a patch",
           tag="triggers", text=_TEXT, query=HookQuery, body=FILE, is_body_required=False,
           replies={202: ACCEPTED}, is_deep=True)  # fmt: skip
    @route("DELETE", _HOOK, PUBLIC, "deliverHookByDelete", "take a delivery that is a delete",
           tag="triggers", text=_TEXT, query=HookQuery, replies={202: ACCEPTED},
           is_deep=True)  # fmt: skip
    async def deliver(self, request: Request[HookQuery]) -> AsgiApp:
        webhooks = self._scheduler.triggers.webhooks
        record = webhooks.find(request.rest_of_path(f"{HOOKS}/").strip("/"))
        self._count(record.tenant, record.hook_id)
        methods = methods_of(record)
        if request.method not in methods:
            self._deliveries.add(record.tenant, "refused")
            refused = Refused(errors.REQUEST_METHOD, f"the webhook takes: {', '.join(methods)}")
            return problem_response(refused, [(b"allow", ", ".join(methods).encode())])
        with self._counted(record.tenant):
            return accepted(await webhooks.deliver(record, await _delivery(request)))

    @route(
        "POST",
        f"{PATH}/{{runId}}/{{name}}/{{token}}",
        PUBLIC,
        "deliverSignal",
        "send a signal to its address",
        tag="runs",
        text="The address of a signal that a run waits for with `webhook`. It is known from the start of the run, and "
        "gone with the wait. The body is the payload: JSON as JSON, anything else as text. If the node names a secret, "
        "the body must be signed with it, as for webhooks. Sent again with the same `Idempotency-Key` it counts once. "
        "Requests are limited for each run (429 with `Retry-After`).",
        query=HookQuery,
        body=FILE,
        is_body_required=False,
        replies={202: Reply("It is stored.", SignalAccepted)},
    )
    async def signal(self, request: Request[HookQuery]) -> AsgiApp:
        run_id, name = RunId(request.params["runId"]), request.params["name"]
        messages = self._scheduler.messages
        run = messages.open_run(run_id, name, request.params["token"])
        self._count(run.tenant, run_id)
        with self._counted(run.tenant):
            await messages.deliver(run, name, await _addressed(request))
        return json_response(SignalAccepted(run_id=run_id, name=name), 202)

    @contextmanager
    def _counted(self, tenant: str) -> Iterator[None]:
        try:
            yield
        except AstraflowError as error:
            is_ours = error.code.http >= HTTPStatus.INTERNAL_SERVER_ERROR
            self._deliveries.add(tenant, "failed" if is_ours else "refused")
            raise
        self._deliveries.add(tenant, "accepted")

    def _count(self, tenant: str, address: str) -> None:
        """Raises: Unavailable: too many requests came to this address."""
        wait_s = self._limit.take(address, self._services.clock.now())
        if wait_s > 0:
            self._deliveries.add(tenant, "limited")
            raise Unavailable(
                errors.QUOTA_RATE,
                "more requests came to this address than it takes",
                detail={"retryAfterSeconds": math.ceil(wait_s)},
            )


async def _delivery(request: Request[Any]) -> Delivery:
    body = await _body(request, MAX_HOOK_BYTES)
    query = parse_qsl(request.scope["query_string"].decode("latin-1"), keep_blank_values=True)
    return Delivery(body, _headers(request), dict(query), request.method)


async def _addressed(request: Request[Any]) -> AddressedSignal:
    body = await _body(request, MAX_PAYLOAD_BYTES)
    headers = _headers(request)
    payload = msgspec.json.encode(read_body(body, headers))
    check_payload(payload, "")
    return AddressedSignal(body, payload, headers, delivery_name(headers))


async def _body(request: Request[Any], limit: int) -> bytes:
    pieces, size = [], 0
    async for piece in request.stream_body(limit):
        size += len(piece)
        if size > limit:
            message = f"the body is larger than allowed, in bytes: {limit}"
            raise Refused(errors.REQUEST_TOO_LARGE, message)
        pieces.append(piece)
    return b"".join(pieces)


def _headers(request: Request[Any]) -> Mapping[str, str]:
    """Raises: Refused: a header that the check or a path may read is there twice."""
    found: dict[str, str] = {}
    for key, value in request.scope["headers"]:
        name = key.decode("latin-1")
        if name in found:
            message = f"the request has this header twice: {name[:80]}"
            raise Refused(errors.REQUEST_INVALID, message)
        found[name] = value.decode("latin-1")
    return found

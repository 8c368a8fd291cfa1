"""Addresses that systems outside call without a token of ours: those of webhooks.

Rule 1: nothing is read of a request before its address is found and its rate is counted, so that a flood to one address
        costs little and slows nobody else.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, ClassVar, Final
from urllib.parse import parse_qsl

from astraflow.api.asgi import AsgiApp
from astraflow.api.requests import Request
from astraflow.api.responses import problem_response
from astraflow.api.routes import FILE, Endpoints, Services, route
from astraflow.api.trigger_routes import ACCEPTED, HOOKS, accepted
from astraflow.core import errors
from astraflow.core.contract.base import Query
from astraflow.core.errors import AstraflowError, Refused, Unavailable
from astraflow.core.security.policy import PUBLIC
from astraflow.core.security.rates import KeyedRateLimit
from astraflow.core.triggers.record import TriggerRecord
from astraflow.scheduler.webhooks import Delivery, methods_of

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
        self._count(record)
        methods = methods_of(record)
        if request.method not in methods:
            self._deliveries.add(record.tenant, "refused")
            refused = Refused(errors.REQUEST_METHOD, f"the webhook takes: {', '.join(methods)}")
            return problem_response(refused, [(b"allow", ", ".join(methods).encode())])
        try:
            run_id = await webhooks.deliver(record, await _delivery(request))
        except AstraflowError as error:
            is_ours = error.code.http >= HTTPStatus.INTERNAL_SERVER_ERROR
            self._deliveries.add(record.tenant, "failed" if is_ours else "refused")
            raise
        self._deliveries.add(record.tenant, "accepted")
        return accepted(run_id)

    def _count(self, record: TriggerRecord) -> None:
        """Raises: Unavailable: too many requests came to this address."""
        wait_s = self._limit.take(record.hook_id, self._services.clock.now())
        if wait_s > 0:
            self._deliveries.add(record.tenant, "limited")
            raise Unavailable(
                errors.QUOTA_RATE,
                "more requests came to this address than it takes",
                detail={"retryAfterSeconds": math.ceil(wait_s)},
            )


async def _delivery(request: Request[Any]) -> Delivery:
    pieces, size = [], 0
    async for piece in request.stream_body(MAX_HOOK_BYTES):
        size += len(piece)
        if size > MAX_HOOK_BYTES:
            message = f"the body is larger than allowed, in bytes: {MAX_HOOK_BYTES}"
            raise Refused(errors.REQUEST_TOO_LARGE, message)
        pieces.append(piece)
    query = parse_qsl(request.scope["query_string"].decode("latin-1"), keep_blank_values=True)
    return Delivery(b"".join(pieces), _headers(request), dict(query), request.method)


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

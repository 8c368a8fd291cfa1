"""Webhooks: a request from outside, checked, becomes a run of the workflow that its address belongs to."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from astraflow.clock import Clock
from astraflow.core import errors
from astraflow.core.ids import IdSource, RunId
from astraflow.core.triggers.decisions import take
from astraflow.core.triggers.record import TriggerRecord
from astraflow.core.triggers.signatures import is_signed
from astraflow.core.workflow.definition import WebhookTrigger
from astraflow.scheduler.secret_vault import SecretVault
from astraflow.scheduler.trigger_table import TriggerTable
from astraflow.scheduler.triggers import Triggers

_log: Final = logging.getLogger(__name__)

DELIVERY_HEADERS: Final = ("x-github-delivery", "idempotency-key")
"""What names a delivery: sent again, it starts no second run."""
HIDDEN_HEADERS: Final = frozenset({"authorization", "cookie", "proxy-authorization"})
"""Never an input of a run."""
_DELIVERY: Final = re.compile(r"[!-~]{1,255}", re.ASCII)


class Delivery(msgspec.Struct, frozen=True):
    """A request to a webhook. The names of headers are in lower case."""

    body: bytes
    headers: Mapping[str, str]
    query: Mapping[str, str]
    method: str = "POST"


class Webhooks:
    """Use from the scheduler's loop."""

    def __init__(
        self,
        table: TriggerTable,
        triggers: Triggers,
        vault: SecretVault,
        clock: Clock,
        ids: IdSource,
    ) -> None:
        self._table = table
        self._triggers = triggers
        self._vault = vault
        self._clock = clock
        self._ids = ids

    def find(self, address: str) -> TriggerRecord:
        """The trigger at an address: its id, and its path if it has one. Raises: NotFound."""
        record = self._table.by_hook(address.partition("/")[0])
        if address != address_of(record):
            raise errors.NotFound(errors.TRIGGER_NOT_FOUND, "there is no webhook at this address")
        return record

    async def deliver(self, record: TriggerRecord, delivery: Delivery) -> RunId:
        """Start the run of a delivery, or find the one that it has started before.

        Raises:
            NotFound: the trigger is gone.
            Refused: a bad signature or body, a suspended tenant; or what the run is refused with.
            Conflict: the trigger is disabled.
            Unavailable: not now.
        """
        self._check(record, delivery)
        what = delivery_name(delivery.headers) or self._ids.new()
        event = _event_of(delivery)
        return await self._triggers.fire(
            record.key,
            lambda known: take(known, "webhook", what, event, at=self._clock.wall_ms()),
        )

    def _check(self, record: TriggerRecord, delivery: Delivery) -> None:
        spec = record.spec
        assert isinstance(spec, WebhookTrigger), "only a webhook has an address"
        if spec.secret_ref is not None and not self._is_signed(record, spec.secret_ref, delivery):
            raise errors.Refused(errors.TRIGGER_SIGNATURE, errors.TRIGGER_SIGNATURE.says)
        if self._triggers.is_suspended(record.tenant):
            raise errors.Refused(errors.TENANT_SUSPENDED, errors.TENANT_SUSPENDED.says)
        if record.state != "enabled":
            raise errors.Conflict(errors.TRIGGER_DISABLED, errors.TRIGGER_DISABLED.says)

    def _is_signed(self, record: TriggerRecord, name: str, delivery: Delivery) -> bool:
        try:
            secret = self._vault.reveal_key(record.tenant, name)
        except errors.AstraflowError as error:
            # Who asks learns nothing of the secrets of the tenant.
            _log.warning(
                "a webhook cannot be checked: %s", error.message, extra={"code": error.code.code}
            )
            return False
        return is_signed(secret, delivery.body, delivery.headers)


def delivery_name(headers: Mapping[str, str]) -> str | None:
    """What names a request, if anything does: sent again under this name it counts once. Raises: Refused."""
    for header in DELIVERY_HEADERS:
        name = headers.get(header)
        if name is not None:
            if not _DELIVERY.fullmatch(name):
                message = f"{header} must be 1 to 255 visible ASCII characters"
                raise errors.Refused(errors.REQUEST_INVALID, message)
            return name
    return None


def address_of(record: TriggerRecord) -> str:
    """What follows the common part of the addresses of webhooks; empty if it is none."""
    path = record.spec.path if isinstance(record.spec, WebhookTrigger) else None
    return record.hook_id if path is None else f"{record.hook_id}/{path}"


def methods_of(record: TriggerRecord) -> tuple[str, ...]:
    """What a webhook takes."""
    assert isinstance(record.spec, WebhookTrigger), "only a webhook has an address"
    return tuple(record.spec.methods or ("POST",))


def read_body(body: bytes, headers: Mapping[str, str]) -> Any:
    """JSON as JSON, anything else as text, nothing as null. Raises: Refused."""
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    if not body:
        return None
    try:
        return msgspec.json.decode(body) if kind.endswith(("/json", "+json")) else body.decode()
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        message = f"the body cannot be read: {str(error)[:80]}"
        raise errors.Refused(errors.REQUEST_INVALID, message, pointer="") from error


def _event_of(delivery: Delivery) -> dict[str, Any]:
    """What the paths of inputs read."""
    body = read_body(delivery.body, delivery.headers)
    shown = {name: text for name, text in delivery.headers.items() if name not in HIDDEN_HEADERS}
    return {
        "body": body,
        "headers": shown,
        "query": dict(delivery.query),
        "method": delivery.method,
    }

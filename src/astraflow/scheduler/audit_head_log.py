"""Where the audit chains end, in the log: an end that is cut off in the store is still known outside of it."""

from __future__ import annotations

import logging
from typing import Final

from astraflow.core.security.audit_chain import ChainHead
from astraflow.scheduler.audit_chains import AuditChains

HEADS_EVERY_S: Final = 3600.0

_log: Final = logging.getLogger(__name__)


class AuditHeadLog:
    """Logs where the chains end, so that the ends are also known outside of the store."""

    def __init__(self) -> None:
        self._logged: dict[str, ChainHead] = {}
        self._next: float | None = None

    def log(self, chains: AuditChains, now: float) -> None:
        """Once in a while: those that have moved."""
        if self._next is not None and now < self._next:
            return
        self._next = now + HEADS_EVERY_S
        for tenant, head in chains.heads():
            if self._logged.get(tenant) != head:
                self._logged[tenant] = head
                _log.info("audit head: %s", head, extra={"tenant": tenant})

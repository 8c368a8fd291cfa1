"""The first start after a restore.

What workers were given between the backup and the end of the old scheduler is unknown to the restored store, and may
still be running. A worker stops it at its fence, 0.6 of a lease after the last heartbeat that the old scheduler
answered. So the first scheduler serves one lease later: nothing of the former life runs then (ADR 38).
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final

import msgspec

from astraflow.core import errors
from astraflow.store.backup import RESTORED, RestoreNote

if TYPE_CHECKING:
    from astraflow.scheduler.current import Current
    from astraflow.scheduler.serving import Parts
    from astraflow.store.store import Claim

_log: Final = logging.getLogger(__name__)

STEP_S: Final = 1.0
"""How often the claim is renewed meanwhile; a claim lasts several times as long."""
STEPS_IN_CLAIM: Final = 5


async def wait_after_restore(parts: Parts, claim: Claim, current: Current) -> None:
    """Return at once unless the store was restored since this shard was last served.

    Raises:
        StoreError: another scheduler has taken over, or the store does not answer.
    """
    name = f"{RESTORED}{claim.shard}"
    note = await parts.store.find_site(name)
    if not note:
        return
    restored = msgspec.json.decode(note, type=RestoreNote)
    wait_s = parts.engine.lease_ttl_s
    problem = (
        f"restored from a backup: waiting {wait_s:g} s until no worker runs what it was given since"
    )
    current.explain(problem)
    _log.warning(
        "%s", problem, extra={"takenAt": restored.taken_at, "restoredAt": restored.restored_at}
    )
    step_s = STEP_S if claim.ttl_s is None else min(STEP_S, claim.ttl_s / STEPS_IN_CLAIM)
    ends_at = parts.clock.now() + wait_s
    while (left_s := ends_at - parts.clock.now()) > 0:
        await asyncio.sleep(min(step_s, left_s))
        if not await parts.store.renew(claim):
            raise errors.StoreError(errors.STORE_FENCED, "another scheduler has taken over")
    # From here on a restart may serve at once: this store has given nothing away yet that it does not know.
    await parts.store.put_site(claim, name, "")

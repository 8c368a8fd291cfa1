"""Whose work blocks the event loop of a node (`core.cluster.parking`, Rule 1).

The stack of the loop's thread says it: on it is a writer, which is of one shard, or the life cycle of a shard that
restores it. So it costs nothing while nothing is wrong, and says nothing old: what is on the stack is what runs now.
A stack with neither (a large answer of the API, say) is of no shard.
"""

from __future__ import annotations

import asyncio
import logging
from types import FrameType
from typing import TYPE_CHECKING, Final

from astraflow.core import errors
from astraflow.scheduler.lifecycle import Lifecycle
from astraflow.scheduler.writer import Writer
from astraflow.store.store import Claim

if TYPE_CHECKING:
    from astraflow.store.cluster import StoredCluster

_log: Final = logging.getLogger(__name__)

_RESTORE: Final = Lifecycle._restore.__code__
_WRITER_FILE: Final = Writer.run.__code__.co_filename


def claim_at_work(frame: FrameType | None) -> Claim | None:
    """The claim under which the code of a stack works, beginning with the innermost frame; None: it is of no shard."""
    while frame is not None:
        if frame.f_code is _RESTORE:
            found = frame.f_locals["claim"]
            assert isinstance(found, Claim)
            return found
        if frame.f_code.co_filename == _WRITER_FILE:
            writer = frame.f_locals.get("self")
            if isinstance(writer, Writer):
                return writer.claim
        frame = frame.f_back
    return None


def blame_shard(cluster: StoredCluster, frame: FrameType) -> None:
    """Note in the store which shard's work blocks the loop. Not in the thread of that loop."""
    claim = claim_at_work(frame)
    if claim is None:
        return
    try:
        asyncio.run(cluster.note_loss(claim))
    except errors.StoreError as error:
        _log.error("shard %d blocks the event loop; not noted: %s", claim.shard, error.message)
    else:
        _log.error("shard %d blocks the event loop: it is noted against the shard", claim.shard)

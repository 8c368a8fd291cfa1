"""Every frame type of a session, by name; its row stands beside its payload (`control.FRAMES`, `business.FRAMES`)."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from astraflow.core.protocol import business, control

if TYPE_CHECKING:
    from collections.abc import Mapping

    from astraflow.core.protocol.wire import FrameType

FRAME_TYPES: Final[Mapping[str, FrameType]] = MappingProxyType(
    {row.name: row for row in (*control.FRAMES, *business.FRAMES)}
)
ONLY_FOR_WORKER: Final = frozenset(
    row.name for row in FRAME_TYPES.values() if row.receiver == "worker"
)
ONLY_FOR_SCHEDULER: Final = frozenset(
    row.name for row in FRAME_TYPES.values() if row.receiver == "scheduler"
)

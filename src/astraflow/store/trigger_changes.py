"""What one transaction changes of triggers."""

from __future__ import annotations

import msgspec

from astraflow.store.rows import TriggerFireRow, TriggerRow


class TriggerChanges(msgspec.Struct, frozen=True):
    """What one transaction changes of triggers. Of the history of each, the newest `keep` entries stay."""

    triggers: tuple[TriggerRow, ...] = ()
    gone: tuple[tuple[str, str, str], ...] = ()
    """Keys; a key that is put, too, is put after its history is gone."""
    fires: tuple[TriggerFireRow, ...] = ()
    keep: int = 100

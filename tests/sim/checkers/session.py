"""Sessions and windows: I1 (in order, once), I2–I4 (windows), I5 (one live session), I6 (states)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.sim.world import Violation

if TYPE_CHECKING:
    from tests.sim.world import World

__all__ = ["SessionChecker"]


class SessionChecker:
    """Watches what each end of each session is given."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.next_seq: dict[tuple[str, str, str], int] = {}
        self.given: dict[tuple[str, str, str], int] = {}

    def on_delivered(
        self, end: str, reader: str, session_id: str, seq: int, dropped: int = 0
    ) -> None:
        """I1: delivered frames of a direction are exactly 0, 1, 2, … for the life of a session,
        but for the `dropped` ones, which an earlier session has delivered and seen committed."""
        name = (end, reader, session_id)
        expected = self.next_seq.get(name, 0)
        given = self.given.get(name, 0)
        if seq < expected or seq - given > dropped:
            raise Violation("I1", f"{name} was given frame {seq} where {expected} was due")
        self.next_seq[name] = seq + 1
        self.given[name] = given + 1

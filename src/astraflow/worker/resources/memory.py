"""The memory back end: which host keeps which object, and how to close it.

The object never leaves the host that created it. The worker only has the token under which the host keeps it.
"""

from __future__ import annotations

from typing import Protocol


class Holder(Protocol):
    """A host, as far as it keeps objects."""

    @property
    def is_ending(self) -> bool:
        """Whether it takes no more attempts."""

    def keep(self, token: str) -> None:
        """It holds an object from now on, and is not let go for idleness."""

    def close_object(self, token: str) -> None:
        """Ask it to close the object; it says when that is done."""

    def let_go(self, token: str) -> None:
        """It holds the object no longer."""


class MemoryBackend:
    """Who holds what."""

    def __init__(self) -> None:
        self._holders: dict[str, Holder] = {}

    def add(self, token: str, holder: Holder) -> None:
        self._holders[token] = holder
        holder.keep(token)

    def holder_of(self, token: str) -> Holder | None:
        return self._holders.get(token)

    def close(self, token: str) -> bool:
        """Ask for the end of an object. False: nobody holds it, so it has ended."""
        holder = self._holders.get(token)
        if holder is None or holder.is_ending:
            return False
        holder.close_object(token)
        return True

    def forget(self, token: str) -> None:
        holder = self._holders.pop(token, None)
        if holder is not None:
            holder.let_go(token)

    def of(self, holder: Holder) -> list[str]:
        """The tokens of all that a host holds."""
        return [token for token, found in self._holders.items() if found is holder]

"""When to try again: exponential with full jitter.

PROTOCOL §2: "exponential with full jitter, 0.2 s to 30 s, but at most 2 s while attempts are held;
`retry_after_ms` honoured"; an INVALID_TOKEN on a handshake waits at least 30 s. After a session whose link
broke it is at most 5 s: another scheduler takes over within that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from astraflow.core.protocol import limits

if TYPE_CHECKING:
    from random import Random


class ReconnectBackoff:
    """The waits between the tries of one thing. Call `reset` when a try succeeded."""

    __slots__ = ("_base_s", "_cap_s", "_had_session", "_rng", "tries")

    def __init__(
        self,
        rng: Random,
        base_s: float = limits.BACKOFF_BASE_S,
        cap_s: float = limits.BACKOFF_CAP_S,
    ) -> None:
        self._rng = rng
        self._base_s = base_s
        self._cap_s = cap_s
        self._had_session = False
        self.tries = 0

    def reset(self) -> None:
        self._had_session = True
        self.tries = 0

    def next_s(
        self, *, held: bool = False, retry_after_s: float = 0.0, denied: bool = False
    ) -> float:
        """The wait before the next try.

        The spread is over the whole range above the base, so that a thousand workers that lost
        the same scheduler do not return in the same moment.
        """
        cap = self._cap_s
        if held:
            cap = min(cap, limits.BACKOFF_HELD_CAP_S)
        elif self._had_session:
            cap = min(cap, limits.BACKOFF_BROKEN_CAP_S)
        # 2.0**64 times the base is beyond every cap; the exponent must not grow for ever.
        ceiling = min(cap, self._base_s * 2.0 ** min(self.tries + 1, 64))
        self.tries += 1
        wait = self._base_s + self._rng.random() * max(0.0, ceiling - self._base_s)
        if denied:
            self._had_session = False
            wait += limits.AUTH_BACKOFF_MIN_S
        return max(wait, retry_after_s)

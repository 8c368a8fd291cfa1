"""What nodes ask one another is signed with the secret that they share: nobody else may ask it.

The signature is of the method, the path with its query, the time and the body. It is good for `MAX_AGE_S`, so that one
that was overheard opens nothing for long.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from astraflow.core.security.keys import derived_keys

if TYPE_CHECKING:
    from astraflow.clock import Clock

NODE: Final = b"x-astra-node"
"""`seconds;signature`."""
MAX_AGE_S: Final = 300
"""The clocks of two nodes may be so far apart."""
_TIME_CHARS: Final = 15


class NodeSignatures:
    """Signs and verifies. Use a key of its own: what is signed as a hop proves nothing here."""

    def __init__(self, secrets: Sequence[bytes], clock: Clock) -> None:
        self._keys = derived_keys(secrets, b"astraflow nodes")
        self._clock = clock

    def header(self, method: str, target: bytes, body: bytes = b"") -> tuple[bytes, bytes]:
        at = str(self._clock.wall_ms() // 1000).encode()
        return NODE, at + b";" + _mac(self._keys[0], method, target, at, body)

    def is_good(
        self, headers: Iterable[tuple[bytes, bytes]], method: str, target: bytes, body: bytes
    ) -> bool:
        given = [value for name, value in headers if name == NODE]
        if len(given) != 1:
            return False
        at, _, mac = given[0].partition(b";")
        if not at.isdigit() or len(at) > _TIME_CHARS:
            return False
        if abs(self._clock.wall_ms() // 1000 - int(at)) > MAX_AGE_S:
            return False
        good = [_mac(key, method, target, at, body) for key in self._keys]
        return any([hmac.compare_digest(mac, one) for one in good])


def _mac(key: bytes, method: str, target: bytes, at: bytes, body: bytes) -> bytes:
    said = b"\n".join((method.encode(), target, at, hashlib.sha256(body).hexdigest().encode()))
    return hmac.digest(key, said, "sha256").hex().encode()

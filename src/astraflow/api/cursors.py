"""Cursors: where the next page begins, in a form that only we can make.

A cursor names a place in a list of one tenant. It is signed together with the tenant and the list, so that a forged
one, one of another tenant and one of another list get the same refusal, and what is inside stays ours to change.
"""

from __future__ import annotations

import base64
import binascii
import hmac
from collections.abc import Sequence
from typing import Final, TypeVar

import msgspec

from astraflow.core import errors
from astraflow.core.contract.base import MAX_CURSOR_CHARS
from astraflow.core.security.keys import derived_keys

_MAC_BYTES: Final = 16

Place = TypeVar("Place")


class Cursors:
    """Makes cursors with a key that is derived from the scheduler's secret, and reads those of earlier secrets, too."""

    __slots__ = ("_keys",)

    def __init__(self, secrets: Sequence[bytes]) -> None:
        self._keys = derived_keys(secrets, b"astraflow cursors")

    def make(self, of: str, tenant: str, place: object) -> str | None:
        """The cursor that names a place; None for None: there is no next page."""
        if place is None:
            return None
        body = msgspec.json.encode(place)
        mac = _mac(self._keys[0], of, tenant, body)
        return base64.urlsafe_b64encode(mac + body).rstrip(b"=").decode()

    def read(self, of: str, tenant: str, text: str, kind: type[Place]) -> Place | None:
        """The place that a cursor names; None for an empty one: the list begins.

        Raises:
            Refused: it was not made for this list of this tenant.
        """
        if not text:
            return None
        try:
            if len(text) > MAX_CURSOR_CHARS:
                raise ValueError("too long")
            raw = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
            mac, body = raw[:_MAC_BYTES], raw[_MAC_BYTES:]
            wanted = [_mac(key, of, tenant, body) for key in self._keys]
            if not any(hmac.compare_digest(mac, one) for one in wanted):
                raise ValueError("not ours")
            return msgspec.json.decode(body, type=kind)
        except (ValueError, binascii.Error) as error:
            raise errors.Refused(
                errors.REQUEST_INVALID,
                "the cursor is not one of this list; begin without one",
                detail={"parameter": "cursor"},
            ) from error


def _mac(key: bytes, of: str, tenant: str, body: bytes) -> bytes:
    signed = b"\0".join((of.encode(), tenant.encode("utf-8", "replace"), body))
    return hmac.digest(key, signed, "sha256")[:_MAC_BYTES]

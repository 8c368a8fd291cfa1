"""The mask of an attempt's secrets, which is the SDK's own, so that serverless workers mask alike."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Raw

from astraflow.worker.hosts.builtin import sdk_module

if TYPE_CHECKING:
    from astraflow_sdk.secret_mask import SecretMask
else:
    SecretMask = sdk_module("secret_mask").SecretMask

__all__ = ["NO_MASK", "SecretMask", "masked_json"]

NO_MASK: Final = SecretMask(())

_decode: Final = msgspec.json.Decoder().decode
_encode: Final = msgspec.json.Encoder().encode


def masked_json(mask: SecretMask, raw: Raw) -> Raw:
    """A value of JSON. What cannot be read is refused by whoever reads it next."""
    if not mask:
        return raw
    try:
        value = _decode(raw)
    except (msgspec.DecodeError, RecursionError):
        return raw
    masked = mask.value(value)
    return raw if masked == value else Raw(_encode(masked))

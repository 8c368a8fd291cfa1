"""Masking: the values of an attempt's secrets are replaced by `***` in everything that leaves a worker.

1. Values of less than `SECRET_CHARS` characters are not masked: they are in every other word.
2. A value is found as it is, and as base64 (alone or inside of a longer text), percent-encoded and escaped for JSON
   (also twice) or for Python.
3. A value that is cut in two over pieces of one channel is found, too: the end of a piece that may be the beginning of
   a value waits for the next piece, or for the end of the attempt.
4. Values of JSON are masked one by one, so that what was JSON stays JSON.

Workers with a session load this file by its path, serverless ones import it. It needs the standard library alone.

A handler that wants to give a secret away can: it may turn it round before it prints it. This is against mistakes.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable
from typing import Any, Final
from urllib.parse import quote, quote_plus

SECRET_CHARS: Final = 4
"""A shorter secret is in every other word; masking it would hide the text and not the secret."""
MASK: Final = "***"
_CORE_CHARS: Final = 4
"""Of base64 inside of more base64: what is left of a value without the letters that its neighbours have a part in."""


class SecretMask:
    """The secrets of one attempt."""

    __slots__ = ("_longest", "_needles", "_pattern", "_raw_pattern", "_waiting")

    def __init__(self, values: Iterable[str]) -> None:
        needles: set[str] = set()
        for value in values:
            if len(value) >= SECRET_CHARS:
                needles.update(_spellings(value))
        # The longest first: a part of a spelling must not be taken for the whole.
        self._needles = sorted(needles, key=lambda one: (-len(one), one))
        self._longest = max(map(len, self._needles), default=0)
        either = "|".join(map(re.escape, self._needles))
        self._pattern = re.compile(either)
        self._raw_pattern = re.compile(either.encode())
        self._waiting: dict[str, str] = {}

    def __bool__(self) -> bool:
        return bool(self._needles)

    def text(self, text: str) -> str:
        """A whole text."""
        return self._pattern.sub(MASK, text) if self._needles else text

    def piece(self, channel: str, text: str) -> str:
        """The next piece of a channel, without what may be the beginning of a value."""
        if not self._needles:
            return text
        text = self.text(self._waiting.pop(channel, "") + text)
        kept = self._may_begin(text)
        if kept:
            self._waiting[channel] = text[len(text) - kept :]
            text = text[: len(text) - kept]
        return text

    def take_waiting(self) -> list[tuple[str, str]]:
        """What waited for a next piece, by channel: none comes any more."""
        waiting, self._waiting = self._waiting, {}
        return list(waiting.items())

    def data(self, data_base64: str) -> str:
        """Bytes, as base64. What is none is not ours to judge."""
        if not self._needles:
            return data_base64
        try:
            raw = base64.b64decode(data_base64, validate=True)
        except ValueError:
            return self.text(data_base64)
        masked = self._raw_pattern.sub(MASK.encode(), raw)
        return data_base64 if masked == raw else base64.b64encode(masked).decode()

    def value(self, value: Any) -> Any:
        """A value of JSON."""
        if not self._needles:
            return value
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {self.text(key): self.value(one) for key, one in value.items()}
        if isinstance(value, list):
            return [self.value(one) for one in value]
        if isinstance(value, int | float) and not isinstance(value, bool):
            return MASK if self._pattern.search(repr(value)) else value
        return value

    def _may_begin(self, text: str) -> int:
        """How many characters at the end of a text may be the beginning of a value."""
        for size in range(min(len(text), self._longest - 1), 0, -1):
            end = text[-size:]
            if any(len(one) > size and one.startswith(end) for one in self._needles):
                return size
        return 0


def _spellings(value: str) -> set[str]:
    raw = value.encode()
    found = {value, quote(value, safe=""), quote(value), quote_plus(value)}
    found |= {json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1]}
    # As errors and logs of programs show values: repr of text and bytes, JSON inside of JSON.
    found |= {repr(value)[1:-1], repr(raw)[2:-1], json.dumps(json.dumps(value)[1:-1])[1:-1]}
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        found.add(encode(raw).decode().rstrip("="))
        for before in range(3):
            core = _core(encode(bytes(before) + raw).decode().rstrip("="), before, len(raw))
            if len(core) >= _CORE_CHARS:
                found.add(core)
    return {one for one in found if len(one) >= SECRET_CHARS}


def _core(text: str, before: int, size: int) -> str:
    """The letters of base64 that hold bits of the value alone."""
    first = -(-before * 8 // 6)
    last = (before + size) * 8 // 6
    return text[first:last]

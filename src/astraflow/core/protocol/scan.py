"""Reading JSON text for what a typed decoder does not see.

PROTOCOL §1 refuses a frame with NaN, a lone surrogate, U+0000 or nesting beyond 64, and user data
with numbers that no reader can hold. msgspec refuses NaN and lone surrogates itself, wherever they
stand. But it skips raw user data without a look at its numbers and its UTF-8, keeps the last of two
equal keys, and nests as deep as the stack goes. This module looks at the rest. Each look begins
with a scan that is nearly free and goes on only when that one finds something.

Of large user data most is long text: a document, an image in base64. Where that begins and ends is found at the speed
of memory, and the looks for keys, numbers and nesting leave it out (`_brief`).
"""

from __future__ import annotations

import json
import re
from typing import Final

import msgspec

from astraflow.core.protocol import limits

# For a first look: what may stand in a number becomes 0, and the shortest number that may be out of
# range is 1e309.
NUMBERS_ROUGHLY: Final = bytes(
    ord("0") if byte in b"0123456789+eE" else byte for byte in range(256)
)
SUSPECT: Final = b"0" * 5
# Digits and "+" become 0 and E becomes e, so that one search finds any long number.
_NUMBERS: Final = bytes(
    ord("0") if byte in b"0123456789+" else ord("e") if byte == ord("E") else byte
    for byte in range(256)
)
# 18 digits fit in 63 bits, and an exponent of two digits keeps a double finite unless the mantissa
# has hundreds of digits, which the first search also finds.
_LONG_INTEGER: Final = b"0" * 19
_LONG_EXPONENT: Final = b"0e000"
_BACKSLASH: Final = ord("\\")
# The escape itself, not the letters after an escaped backslash.
_ESCAPED_NUL: Final = re.compile(rb"(?<!\\)(?:\\\\)*\\u0000")
_BRACKETS: Final = bytes.maketrans(b"{}[]", b"()()")
_FEW_PAIRS: Final = 64
_OPENING: Final = ord("(")
_NO_MARKS: Final = bytes(byte for byte in range(256) if byte not in b'{}[]"')

_ESCAPED_COLON: Final = b"\\u003"

_LARGE_BYTES: Final = 16 * 1024
_STRING_BYTES: Final = 512
"""A text with fewer bytes than these for each of its strings is not made brief: looking for them would take longer."""
_LONG_STRING: Final = 64
_MAX_BACKSLASHES: Final = 64
_AFTER_VALUES: Final = frozenset(b",]}")

_decode_any = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode


def problem_in(text: bytes, levels_around: int) -> str | None:
    """What makes this JSON text unfit for a frame, or None.

    `levels_around` is how deep in its frame the text stands. Text that is not JSON at all may pass:
    whoever decodes it finds that out.
    """
    allowed = limits.MAX_DEPTH - levels_around
    # Nesting n deep takes n openings and n closings.
    is_short = len(text) < 2 * allowed
    # `find` and not `in`: for bytes in bytes, `in` first tries whether they are an integer.
    if (
        is_short
        and text.isascii()
        and _BACKSLASH not in text
        and text.translate(NUMBERS_ROUGHLY).find(SUSPECT) < 0
    ):
        return None
    if not text.isascii() and not _is_utf8(text):
        return "not UTF-8"
    if _BACKSLASH in text and text.find(b"\\u0000") >= 0 and _ESCAPED_NUL.search(text):
        return "holds the character U+0000"
    brief = _brief(text)
    if not is_short and _is_deeper_than(allowed, brief):
        return f"nested deeper than {limits.MAX_DEPTH} levels"
    numbers = brief.translate(_NUMBERS)
    if numbers.find(_LONG_EXPONENT) >= 0 or numbers.find(_LONG_INTEGER) >= 0:
        # If there is none in what is brief there is none in the whole.
        return None if _problem_in_numbers(brief) is None else _problem_in_numbers(text)
    return None


def has_duplicate_key(text: bytes) -> bool:
    """Whether any object in this JSON text has a key twice.

    A decoder keeps one of them. Each that it drops takes a colon with it, and nothing else that is written in another
    way does, but a colon that was escaped. Long text is left out: whoever asks has decoded it, or will.

    Raises:
        msgspec.DecodeError: it is not JSON.
    """
    brief = _brief(text)
    colons = brief.count(b":")
    if colons < 2:
        return False
    if _encode(_decode_any(brief)).count(b":") == colons and brief.find(_ESCAPED_COLON) < 0:
        return False
    return duplicate_key(text) is not None


def duplicate_key(text: bytes, *, opaque: str | None = None) -> str | None:
    """The first key that anything in this text has twice; what stands under `opaque` is not looked at."""
    top = json.loads(text, object_pairs_hook=_Pairs)
    waiting: list[object] = [top]
    while waiting:
        value = waiting.pop()
        if not isinstance(value, _Pairs):
            if isinstance(value, list):
                waiting.extend(value)
            continue
        seen: set[str] = set()
        for key, inner in value.members:
            if key in seen:
                return key
            seen.add(key)
            if value is not top or key != opaque:
                waiting.append(inner)
    return None


class _Pairs:
    """The members of an object in the order of the text, repeated keys included."""

    __slots__ = ("members",)

    def __init__(self, members: list[tuple[str, object]]) -> None:
        self.members = members


def _brief(text: bytes) -> bytes:
    """The same JSON with its long values of text emptied, if it is large and has few strings; else the text itself.
    Keys stay as they are. What is wrong inside of a long string is left out with it: decoders find that."""
    if len(text) < _LARGE_BYTES:
        return text
    looks = len(text) // _STRING_BYTES
    pieces: list[bytes] = []
    kept = 0
    opening = text.find(b'"')
    while opening >= 0:
        closing = text.find(b'"', opening + 1)
        looks -= 1
        while closing > 0 and text[closing - 1] == _BACKSLASH and looks > 0:
            escapes = _backslashes_before(text, closing)
            if escapes is None:
                return text
            if escapes % 2 == 0:
                break
            closing = text.find(b'"', closing + 1)
            looks -= 1
        if closing < 0 or looks <= 0:
            return text
        is_value = closing + 1 < len(text) and text[closing + 1] in _AFTER_VALUES
        if is_value and closing - opening > _LONG_STRING:
            pieces.append(text[kept : opening + 1])
            kept = closing
        opening = text.find(b'"', closing + 1)
    pieces.append(text[kept:])
    return b"".join(pieces)


def _backslashes_before(text: bytes, end: int) -> int | None:
    """How many stand right before this place; None if they are too many to count."""
    for count in range(_MAX_BACKSLASHES):
        if text[end - 1 - count] != _BACKSLASH:
            return count
    return None


def _is_utf8(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


def _is_deeper_than(allowed: int, text: bytes) -> bool:
    if text.count(b"{") + text.count(b"[") <= allowed:
        return False
    brackets = _brackets_of(text)
    # The innermost pairs go first, a level each time, until there are so few that the rest is walked through.
    while allowed and brackets.count(b"()") > _FEW_PAIRS:
        brackets = brackets.replace(b"()", b"")
        allowed -= 1
    depth = 0
    for bracket in brackets:
        depth += 1 if bracket == _OPENING else -1
        if depth > allowed:
            return True
    return False


def _brackets_of(text: bytes) -> bytes:
    """The brackets outside of strings, round. A bracket is inside if the number of quotes before it is odd; two quotes
    with nothing between them change that for nobody."""
    if _BACKSLASH in text:
        text = text.replace(b"\\\\", b"").replace(b'\\"', b"")
    marks = text.translate(_BRACKETS, _NO_MARKS).replace(b'""', b"")
    return b"".join(marks.split(b'"')[::2]) if b'"' in marks else marks


def _problem_in_numbers(text: bytes) -> str | None:
    try:
        value = _decode_any(text)
    except msgspec.ValidationError:
        return "holds a number that is out of range"
    except msgspec.DecodeError:
        return None
    waiting = [value]
    while waiting:
        value = waiting.pop()
        if isinstance(value, int):
            if not limits.USER_INT_MIN <= value <= limits.USER_INT_MAX:
                return "holds an integer beyond 64 bits"
        elif isinstance(value, list):
            waiting.extend(value)
        elif isinstance(value, dict):
            waiting.extend(value.values())
    return None

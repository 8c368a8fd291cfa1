"""Inputs that are almost right: examples, changed a little, from a seeded random source."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Sequence
from random import Random
from typing import Any, Final

__all__ = ["mutant", "mutants"]

TOKENS: Final = [
    b"null", b"true", b"{}", b"[]", b'""', b"0", b"-1", b"1e999", b"NaN", b"-0", b"1.0",
    b"9007199254740993", b"18446744073709551616", b"-9223372036854775809", b"\\u0000", b"\\ud800",
    b"\xff", b"\x00", b"\xe2\x80\xae", b"[" * 70, b"]" * 70, b'{"a":' * 70, b",", b":", b'"', b"\\",
    b'"seq":0', b'"payload":', b',"payload":{}', b'"type":', b"\n",
]  # fmt: skip
VALUES: Final[list[Any]] = [
    None, True, False, 0, 1, -1, 2**53, 2**53 + 1, 2**64, -(2**63), 0.5, 1.0, 1e300, "", "x", "x" * 300,
    "\x00", "\u202e", "__proto__", "../..", "/a/b", "results.page", [], {}, [[]], [None], {"a": {}}, {"": ""},
]  # fmt: skip
MAX_CHANGES: Final = 4
MAX_GROWTH: Final = 65_536


def mutants(corpus: Sequence[bytes], random: Random) -> Iterator[bytes]:
    """Yield changed inputs without end. The corpus must not be empty."""
    while True:
        yield mutant(random.choice(corpus), corpus, random)[:MAX_GROWTH]


def mutant(value: bytes, corpus: Sequence[bytes], random: Random) -> bytes:
    """Return the value, changed in a few places."""
    if random.random() < 0.5:
        value = _change_json(value, random)
    for _ in range(random.randrange(MAX_CHANGES)):
        value = _change_bytes(value, corpus, random)
    return value


def _change_bytes(value: bytes, corpus: Sequence[bytes], random: Random) -> bytes:
    at = random.randrange(len(value) + 1)
    to = min(len(value), at + random.randrange(1, 9))
    match random.randrange(6):
        case 0:
            return value[:at] + bytes([random.randrange(256)]) + value[to:]
        case 1:
            return value[:at] + random.choice(TOKENS) + value[at:]
        case 2:
            return value[:at] + value[to:]
        case 3:
            return value[:at] + value[at:to] * random.randrange(2, 5) + value[to:]
        case 4:
            other = random.choice(corpus)
            return value[:at] + other[random.randrange(len(other) + 1) :]
        case _:
            return value[:at]


def _change_json(value: bytes, random: Random) -> bytes:
    """Change one place of each line that is JSON, and keep it JSON."""
    lines = value.split(b"\n")
    at = random.randrange(len(lines))
    try:
        document = json.loads(lines[at])
    except ValueError:
        return value
    lines[at] = json.dumps(_changed(document, random), ensure_ascii=False).encode(
        "utf-8", "surrogatepass"
    )
    return b"\n".join(lines)


def _changed(document: Any, random: Random) -> Any:
    document = copy.deepcopy(document)
    places = list(_places(document))
    if not places:
        return random.choice(VALUES)
    parent, key = random.choice(places)
    match random.randrange(4):
        case 0 if isinstance(parent, dict):
            del parent[key]
        case 1 if isinstance(parent, list):
            parent.extend(copy.deepcopy(parent) * random.randrange(1, 4))
        case 2:
            other_parent, other_key = random.choice(places)
            parent[key] = copy.deepcopy(other_parent[other_key])
        case _:
            parent[key] = copy.deepcopy(random.choice(VALUES))
    return document


def _places(document: Any) -> Iterator[tuple[Any, Any]]:
    waiting = [document]
    while waiting:
        value = waiting.pop()
        keys: Any = ()
        if isinstance(value, dict):
            keys = list(value)
        elif isinstance(value, list):
            keys = range(len(value))
        for key in keys:
            yield value, key
            waiting.append(value[key])

"""The hash chain of a tenant's audit: each entry carries the hash of the one before it.

1. The entries of a tenant are numbered from 1 without gaps. `hash` is SHA-256 of the hash before it and of the
   canonical bytes of the entry: what is changed, inserted, removed or reordered later does not fit any more.
2. Before entry 1 stands the hash of zeros. The first entry that retention has kept brings the hash before it along.
3. Entries that are older than the chain have no hash. They stand before entry 1, and are not verified.
4. Who can write all rows can also compute all hashes again, or cut off the end. That shows only to those who know an
   earlier head, so a verification takes heads that were noted elsewhere (`expected`).
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256
from typing import Final, Protocol

import msgspec

BEFORE_FIRST: Final = bytes(32)
"""The hash before entry 1."""

_encode: Final = msgspec.json.Encoder().encode


class AuditContent(Protocol):
    """What of an entry is hashed, and its place in the chain."""

    @property
    def tenant(self) -> str: ...
    @property
    def at(self) -> int: ...
    @property
    def who(self) -> str: ...
    @property
    def action(self) -> str: ...
    @property
    def worker(self) -> str: ...
    @property
    def corr(self) -> str | None: ...
    @property
    def code(self) -> str | None: ...
    @property
    def detail(self) -> bytes: ...
    @property
    def chain_number(self) -> int | None: ...
    @property
    def previous(self) -> bytes | None: ...
    @property
    def hash(self) -> bytes | None: ...


class ChainHead(msgspec.Struct, frozen=True):
    """The end of a chain: the number and the hash of its last entry."""

    number: int = 0
    hash: bytes = BEFORE_FIRST

    def __str__(self) -> str:
        return f"{self.number}:{self.hash.hex()}"


class ChainReport(msgspec.Struct, frozen=True, kw_only=True):
    """What a verification has found. `first` and `last`: the numbers of the entries that were verified."""

    head: ChainHead
    first: int | None = None
    last: int | None = None
    unchained: int = 0
    """Entries that are older than the chain."""
    problem: str | None = None


def head_of(text: str) -> ChainHead | None:
    """The head that `N:HASH` names; None if it names none."""
    number, _, digest = text.partition(":")
    if not (number.isascii() and number.isdigit()) or len(number) > 18:
        return None
    try:
        value = bytes.fromhex(digest)
    except ValueError:
        return None
    is_plain = digest.isalnum() and len(value) == len(BEFORE_FIRST)
    return ChainHead(int(number), value) if is_plain else None


def hash_of(previous: bytes, number: int, entry: AuditContent) -> bytes:
    """The hash of an entry: of the one before it, and of a JSON array without white space."""
    content = (
        entry.tenant, number, entry.at, entry.who, entry.action, entry.worker, entry.corr,
        entry.code, entry.detail.decode("utf-8", "replace"),  # never written by us: then no hash fits
    )  # fmt: skip
    return sha256(previous + _encode(content)).digest()


class ChainVerifier:
    """Verifies the entries of one tenant, which it is given oldest first. It remembers the first problem.

    `removed`: the last number that retention has removed. `head`: where the chain ended before the first entry was
    read. Entries behind it were written meanwhile: they are left out, but none stands behind the end of after the
    reading.
    """

    def __init__(self, head: ChainHead, removed: int, expected: Iterable[ChainHead] = ()) -> None:
        self._head = head
        self._removed = removed
        self._expected = list(expected)
        self._last: ChainHead | None = None
        self._first: int | None = None
        self._unchained = 0
        self._latest = 0
        self._problem: str | None = None

    @property
    def problem(self) -> str | None:
        """The first problem so far."""
        return self._problem

    def take(self, entry: AuditContent) -> None:
        """Verify the next entry."""
        if self._problem is not None:
            return
        number, previous = entry.chain_number, entry.previous
        if number is None or previous is None:
            self._take_unchained()
        elif number > self._head.number:
            self._latest = max(self._latest, number)
        elif self._last is None:
            self._take_first(number, previous, entry)
        else:
            self._take_next(self._last, number, previous, entry)

    def finish(self, ends_at: int | None = None) -> ChainReport:
        """The report, after the last entry. `ends_at`: the number that the chain ends with now; None: at the head."""
        last = self._last
        end = self._head.number if ends_at is None else ends_at
        if self._problem is None and self._latest > end:
            self._problem = f"entry {self._latest} stands behind entry {end}, the end of the chain"
        if self._problem is None:
            self._problem = self._problem_at_end()
        return ChainReport(
            head=self._head,
            first=self._first,
            last=None if last is None else last.number,
            unchained=self._unchained,
            problem=self._problem,
        )

    def _take_unchained(self) -> None:
        if self._last is not None:
            self._problem = f"an entry without a hash stands behind entry {self._last.number}"
        self._unchained += 1

    def _take_first(self, number: int, previous: bytes, entry: AuditContent) -> None:
        if self._unchained and number != 1:
            self._problem = f"entries without a hash stand before entry {number}"
        elif number <= self._removed:
            self._problem = f"entry {number} is there, and was removed by retention"
        elif number != self._removed + 1:
            self._problem = f"entries {self._removed + 1} to {number - 1} are missing"
        elif number == 1 and previous != BEFORE_FIRST:
            self._problem = "entry 1 does not begin the chain"
        else:
            self._first = number
            self._compare(ChainHead(number - 1, previous))
            self._link(number, previous, entry)

    def _take_next(
        self, last: ChainHead, number: int, previous: bytes, entry: AuditContent
    ) -> None:
        if number <= last.number:
            self._problem = f"entry {number} stands behind entry {last.number}"
        elif number != last.number + 1:
            self._problem = f"entry {last.number + 1} is missing: entry {number} stands there"
        elif previous != last.hash:
            self._problem = f"entry {number} does not follow entry {last.number}"
        else:
            self._link(number, previous, entry)

    def _link(self, number: int, previous: bytes, entry: AuditContent) -> None:
        found = hash_of(previous, number, entry)
        if found != entry.hash and self._problem is None:
            self._problem = f"entry {number} was changed: its hash does not fit"
        self._last = ChainHead(number, found)
        self._compare(self._last)

    def _compare(self, passed: ChainHead) -> None:
        for one in self._expected:
            if one.number == passed.number and one != passed and self._problem is None:
                self._problem = f"entry {one.number} has another hash than the expected one"

    def _problem_at_end(self) -> str | None:
        last = self._last or ChainHead(self._removed, self._head.hash)
        if last.number != self._head.number:
            return f"entries {last.number + 1} to {self._head.number} are missing"
        if last.hash != self._head.hash:
            return f"entry {last.number} is not the one that the chain ended with"
        for one in self._expected:
            if one.number > last.number:
                return f"the chain ends at entry {last.number}, before the expected {one.number}"
            if one.number < (self._first or last.number + 1) - 1:
                return f"entry {one.number} is not kept any more, so that it cannot be compared"
            if self._last is None and one != last:
                return f"entry {one.number} has another hash than the expected one"
        return None
